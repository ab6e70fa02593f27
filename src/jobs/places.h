/* places.h - where runs and jobs stand in the indexes of a board, and the changes that
 * bring the indexes up to date. Pure.
 *
 * The record alone says where a run and its steps stand. So no transition enters or leaves
 * an index by hand: what is written is the difference between the record as it was read
 * and as it is. The indexes, with their members and numbers:
 *
 *   due         JOB       when its next tick is, with its jitter
 *   ready/LABEL RUN/STEP  READY since
 *   live        RUN/STEP  the fence of the node that has it: CLAIMED, RUNNING
 *   retry       RUN/STEP  when RETRY is over
 *   deadline    RUN       the first limit of the run that may be passed
 *   resume      RUN       when to look at a wait, or at runs that follow
 *   resume      batch/ID  when to look whether a batch is complete
 *   runs/JOB    RUN       its end; while it lives, its making
 *   batch/ID    RUN       its end; an odd number says that it did not end well
 *   trim        JOB       when to look whether history is too long
 *   trim        batch/ID  when to look whether a batch is gone, or forgotten
 *   old/JOB     HASH      definitions that are not in force any more */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_JOBS_PLACES_H
#define DIBS_JOBS_PLACES_H

#include "jobs/intent.h"
#include "jobs/state.h"

enum {
    DIBS__PLACE_SIZE = DIBS__RUN_ID_SIZE + DIBS__JOB_NAME_SIZE + 16,
    DIBS__LOOK_AGAIN_MS = 5000 /* a lost end costs so long at most */
};

/* Takes the record as the store's: later changes are counted from here. */
void dibs__run_noted(dibs__run *run, uint64_t version);
void dibs__job_state_noted(dibs__job_state *state, uint64_t version);

/* Checks and writes the record, if it has changed, with all that follows from it. A
 * result that does not fit any more is dropped. */
void dibs__run_commit(dibs__run *run, int64_t keep_ms, dibs__intent *in);
void dibs__job_state_commit(dibs__job_state *state, dibs__intent *in);

/* The number of a member of a batch that has ended; and whether it ended well, by that. Its
 * record may be gone before the batch is complete. */
int64_t dibs__batch_end(const dibs__run *run);
bool dibs__batch_well(int64_t end);

/* A definition is not in force any more; a sweep deletes it when no run has it. */
void dibs__job_outdate(const char *job, const char *hash, dibs__intent *in);

/* The number in `deadline` and `resume`; 0: not in it. */
int64_t dibs__run_deadline_at(const dibs__run *run);
int64_t dibs__run_resume_at(const dibs__run *run);

/* The place of a step as its record has it. */
dibs__place dibs__step_place(const dibs__run_step *step);

/* "RUN/STEP"; and back: false when it is none. */
void dibs__step_member(const dibs__run *run, const dibs__run_step *step,
                       char out[DIBS__PLACE_SIZE]);
bool dibs__step_split(const char *member, char run[DIBS__RUN_ID_SIZE],
                      char step[DIBS__JOB_NAME_SIZE]);

#endif
