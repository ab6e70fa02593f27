/* history.h - which runs of a job are kept, and how the others go. Pure.
 *
 * As many runs of a job stay as its `history` says: so many that ended well, as many that did
 * nothing (skipped, missed), so many others, and none for longer than `keep`. A run that has
 * not ended is never touched, and neither is one whose followers are still to be made, or
 * whose children to be cancelled. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_JOBS_HISTORY_H
#define DIBS_JOBS_HISTORY_H

#include "jobs/places.h"

/* A look at history, from the newest run to the oldest: the order of "runs/JOB", backwards. */
typedef struct dibs__history_look {
    const dibs__history *limits;
    int64_t now_us;
    int64_t ok, idle, failed; /* seen so far */
} dibs__history_look;

/* The next older run: true if it goes. */
bool dibs__history_goes(dibs__history_look *look, const dibs__run *run);

/* Deletes the run and its outputs, if it has not changed since it was read. Outputs
 * beyond the bound of a commit end with their ttl. */
void dibs__history_drop(const dibs__run *run, dibs__intent *in);

/* The same for a run whose record has expired: the outputs are those that it may have by
 * this definition, which may be a newer one. NOMEM. */
DIBS_MUST_CHECK dibs_status dibs__history_forget(const dibs__job *job,
                                                 const char *id,
                                                 dibs__intent *in,
                                                 dibs_error *err);

/* "out/RUN/STEP/ATTEMPT" */
void dibs__output_key(const dibs__run *run, const dibs__run_step *step,
                      uint32_t attempt, char out[DIBS__PLACE_SIZE]);

#endif
