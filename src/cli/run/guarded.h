/* guarded.h - the command of elect or join, which runs under the guard of run: its
 * options, all that it needs, and its outcome. Main thread only. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_CLI_RUN_GUARDED_H
#define DIBS_CLI_RUN_GUARDED_H

#include "cli/run/supervise.h"

typedef struct dibs__guarded {
    const dibs__command *cmd;
    dibs__run_opts opts;
    dibs__signals signals;
    dibs__tree_means means;
    dibs__run_inputs inputs;
    dibs__outcome out;   /* of the last run */
    dibs_client *cl;     /* the caller opens it */
    dibs_member *member; /* NULL: none; the caller's, until the end */
} dibs__guarded;

/* Reads NAME COMMAND..., --ttl and --stop, and blocks signals. The rest of `opts` is
 * the caller's to change. End with dibs__guarded_fini(). */
void dibs__guarded_init(dibs__guarded *g, const dibs__command *cmd);

/* Finds out whether the command can be run at all, before anybody counts on it. `when`
 * ends the sentence that its processes must end. 0, or an exit code after a message. */
int dibs__guarded_open(dibs__guarded *g, const char *when);

/* Runs the command to the end of its tree, and sets `out`. `held` is what it finds in
 * its environment. `watched` has what is the caller's: this fills in the rest. Not
 * DIBS_OK: nothing was started. */
DIBS_MUST_CHECK dibs_status dibs__guarded_run(dibs__guarded *g,
                                              dibs__watched *watched,
                                              const dibs__held *held,
                                              size_t count, dibs_error *err);

/* The exit code after a run; says so when there was no such command. */
int dibs__guarded_code(const dibs__guarded *g);

/* Gives up the seat, closes the client, and dies of `die_of` unless it is 0, or of ^C that
 * ended the command. */
void dibs__guarded_fini(dibs__guarded *g, int die_of);

#endif
