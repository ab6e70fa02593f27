/* worker.c - a task by schedule, on one of several workers, under a lock with retries.
 *
 * Start it as often as there are workers. It ends when the task has run once.
 *
 *     worker [URL]
 */
/* SPDX-License-Identifier: MIT */
#include <dibs/dibs.h>
#include <stdio.h>

/* The task stops its node, so that the example ends. */
static dibs_jobs *jobs;

static dibs_status handle_hourly_task(dibs_run *run, void *arg, dibs_error *err)
{
    (void)arg;
    (void)err;
    printf("processing %s under fence %llu, attempt %u\n", dibs_run_job(run),
           (unsigned long long)dibs_run_fence(run), dibs_run_attempt(run));
    if (!dibs_run_go_on(run)) /* Long work asks again and again. */
        return DIBS_CANCELLED;
    dibs_jobs_stop(jobs);
    return DIBS_OK;
}

int main(int argc, char **argv)
{
    dibs_client *client = NULL;
    dibs_error err = {0};
    dibs_status rc = dibs_open(argc > 1 ? argv[1] : NULL, NULL, &client, &err);

    if (rc == DIBS_OK)
        rc = dibs_jobs_open(client, NULL, &jobs, &err);
    if (rc == DIBS_OK) {
        /* "0 * * * *" is every hour; the example does not wait so long. */
        DIBS_JOB(jobs, "hourly-task", handle_hourly_task,
                 .schedule = "@every 1s", .lock_key = "hourly-task",
                 .lock_ttl_ms = 300000, .retries = 3, .retry_delay_ms = 500);
        rc = dibs_jobs_run(jobs, &err);
    }
    if (rc != DIBS_OK)
        fprintf(stderr, "%s: %s\n", dibs_status_name(rc), err.message);
    dibs_jobs_close(jobs);
    dibs_close(client);
    return rc == DIBS_OK ? 0 : 1;
}
