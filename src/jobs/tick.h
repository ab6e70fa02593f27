/* tick.h - ticks of a job: which one is due, what becomes of late ones, and the run that is
 * made. Pure.
 *
 * The mark of a job is the last tick that was dealt with. A tick moves the mark, finds the
 * next one and makes the run in one intent, which names the moment on the store's clock
 * from which it is true: a node whose clock is ahead is answered EARLY.
 *
 * Late ticks, those after the mark up to now:
 *   run_once  the newest runs; the others are counted as merged
 *   skip      the newest runs if it is no later than `grace`; the others are missed
 *   run_all   each runs, oldest first; if there are more than `max`, older ones are missed
 *
 * Rules (the numbers are those of docs/design.md):
 *   1  (job, tick) makes one run at most: the commit checks that there is none.
 *   2  No tick is dealt with before its moment on the store's clock.
 *   3  Mark, next tick and run change in one commit.
 *   4  A fixed job runs a local time once (cron.h).
 *   13 A node never ticks at or below the highest mark that it has seen itself. If the
 *      store has lost writes, it writes its mark back. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_JOBS_TICK_H
#define DIBS_JOBS_TICK_H

#include "jobs/run_machine.h"

enum { DIBS__TICKS_COUNTED = 10000 };

typedef struct dibs__ticker {
    const dibs__zone *zone;
    const char *tzdata; /* the version of the zone data */
    int64_t jitter_us;  /* dibs__job_jitter_us() */
    const char *hash;   /* of the definition */
    int64_t seen_s;     /* rule 13: the highest mark seen, and its local time */
    int64_t seen_local_s;
    uint64_t seen_resets; /* ... after so many resets */
    int64_t ran_s;        /* a tick whose run the store has; 0: none is known */
} dibs__ticker;

/* A fixed part of the job's jitter, from the names of its board and its own. */
int64_t dibs__job_jitter_us(const dibs__job *job, const char *board);

/* The first tick after a moment, of which the local time is known too. False: none. */
bool dibs__job_next(const dibs__job *job, const dibs__job_state *state,
                    const dibs__zone *zone, int64_t after_s,
                    int64_t after_local_s, dibs__tick *out);

/* The mark is now, and the next tick is the first after it: of a new schedule, and when a
 * user asks for it. If that is before the mark, since the clock of the store was set back,
 * nodes that have seen the mark let it count no more. A job that is paused or not enabled
 * has no next tick. */
void dibs__tick_reset(const dibs__job *job, dibs__job_state *state,
                      const dibs__ticker *tk, int64_t now_us);

/* The next tick anew, after the same mark: the zone data or the jitter has changed. */
void dibs__tick_refresh(const dibs__job *job, dibs__job_state *state,
                        const dibs__ticker *tk);

/* Deals with what is due. sc->run is zeroed storage; sc->state is there, and under
 * `replace` and `queue` sc->live and sc->next. OK: the scene is to be written; sc->run has an id if a
 * run was made. A tick that ran before the mark was set back is dealt with. STALE: nothing is due; NOMEM. */
dibs_status
dibs__tick_take(dibs__scene *sc, const dibs__ticker *tk, dibs_error *err);

void dibs__job_pause(dibs__job_state *state, const char *by, const char *note,
                     int64_t until_us);

/* Ticks up to `now_us` are not made up for. */
void dibs__job_unpause(const dibs__job *job, dibs__job_state *state,
                       const dibs__ticker *tk, int64_t now_us);

#endif
