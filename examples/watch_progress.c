/* watch_progress.c - a job reports its progress; others see it at once.
 *
 * dibs_state_set() writes the value and tells all clients that watch it, in one
 * step. A watcher that was away sees the last value when it is back.
 *
 *     watch_progress [URL]
 */
/* SPDX-License-Identifier: MIT */
#include <dibs/dibs.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

/* The job: usually another process, on another machine. */
static void *work(void *arg)
{
    dibs_client *client = arg;
    dibs_error err = {0};
    char text[8];

    for (int percent = 0; percent <= 100; percent += 10) {
        int len = snprintf(text, sizeof(text), "%d", percent);

        if (dibs_state_set(client, "progress:42", text, (size_t)len, 0, NULL,
                           &err) != DIBS_OK)
            fprintf(stderr, "%s\n", err.message);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    dibs_client *client = NULL;
    dibs_watch *watch = NULL;
    dibs_error err = {0};
    dibs_status rc;
    pthread_t job;
    long percent = -1;

    rc = dibs_open(argc > 1 ? argv[1] : NULL, NULL, &client, &err);
    if (rc == DIBS_OK)
        rc = dibs_state_watch(client, "progress:42", &watch, &err);
    if (rc != DIBS_OK || pthread_create(&job, NULL, work, client) != 0) {
        fprintf(stderr, "%s: %s\n", dibs_status_name(rc), err.message);
        return 1;
    }
    while (percent < 100) {
        dibs_change change;

        if (dibs_watch_next(watch, -1, &change, &err) != DIBS_OK)
            break;
        if (change.value.data)
            percent = strtol(change.value.data, NULL, 10);
        dibs_value_free(&change.value);
    }
    printf("job 42 is at %ld %%\n", percent);
    pthread_join(job, NULL);
    dibs_watch_free(watch);
    dibs_close(client);
}
