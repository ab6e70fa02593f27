/* jobs_defs.c - the jobs that sim_jobs runs: every policy once. */
/* SPDX-License-Identifier: MIT */
#include "jobs_sim.h"

#include <stdlib.h>
#include <string.h>

dibs__job sim_jobs[JOBS];
static dibs__step steps[JOBS][STEPS];
static dibs__schedule schedules[JOBS];

static void need(int job, int step, int other)
{
    steps[job][step].needs[0] |= UINT64_C(1) << other;
    steps[job][step].need_names.count++;
}

static void make_job(int i, const char *name, const char *every, size_t count,
                     int64_t attempts)
{
    static const char *const names[] = {"a", "b", "c", "d", "e"};
    int column;

    if (dibs__cron_parse(every, &schedules[i].cron, &column, NULL) != DIBS_OK)
        abort();
    for (size_t k = 0; k < STEPS; k++) {
        steps[i][k].name = names[k];
        steps[i][k].kind = DIBS__STEP_RUN;
        steps[i][k].wait.timeout_ms = DIBS__JOB_NONE;
        steps[i][k].work.retry =
            (dibs__retry){.attempts = attempts,
                          .on = DIBS__RETRY_LOST | DIBS__RETRY_FAILED,
                          .delay_ms = 30,
                          .factor = 2,
                          .max_delay_ms = 1000,
                          .jitter_pct = 20};
    }
    sim_jobs[i] =
        (dibs__job){.name = name,
                    .enabled = true,
                    .schedule = {.at = &schedules[i], .count = 1},
                    .from_s = DIBS__JOB_NONE,
                    .until_s = DIBS__JOB_NONE,
                    .misfire = {.policy = DIBS__MISFIRE_RUN_ONCE, .max = 3},
                    .start_deadline_ms = DIBS__JOB_NONE,
                    .max_running = DIBS__JOB_NONE,
                    .run_timeout_ms = DIBS__JOB_NONE,
                    .history = {.keep_ms = 1000},
                    .steps = steps[i],
                    .step_count = count};
}

void open_jobs(void)
{
    memset(steps, 0, sizeof(steps));
    make_job(0, "plain", "@every 1s", 1, 1);
    steps[0][0].work.runs_on = "0";
    make_job(1, "forbid", "@every 1s", 1, 3);
    sim_jobs[1].concurrency = DIBS__CONCURRENCY_FORBID;
    make_job(2, "replace", "@every 1s", 1, 2);
    sim_jobs[2].concurrency = DIBS__CONCURRENCY_REPLACE;
    make_job(3, "graph", "@every 3s", 5, 2);
    need(3, 1, 0);
    need(3, 2, 0);
    need(3, 3, 1);
    need(3, 3, 2);
    steps[3][2].on_failure = DIBS__FAILURE_CONTINUE;
    steps[3][1].work.runs_on = "1";
    steps[3][4].when = DIBS__WHEN_ALWAYS;
    make_job(4, "lock", "@every 2s", 1, 2);
    sim_jobs[4].lock.key = "k";
    sim_jobs[4].lock.on_busy = DIBS__BUSY_RETRY;
    sim_jobs[4].lock.retry_delay_ms = 300;
    sim_jobs[4].max_running = 2;
    sim_jobs[4].misfire.policy = DIBS__MISFIRE_RUN_ALL;
    make_job(5, "skip", "@every 2s", 1, 2);
    sim_jobs[5].misfire.policy = DIBS__MISFIRE_SKIP;
    sim_jobs[5].misfire.grace_ms = 700;
    sim_jobs[5].start_deadline_ms = 1500;
    make_job(6, "sleep", "@every 4s", 3, 2);
    need(6, 1, 0);
    need(6, 2, 1);
    steps[6][1].kind = DIBS__STEP_SLEEP;
    steps[6][1].sleep_ms = 900;
    sim_jobs[6].run_timeout_ms = 4000;
    sim_jobs[6].concurrency = DIBS__CONCURRENCY_QUEUE;
}

int find_job(const char *name)
{
    for (int i = 0; i < JOBS; i++)
        if (strcmp(sim_jobs[i].name, name) == 0)
            return i;
    abort();
}
