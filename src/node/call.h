/* call.h - functions of the node's program, and attempts as calls of them.
 *
 * Each call runs on a thread of a pool. One more thread watches the clock: it tells calls
 * that their time or the lease is over, also while the node waits for the store. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_NODE_CALL_H
#define DIBS_NODE_CALL_H

#include "node/node_inside.h"
#include <dibs/jobs.h>

typedef struct dibs__function {
    char name[DIBS__JOB_NAME_SIZE];
    dibs_job_fn *fn;
    void *arg;
} dibs__function;

/* The functions of a node. Borrowed while it runs. */
struct dibs__calls {
    const dibs__function *functions;
    size_t count;
    int64_t return_ms; /* calls have so long to return before the lease ends */
    bool abort_stuck;
};

extern const dibs__attempt_ops dibs__call_ops;

#endif
