/* board_start.h - runs made by hand: started, run again, and resumed at a bookmark. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_JOBS_BOARD_START_H
#define DIBS_JOBS_BOARD_START_H

#include "jobs/board_change.h"
#include <dibs/jobs.h>

/* "JOB.SUFFIX", of which the caller may give either form; NULL: it is drawn. INVALID:
 * this is no id. */
DIBS_MUST_CHECK dibs_status dibs__run_id_of_hand(const char *job,
                                                 const char *given,
                                                 char out[DIBS__RUN_ID_SIZE],
                                                 dibs_error *err);

/* Starts a run of the definition in force; `member` as of dibs__board_start_member(). OK
 * also if the job has a run of this id. BUSY: a run lives, and the job allows one; INVALID:
 * by its params, or by an id that is of a run of another job. */
DIBS_MUST_CHECK dibs_status dibs__board_start(const dibs__board *board,
                                              const char *job, const char *id,
                                              const dibs__pair *params,
                                              size_t count,
                                              const dibs__member_of *member,
                                              dibs_error *err);

/* Starts a run with the definition and the params of an older one, from a step on (NULL:
 * all). BUSY: it has not ended, or as above. */
DIBS_MUST_CHECK dibs_status dibs__board_rerun(const dibs__board *board,
                                              const dibs__run *older,
                                              const char *id, const char *from,
                                              dibs_error *err);

/* A bookmark, and what its run goes on with. */
typedef struct dibs__resumption {
    const char *bookmark;
    const char *who;
    const void *data;
    size_t len;
    dibs_bookmark_fn *work; /* makes the data; NULL: it is there */
    void *arg;
    dibs__held_fn
        *held; /* whether the caller still has the lock; may be NULL */
    const void *lock;
} dibs__resumption;

/* "workflow:RUN:bookmark:BOOKMARK". INVALID: these are no names. */
DIBS_MUST_CHECK dibs_status dibs__bookmark_lock(const char *run,
                                                const char *bookmark,
                                                char out[DIBS_NAME_MAX + 1],
                                                dibs_error *err);

/* BUSY, and says that another caller has that lock. */
dibs_status
dibs__bookmark_busy(const char *run, const char *bookmark, dibs_error *err);

/* Resumes a run at a bookmark, under that lock. BUSY: another caller is at it, or the run
 * has not come to it; STALE: it was resumed before. */
DIBS_MUST_CHECK dibs_status dibs__board_resume(const dibs__board *board,
                                               const char *run,
                                               const dibs__resumption *answer,
                                               dibs_error *err);

/* The same for a caller that has the lock itself. Locks: that of the bookmark. */
DIBS_MUST_CHECK dibs_status dibs__board_resume_held(const dibs__board *board,
                                                    const char *run,
                                                    const dibs__resumption *a,
                                                    dibs_error *err);

#endif
