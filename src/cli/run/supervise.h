/* supervise.h - running the command while its lease is watched. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_CLI_RUN_SUPERVISE_H
#define DIBS_CLI_RUN_SUPERVISE_H

#include "base/clock.h"
#include "cli/lock_or_set.h"
#include "cli/run/inputs.h"
#include "cli/run/options.h"
#include "exec/signals.h"
#include "exec/tree_means.h"

/* An item that the command works on. A signal that would end this process lets the
 * command finish; the next one, a second later or more, ends the command. */
typedef struct dibs__work {
    const dibs_item *item;
    int lost_fd;          /* readable when it is lost */
    int stdin_fd;         /* becomes the command's standard input */
    dibsx_nsec *drain_at; /* when the first of these signals came; 0: none */
} dibs__work;

/* The things to watch while the command runs. All of it is borrowed. */
typedef struct dibs__watched {
    dibs__lock_or_set *locks; /* is held; NULL: the lock is held further up */
    dibsx_nsec held_at;       /* since when */
    dibs__run_inputs *inputs;
    const dibs__signals *signals;
    dibs__tree_means *means;   /* for the command's tree */
    const dibs_member *member; /* NULL: none. The lease counts only while enough
                                  members live, and this one has the seat: */
    uint64_t seat;             /* its fence */
    int64_t seat_ms;           /* its ttl */
    const dibs__work *work;    /* NULL: none. An item of a queue is the lease */
} dibs__watched;

/* Runs the command to its end, and the end of every process it left behind;
 * fills in what became of it. Not DIBS_OK: nothing was started. */
DIBS_MUST_CHECK dibs_status dibs__supervise(const dibs__run_opts *opts,
                                            const dibs__watched *watched,
                                            char *const *envp,
                                            dibs__outcome *out,
                                            dibs_error *err);

#endif
