/* run_step.h - the steps of a run and their attempts: states, reasons, and who has one.
 *
 * Times are microseconds of the store's wall clock, 0 for none. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_JOBS_RUN_STEP_H
#define DIBS_JOBS_RUN_STEP_H

#include "jobs/definition.h"
#include <dibs/types.h>

enum {
    DIBS__RUN_ID_SIZE = 128, /* "JOB@20261115T020000Z", "JOB.7f3a9c2e41d0" */
    DIBS__JOB_NAME_SIZE = DIBS__JOB_NAME_MAX + 1,
    DIBS__LABEL_SIZE = DIBS__JOB_NAME_SIZE + 5, /* "call/FUNCTION" */
    DIBS__NODE_SIZE = 17,  /* 64 random bits in hexadecimal */
    DIBS__NONCE_SIZE = 13, /* 48 */
    DIBS__RUN_NOTE_SIZE = 128,
    DIBS__RUN_RESULT_MAX = 4096,
    DIBS__RUN_ATTEMPTS_KEPT = 10,
    DIBS__RUN_JSON_MAX = 256 * 1024
};

/* Runs and steps have them. From OK on they are final. */
typedef enum dibs__run_state {
    DIBS__STATE_QUEUED, /* a run of which nothing was begun */
    DIBS__STATE_ACTIVE, /* a run */
    DIBS__STATE_PENDING,
    DIBS__STATE_READY,
    DIBS__STATE_CLAIMED,
    DIBS__STATE_RUNNING,
    DIBS__STATE_RETRY,
    DIBS__STATE_WAITING,
    DIBS__STATE_OK,
    DIBS__STATE_FAILED,
    DIBS__STATE_CANCELLED,
    DIBS__STATE_MISSED,
    DIBS__STATE_SKIPPED,
    DIBS__STATES
} dibs__run_state;

typedef enum dibs__reason {
    DIBS__REASON_NONE,
    DIBS__REASON_FAILED,    /* its exit code is none of ok_codes */
    DIBS__REASON_TIMEOUT,   /* of the attempt, the wait or the run */
    DIBS__REASON_LOST,      /* the lease of its node ended */
    DIBS__REASON_STOPPED,   /* its node was to stop */
    DIBS__REASON_UNSTARTED, /* its node could not start the command */
    DIBS__REASON_CANCELLED, /* by a user */
    DIBS__REASON_REPLACED,  /* by a later run of its job */
    DIBS__REASON_BUSY,      /* the lock of its job was held */
    DIBS__REASON_LATE,      /* start_deadline was over */
    DIBS__REASON_NEED,      /* a step that it needs, or the run, has failed */
    DIBS__REASON_WHEN,      /* its `when` did not come true */
    DIBS__REASONS
} dibs__reason;

typedef enum dibs__cause {
    DIBS__CAUSE_TICK,
    DIBS__CAUSE_HAND,
    DIBS__CAUSE_THEN,  /* the run `origin` has ended */
    DIBS__CAUSE_RERUN, /* of the run `origin` */
    DIBS__CAUSE_CHILD, /* a step of the run `origin` */
    DIBS__CAUSES
} dibs__cause;

/* A WAITING step waits for one of these. */
typedef enum dibs__wait_for {
    DIBS__WAIT_NOTHING,
    DIBS__WAIT_SLEEP,
    DIBS__WAIT_BOOKMARK,
    DIBS__WAIT_BATCH,
    DIBS__WAIT_CHILD,
    DIBS__WAITS
} dibs__wait_for;

/* Where the store has a step, or a run: the index, and its number there. */
typedef enum dibs__place_kind {
    DIBS__PLACE_NONE,
    DIBS__PLACE_READY,
    DIBS__PLACE_LIVE,
    DIBS__PLACE_RETRY
} dibs__place_kind;

typedef struct dibs__place {
    dibs__place_kind kind;
    int64_t at;
    bool cancel; /* as the store has it */
} dibs__place;

typedef struct dibs__run_step {
    char name[DIBS__JOB_NAME_SIZE];
    char label[DIBS__LABEL_SIZE]; /* a node must have it; "": any */
    bool begins; /* it has no needs: start_deadline is for it */
    dibs__run_state state;
    uint32_t attempt;             /* attempts that were begun */
    char node[DIBS__NODE_SIZE];   /* of CLAIMED and RUNNING */
    uint64_t fence;               /* of that node's lease */
    char nonce[DIBS__NONCE_SIZE]; /* of the last claim */
    bool cancel;                  /* RUNNING, and has to end */
    dibs__reason why_cancel;
    dibs__wait_for waits; /* of WAITING */
    int64_t at_us;        /* READY since; RETRY, WAITING: when to look again */
    int64_t until_us;     /* WAITING: its timeout */
    int64_t begun_us;     /* the last attempt */
    int64_t ended_us;
    dibs__reason reason;
    int32_t exit_code;
    char *result; /* a file's or a resumer's; NULL: none */
    size_t result_len;
    char who[DIBS__RUN_NOTE_SIZE]; /* resumed a bookmark */
    dibs__place place;             /* not in the JSON: see places.h */
} dibs__run_step;

/* An attempt that has ended. */
typedef struct dibs__run_attempt {
    uint32_t step;
    uint32_t attempt;
    char node[DIBS__NODE_SIZE];
    dibs__reason reason;
    int32_t exit_code;
    int64_t begun_us, ended_us;
} dibs__run_attempt;

static inline bool dibs__state_final(dibs__run_state state)
{
    return state >= DIBS__STATE_OK;
}

/* "RUNNING", "lost", "tick"; static strings. */
const char *dibs__run_state_name(dibs__run_state state);
const char *dibs__reason_name(dibs__reason reason);
const char *dibs__cause_name(dibs__cause cause);

#endif
