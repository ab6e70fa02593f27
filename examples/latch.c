/* latch.c - go on when all jobs of a batch are done, wherever they ran.
 *
 * Each job counts down with its own id, so that a job that ran twice counts once.
 * Any number of clients may wait; they need not know who does the work.
 *
 *     latch [URL]
 */
/* SPDX-License-Identifier: MIT */
#include <dibs/dibs.h>
#include <pthread.h>
#include <stdio.h>

enum { JOBS = 10 };

/* The workers: usually other processes, on other machines. */
static void *work(void *arg)
{
    dibs_client *client = arg;
    dibs_error err = {0};
    char id[16];

    for (int job = 0; job < JOBS + 3; job++) {
        /* Three jobs are delivered twice. */
        snprintf(id, sizeof(id), "job-%d", job % JOBS);
        if (dibs_latch_count_down(client, "batch:42", JOBS, id, NULL, &err) !=
            DIBS_OK)
            fprintf(stderr, "%s\n", err.message);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    dibs_client *client = NULL;
    dibs_error err = {0};
    pthread_t worker;
    dibs_status rc = dibs_open(argc > 1 ? argv[1] : NULL, NULL, &client, &err);

    if (rc != DIBS_OK || pthread_create(&worker, NULL, work, client) != 0) {
        fprintf(stderr, "%s: %s\n", dibs_status_name(rc), err.message);
        return 1;
    }
    rc = dibs_latch_wait(client, "batch:42", JOBS, 60000, &err);
    printf("all %d jobs are done: %s\n", JOBS, dibs_status_name(rc));
    pthread_join(worker, NULL);
    /* For the next batch of this name; most batches have a name of their own. */
    rc = dibs_latch_reset(client, "batch:42", &err);
    dibs_close(client);
    return rc == DIBS_OK ? 0 : 1;
}
