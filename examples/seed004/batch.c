/* batch.c - results are processed when all jobs of a batch have ended: batch [URL]
 *
 * Any program can wait for a batch. Where the work is no job, use ../latch.c. */
/* SPDX-License-Identifier: MIT */
#include <dibs/dibs.h>
#include <pthread.h>
#include <stdio.h>

enum { JOBS = 8, HOUR_MS = 3600 * 1000 };
static dibs_client *client;
static dibs_jobs *jobs;
static dibs_error why = {DIBS_UNAVAIL, .message = "cannot start a thread"};

static dibs_status convert_file(dibs_run *run, void *arg, dibs_error *err)
{
    (void)arg;
    return dibs_run_result(run, "done", 4, err);
}

static void *process_batch(void *arg)
{
    dibs_batch_sum sum;

    why.status = dibs_batch_wait(client, "42", JOBS, HOUR_MS, &sum, &why);
    if (why.status == DIBS_OK)
        printf("batch 42: all %u jobs completed, %u of them badly\n",
               (unsigned)sum.ended, (unsigned)sum.failed);
    dibs_jobs_stop(jobs); /* so that the example ends */
    return arg;
}

int main(int argc, char **argv)
{
    char run[DIBS_RUN_SIZE];
    dibs_error err = {0};
    pthread_t waiter;
    dibs_status rc = dibs_open(argc > 1 ? argv[1] : NULL, NULL, &client, &err);

    if (rc == DIBS_OK)
        rc = dibs_jobs_open(client, NULL, &jobs, &err);
    if (rc == DIBS_OK) {
        DIBS_JOB(jobs, "convert", convert_file, .attempts = 3);
        rc = dibs_jobs_publish(jobs, &err);
    }
    for (int job = 0; job < JOBS && rc == DIBS_OK; job++)
        rc = dibs_job_start(client, "convert", DIBS_START_OPTS(.batch = "42"),
                            run, &err);
    if (rc == DIBS_OK &&
        pthread_create(&waiter, NULL, process_batch, NULL) == 0) {
        rc = dibs_jobs_run(jobs, &err);
        pthread_join(waiter, NULL);
    }
    if (rc == DIBS_OK)
        rc = (err = why).status;
    if (rc != DIBS_OK)
        fprintf(stderr, "%s: %s\n", dibs_status_name(rc), err.message);
    dibs_jobs_close(jobs);
    dibs_close(client);
    return rc == DIBS_OK ? 0 : 1;
}
