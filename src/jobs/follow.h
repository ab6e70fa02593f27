/* follow.h - runs that other runs cause: children, and those of `then`; batches that runs
 * wait for; and which node goes first. Pure.
 *
 * The id of such a run follows from the ids of both, so that any number of nodes may make
 * it, and one does. A parent's child is made by a node that finds the step WAITING, or by the
 * sweep; the parent is in "resume" until it has ended. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_JOBS_FOLLOW_H
#define DIBS_JOBS_FOLLOW_H

#include "jobs/run_machine.h"

/* The id of the child of a step, and of a run that follows this one. */
void dibs__child_id(const dibs__job *parent_job, const dibs__run *parent,
                    size_t step, char out[DIBS__RUN_ID_SIZE]);
void dibs__then_id(const char *job, const dibs__run *ended,
                   char out[DIBS__RUN_ID_SIZE]);

/* Makes the child of a step from the definition of its job, with the params that the
 * step gives it. It is not admitted yet. INVALID: the params do not fit; the step then
 * has to fail, by dibs__run_unmade(). End it with dibs__run_fini() in any case. */
DIBS_MUST_CHECK dibs_status dibs__child_make(const dibs__job *parent_job,
                                             const dibs__run *parent,
                                             size_t step, const dibs__job *job,
                                             const char *hash, dibs__run *out,
                                             dibs_error *err);

/* The same of a run that follows one which has ended. */
DIBS_MUST_CHECK dibs_status dibs__then_make(const dibs__run *ended,
                                            const dibs__job *job,
                                            const char *hash, dibs__run *out,
                                            dibs_error *err);

/* The batch for which a step of a run waits, with values in place. INVALID: it is too
 * long. */
DIBS_MUST_CHECK dibs_status dibs__wait_batch(const dibs__job *job,
                                             const dibs__run *run, size_t step,
                                             char out[DIBS__JOB_NAME_SIZE],
                                             dibs_error *err);

/* The jobs that follow a run, by how it ended; empty while it lives. */
const dibs__texts *dibs__then_jobs(const dibs__job *job, const dibs__run *run);

/* The place of a node among others for one name, from 0: the same at every node that
 * knows the same others, and spread over names. The first acts at once, others later, if
 * it is still to be done: so that one commit is sent, and not one by each node. */
size_t dibs__node_rank(const char *name, const char *own,
                       const char *const *others, size_t count);
int64_t dibs__rank_delay_ms(size_t rank);

#endif
