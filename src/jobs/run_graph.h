/* run_graph.h - the graph of a run: which steps are open, and when the run has ended. Pure.
 *
 * A step opens when its needs are met: all OK, or failed with `on_failure: continue`. A
 * step whose need ended otherwise is SKIPPED. If a step with `on_failure: fail` fails, or
 * the run's time is over, the run fails: what has not begun is SKIPPED, a wait and a retry
 * end, and what runs, the run of a `job` step too, goes on to its end.
 *
 * Steps with `when: always` open when their needs have ended, however; with `when:
 * failed`, if one of them is not met, or the run fails. Without needs, both come after all
 * steps that are neither. In a run that is cancelled only `always` steps open; after a
 * second cancel none do.
 *
 * All of it is one function of the record, so that fan-in and fan-out are the commit which
 * ends the last need, and of two that end at once one meets STALE and sees both. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_JOBS_RUN_GRAPH_H
#define DIBS_JOBS_RUN_GRAPH_H

#include "jobs/record.h"

/* Opens and skips steps until nothing more follows, and ends the run with its last
 * step. A run that follows another is left alone. */
void dibs__graph_settle(const dibs__job *job, dibs__run *run, int64_t now_us);

/* Whether anything of the run was begun, by itself or by the run that it repeats. */
bool dibs__graph_has_begun(const dibs__run *run);

/* A step has one of the final states. */
void dibs__graph_end_step(dibs__run_step *step, dibs__run_state state,
                          dibs__reason reason, int64_t now_us);

/* A step of a run that has ended ended otherwise after all: so does the run. */
void dibs__graph_end_again(const dibs__job *job, dibs__run *run,
                           int64_t now_us);

/* Whether the needs of a PENDING step have ended so that it opens. */
bool dibs__graph_may_open(const dibs__job *job, const dibs__run *run,
                          size_t step);

/* Whether an attempt of this step may be begun in this run, the first or a further one. */
bool dibs__graph_may_begin(const dibs__job *job, const dibs__run *run,
                           size_t step);

/* Whether a step ended with a cancel while its run went on. */
bool dibs__graph_leaves_child(const dibs__job *job, const dibs__run *run,
                              size_t step);

/* Whether a step has ended so that others may go on. */
bool dibs__graph_is_met(const dibs__job *job, const dibs__run *run,
                        size_t step);

/* Whether `step` is `from`, or needs it, directly or not. */
bool dibs__graph_is_below(const dibs__job *job, size_t step, size_t from);

/* The first breach of the rules above, or NULL: a step that opened before its needs
 * were met, or an end that came too soon or did not come. */
const char *dibs__graph_flaw(const dibs__job *job, const dibs__run *run);

#endif
