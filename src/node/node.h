/* node.h - a node of the job engine: a program that ticks, claims and executes, until it
 * is to stop.
 *
 * One thread does all of it. The machines of src/jobs decide, commits of the store make
 * it happen once, and the executor keeps each tree of processes within the node's lease.
 * Commands come only from the files that the node was given, found by their hash: write
 * access to the store is no shell on its nodes. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_NODE_NODE_H
#define DIBS_NODE_NODE_H

#include "jobs/board.h"
#include "jobs/job_file.h"
#include <stdatomic.h>

enum { DIBS__NODE_LABELS_MAX = 16, DIBS__NODE_SLOTS_MAX = 256 };

typedef enum dibs__sweep_kind {
    DIBS__SWEEP_RETRY,
    DIBS__SWEEP_TIMEOUT, /* limits that are passed, and nodes that are gone */
    DIBS__SWEEP_RESUME,
    DIBS__SWEEP_CLEANUP,
    DIBS__SWEEPS
} dibs__sweep_kind;

struct dibs__calls; /* call.h */

typedef void dibs__node_say_fn(void *arg, const char *line);

/* All of it is borrowed while the node runs. */
typedef struct dibs__node_opts {
    const dibs__board *board;
    const dibs__job_file *const *files; /* those of the board */
    size_t file_count;
    const char *const *labels; /* NULL ends; NULL: none */
    size_t slots;              /* commands at a time */
    int64_t ttl_ms;            /* of the node's lease */
    int64_t look_ms;           /* it looks at the store at least this often */
    int64_t drain_ms;         /* how long commands may go on when it is to stop;
                         negative: until a further signal */
    const char *sweep_prefix; /* of the locks of sweeps: "workflow:" */
    int64_t sweep_ms[DIBS__SWEEPS]; /* between two sweeps */
    bool once;   /* stop when nothing is due, ready or running */
    int stop_fd; /* a signalfd, or an eventfd as a semaphore: the first signal
                    drains, the last ends all at once */
    const struct dibs__calls *calls; /* functions; NULL: it runs commands */
    dibs__node_say_fn *say;
    void *arg;
    _Atomic int64_t *behind_us; /* set to how far the clock of the store is
                                   behind, after a step back; may be NULL */
} dibs__node_opts;

/* Whether the lock of a sweep has this name, behind the prefix. */
bool dibs__sweep_is_name(const char *name);

/* DIBS_INVALID: the client has no locks with this prefix before the names of sweeps. */
DIBS_MUST_CHECK dibs_status dibs__sweep_check_prefix(dibs_client *cl,
                                                     const char *prefix,
                                                     dibs_error *err);

/* Runs a node that executes commands (node_command.c; it is not in libdibs). DIBS_OK: it was to stop, and nothing of it runs any more. */
DIBS_MUST_CHECK dibs_status dibs__node_run(const dibs__node_opts *opts,
                                           dibs_error *err);

#endif
