/* call_run.h - a call in the hands of its function: dibs_run of dibs/jobs.h. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_NODE_CALL_RUN_H
#define DIBS_NODE_CALL_RUN_H

#include "base/clock.h"
#include "jobs/arena.h"
#include "jobs/record.h"
#include <dibs/jobs.h>
#include <stdatomic.h>

/* The lease of the node, as calls may believe in it: nanoseconds of the boot clock. */
typedef struct dibs__call_belief {
    _Atomic dibsx_nsec go_until;    /* calls should stop */
    _Atomic dibsx_nsec valid_until; /* it may pass on */
} dibs__call_belief;

typedef struct dibs__call_need {
    const char *step;
    const char *result;
    size_t len;
} dibs__call_need;

struct dibs_run {
    struct dibs__node_task *task; /* for the node's thread */
    dibs_job_fn *fn;
    void *arg;

    char id[DIBS_RUN_SIZE]; /* with its board, if it is not main */
    char job[DIBS__JOB_NAME_SIZE];
    char step[DIBS__JOB_NAME_SIZE];
    uint32_t attempt;
    int64_t tick_us;
    uint64_t token, fence;
    dibs__pairs params;
    dibs__call_need *needs;
    size_t need_count;
    dibs__arena *arena; /* of params and needs */

    const dibs__call_belief *belief;
    bool outlives;         /* on_lost: finish */
    dibsx_nsec timeout_at; /* DIBSX_NEVER: none */
    int64_t kill_after_ms;
    atomic_int why;     /* a dibs__reason; NONE: it may go on */
    dibsx_nsec told_at; /* the pool's mutex */
    int stop_fd;

    dibs_status rc;
    dibs_error err;
    size_t result_len;
    char result[DIBS_RESULT_MAX];

    struct dibs_run *next; /* in a list of the pool */
};

/* Copies what a function may ask for. The caller sets the rest, and frees it with
 * dibs__call_free() also after a failure. */
DIBS_MUST_CHECK dibs_status dibs__call_fill(dibs_run *call,
                                            const dibs__job *job,
                                            const dibs__step *step,
                                            const dibs__run *run,
                                            dibs_error *err);
void dibs__call_free(dibs_run *call);

#endif
