/* board_change.h - changes of one run or one job of a board, made again while others
 * change it too. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_JOBS_BOARD_CHANGE_H
#define DIBS_JOBS_BOARD_CHANGE_H

#include "jobs/board.h"

/* Lets something happen in a scene. DIBS_OK: it is to be written. It is called again if
 * another client was faster; `doubt` says that this change may have been made before. */
typedef dibs_status
dibs__scene_fn(dibs__scene *sc, bool doubt, void *arg, dibs_error *err);

/* With the run as it is. */
DIBS_MUST_CHECK dibs_status dibs__board_change_run(const dibs__board *board,
                                                   const char *id,
                                                   dibs__scene_fn *change,
                                                   void *arg, dibs_error *err);

/* Cancels a run, once for a call, and the runs of its job steps. STALE: it has ended. */
DIBS_MUST_CHECK dibs_status dibs__board_cancel(const dibs__board *board,
                                               const char *id, dibs_error *err);

/* Cancels a run that lives until it was cancelled so often, whoever else does the same. */
DIBS_MUST_CHECK dibs_status dibs__board_cancel_to(const dibs__board *board,
                                                  const char *id,
                                                  uint32_t cancels,
                                                  dibs_error *err);

/* Cancels the runs of steps that ended with a cancel of their own run, as often as that was
 * cancelled, and the runs below them. */
DIBS_MUST_CHECK dibs_status dibs__board_cancel_children(
    const dibs__board *board, const char *id, dibs_error *err);

/* Somebody follows the output of a run, for DIBS__FOLLOW_MS from now on: its nodes hear of
 * it, and write the output every DIBS__FOLLOWED_MS. "follow/RUN" is the value. */
enum { DIBS__FOLLOW_MS = 30000, DIBS__FOLLOWED_MS = 500 };
DIBS_MUST_CHECK dibs_status dibs__board_follow(const dibs__board *board,
                                               const char *id, dibs_error *err);

/* Resumes a run at a bookmark, once for all calls. A call whose answers were lost knows
 * its own doing by a nonce in the record. The same answers as dibs__run_bookmark(). While
 * the store is away, it is tried again as long as `held` is true; NULL: once. */
typedef bool dibs__held_fn(const void *lock);
DIBS_MUST_CHECK dibs_status dibs__board_bookmark(
    const dibs__board *board, const char *id, const char *bookmark,
    const void *data, size_t len, const char *who, dibs__held_fn *held,
    const void *lock, dibs_error *err);

/* With a run of this id that `make` makes from zeroed storage, the definition and the state
 * of the job. The run is admitted. DIBS_OK also if there is a run of this id: an earlier
 * call has made it. `hash` is of the definition; NULL: of the one in force. */
typedef dibs_status
dibs__make_fn(const dibs__job *job, const dibs__job_state *state,
              dibs__run *run, void *arg, dibs_error *err);
DIBS_MUST_CHECK dibs_status dibs__board_start_run(
    const dibs__board *board, const char *job, const char *id, const char *hash,
    dibs__make_fn *make, void *arg, dibs_error *err);

/* The same for a run that becomes a member of a batch, by the same commit. FULL: all
 * members were started. */
typedef struct dibs__member_of {
    const char *batch; /* NULL: of none */
    uint64_t of;       /* members in all; 0: not said */
} dibs__member_of;
DIBS_MUST_CHECK dibs_status
dibs__board_start_member(const dibs__board *board, const char *job,
                         const char *id, dibs__make_fn *make, void *arg,
                         const dibs__member_of *member, dibs_error *err);

/* The state of a job changes; `tk` has the zone of its definition. NOTFOUND: the job is in
 * no set. */
typedef dibs_status dibs__state_fn(const dibs__job *job, dibs__job_state *state,
                                   const dibs__ticker *tk, int64_t now_us,
                                   void *arg, dibs_error *err);
DIBS_MUST_CHECK dibs_status dibs__board_change_job(const dibs__board *board,
                                                   const char *job,
                                                   dibs__state_fn *change,
                                                   void *arg, dibs_error *err);

/* Pauses a job, or ends its pause; a job that is not paused is left alone. INVALID: the
 * end of the pause has passed on the store's clock. */
typedef struct dibs__pause_order {
    const char *by;
    const char *note;
    int64_t until_us; /* 0: until it is unpaused */
} dibs__pause_order;
DIBS_MUST_CHECK dibs_status dibs__board_pause(const dibs__board *board,
                                              const char *job,
                                              const dibs__pause_order *order,
                                              dibs_error *err);
DIBS_MUST_CHECK dibs_status dibs__board_unpause(const dibs__board *board,
                                                const char *job,
                                                dibs_error *err);

/* All of these answer STALE if others have been faster again and again. */

#endif
