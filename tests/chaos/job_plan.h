/* job_plan.h - the jobs of the job ground: the file that its nodes have, and the same for
 * the checker. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_TESTS_CHAOS_JOB_PLAN_H
#define DIBS_TESTS_CHAOS_JOB_PLAN_H

#include <stdbool.h>
#include <stdint.h>

enum { PLAN_TICKED = 20 }; /* jobs that are due each second */

/* Calls back with each job that is due each second. */
void plan_each(void (*each)(const char *job, void *arg), void *arg);

/* Writes FOLDER/jobs.yaml with this version and FOLDER/plan.json: jobs that are due from
 * `from_s` to `until_s`, seconds since 1970 on the store's clock. `true_clock`: that is
 * the clock of the commands, too. */
bool plan_write(const char *folder, int version, int64_t from_s,
                int64_t until_s, bool true_clock);

#endif
