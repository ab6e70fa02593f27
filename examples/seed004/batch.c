/* batch.c - results are processed when all jobs of a batch have completed.
 *
 * The job barrier is a latch: jobs count down, each with its id, and go on. A job
 * that is delivered twice counts once.
 *
 *     batch [URL]
 */
/* SPDX-License-Identifier: MIT */
#include <dibs/dibs.h>
#include <pthread.h>
#include <stdio.h>

enum { TOTAL_JOBS = 8, HOUR_MS = 3600 * 1000 };

/* The jobs: usually other processes, on other machines. */
static void *run_jobs(void *arg)
{
    dibs_error err = {0};
    char id[16];

    for (int job = 0; job < TOTAL_JOBS; job++) {
        snprintf(id, sizeof(id), "job-%d", job);
        if (dibs_latch_count_down(arg, "batch:42", TOTAL_JOBS, id, NULL,
                                  &err) != DIBS_OK)
            fprintf(stderr, "%s\n", err.message);
    }
    return NULL;
}

static dibs_status process_batch(dibs_client *client, const char *batch,
                                 uint32_t total, dibs_error *err)
{
    char name[64];
    dibs_status rc;

    snprintf(name, sizeof(name), "batch:%s", batch);
    rc = dibs_latch_wait(client, name, total, HOUR_MS, err);
    if (rc == DIBS_OK)
        printf("batch %s: all %u jobs completed\n", batch, (unsigned)total);
    return rc;
}

int main(int argc, char **argv)
{
    dibs_client *client = NULL;
    dibs_error err = {0};
    pthread_t jobs;
    dibs_status rc = dibs_open(argc > 1 ? argv[1] : NULL, NULL, &client, &err);

    if (rc == DIBS_OK && pthread_create(&jobs, NULL, run_jobs, client) == 0) {
        rc = process_batch(client, "42", TOTAL_JOBS, &err);
        pthread_join(jobs, NULL);
    }
    if (rc != DIBS_OK)
        fprintf(stderr, "%s: %s\n", dibs_status_name(rc), err.message);
    dibs_close(client);
    return rc == DIBS_OK ? 0 : 1;
}
