/* step.h - a step of a job: what it does, and which steps it needs. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_JOBS_STEP_H
#define DIBS_JOBS_STEP_H

#include "jobs/work.h"

enum {
    DIBS__JOB_STEPS_MAX = 256,
    DIBS__JOB_NEEDS_WORDS = DIBS__JOB_STEPS_MAX / 64
};

typedef enum dibs__on_failure {
    DIBS__FAILURE_FAIL,
    DIBS__FAILURE_SKIP,
    DIBS__FAILURE_CONTINUE
} dibs__on_failure;

typedef enum dibs__step_when {
    DIBS__WHEN_OK,
    DIBS__WHEN_FAILED,
    DIBS__WHEN_ALWAYS
} dibs__step_when;

typedef enum dibs__step_kind {
    DIBS__STEP_NOTHING, /* while it is read; no definition has it */
    DIBS__STEP_RUN,     /* a command, as words */
    DIBS__STEP_SHELL,   /* text for /bin/sh */
    DIBS__STEP_CALL,    /* a function of the node's program */
    DIBS__STEP_WAIT,    /* for a bookmark or a batch */
    DIBS__STEP_SLEEP,
    DIBS__STEP_JOB /* a run of another job */
} dibs__step_kind;

typedef enum dibs__on_timeout {
    DIBS__TIMEOUT_FAIL,
    DIBS__TIMEOUT_CONTINUE
} dibs__on_timeout;

typedef struct dibs__step_wait {
    const char *bookmark; /* one of the two is set */
    const char *batch;    /* may have ${param.x} */
    int64_t of;           /* of a batch: its members; NONE: told by others */
    int64_t timeout_ms;   /* or NONE */
    dibs__on_timeout on_timeout;
} dibs__step_wait;

typedef struct dibs__step {
    const char *name;
    dibs__step_kind kind;
    dibs__work work;      /* of RUN, SHELL and CALL */
    dibs__step_wait wait; /* of WAIT */
    int64_t sleep_ms;     /* of SLEEP */
    const char *job; /* of JOB; with: its params, which may have ${param.x} */
    dibs__pairs with;
    dibs__texts need_names;                /* as written */
    uint64_t needs[DIBS__JOB_NEEDS_WORDS]; /* bit n: the n-th step */
    dibs__step_when when;
    dibs__on_failure on_failure;
} dibs__step;

/* Whether step `of` names step `need` (both are places in steps). */
static inline bool dibs__step_needs(const dibs__step *of, size_t need)
{
    return of->needs[need / 64] >> (need % 64) & 1;
}

#endif
