/* state.h - the state of a job, as the store keeps it. Pure.
 *
 * It says up to which tick the job has been dealt with (the mark), which one is next, and
 * which of its runs lives. The store remembers the next tick, so that a node obeys it and
 * does not look at all other jobs. A moment goes with its local time, so that a node with
 * other zone data does not run the same local time again (cron.h, rule 4).
 *
 * Ticks are seconds since 1970; `_us` is the store's wall clock. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_JOBS_STATE_H
#define DIBS_JOBS_STATE_H

#include "jobs/record.h"

enum { DIBS__STATE_JSON_MAX = 4 * 1024 };

typedef struct dibs__job_state {
    char job[DIBS__JOB_NAME_SIZE];  /* the key has it, not the JSON */
    uint64_t version;               /* as read; 0: the store has none */
    char hash[DIBS__JOB_HASH_SIZE]; /* of the definition in force */
    char set[DIBS__JOB_NAME_SIZE];  /* that the job belongs to */
    int64_t anchor_s;               /* @every counts from it */
    int64_t mark_s, mark_local_s;   /* dealt with; 0: nothing yet */
    uint64_t resets;                /* how often a user set the mark back */
    int64_t next_s, next_local_s;   /* 0: none is due */
    char tzdata[DIBS__TZDATA_SIZE]; /* by which next was found */
    int64_t due_us; /* its number in the index of what is due; 0: not in it */
    bool paused;
    char paused_by[DIBS__RUN_NOTE_SIZE];
    char note[DIBS__RUN_NOTE_SIZE];
    int64_t paused_until_us;         /* 0: until it is unpaused */
    char live[DIBS__RUN_ID_SIZE];    /* not with allow: the run that lives */
    char follows[DIBS__RUN_ID_SIZE]; /* replace, queue: the one that waits for
                                        its end */
    uint64_t running;                /* max_running: runs that were begun */
    uint64_t missed;                 /* ticks that nothing ran for */
    uint64_t merged;                 /* ... for which a later one ran */
    uint64_t skipped; /* ... as a run lived, and with queue another waited */

    /* Not in the JSON: as the store has it. */
    int64_t due_at;
    bool changed;
} dibs__job_state;

void dibs__job_state_init(dibs__job_state *state, const char *job);

/* INVALID: this is no state; err says why, and it is as init leaves it. */
DIBS_MUST_CHECK dibs_status dibs__job_state_read(dibs__job_state *state,
                                                 const char *job,
                                                 const void *json, size_t len,
                                                 dibs_error *err);
void dibs__job_state_write(const dibs__job_state *state, dibsx_buf *out);

/* The first breach of the form, or NULL. */
const char *dibs__job_state_flaw(const dibs__job_state *state);

#endif
