/* events.c - an event bus: one instance publishes, every instance has a handler.
 *
 * An event is kept, so an instance that was cut off gets it when it is back, and learns
 * if events were trimmed meanwhile.
 *
 *     events [URL]
 */
/* SPDX-License-Identifier: MIT */
#include <dibs/dibs.h>
#include <semaphore.h>
#include <stdio.h>

enum { INSTANCES = 3 };

static sem_t handled;

static void handle_job_completion(const dibs_event *event, void *arg)
{
    if (event->kind == DIBS_EVENT)
        printf("instance %d: job %.*s is completed\n", *(int *)arg,
               (int)event->len, (const char *)event->data);
    else
        printf("instance %d: some events are gone\n", *(int *)arg);
    sem_post(&handled);
}

int main(int argc, char **argv)
{
    dibs_client *clients[INSTANCES] = {NULL};
    dibs_subscription *subs[INSTANCES] = {NULL};
    int numbers[INSTANCES];
    dibs_error err = {0};
    dibs_status rc = DIBS_OK;

    sem_init(&handled, 0, 0);
    for (int i = 0; i < INSTANCES && rc == DIBS_OK; i++) {
        numbers[i] = i + 1;
        rc = dibs_open(argc > 1 ? argv[1] : NULL, NULL, &clients[i], &err);
        if (rc == DIBS_OK)
            rc = dibs_subscribe(clients[i], "job-completed", NULL,
                                handle_job_completion, &numbers[i], &subs[i],
                                &err);
    }
    if (rc == DIBS_OK)
        rc = dibs_events_append(clients[0], "job-completed", "42", 2, NULL,
                                NULL, &err);
    for (int i = 0; i < INSTANCES && rc == DIBS_OK; i++)
        sem_wait(&handled);
    if (rc != DIBS_OK)
        fprintf(stderr, "%s: %s\n", dibs_status_name(rc), err.message);
    for (int i = 0; i < INSTANCES; i++) {
        dibs_unsubscribe(subs[i]);
        dibs_close(clients[i]);
    }
    return rc == DIBS_OK ? 0 : 1;
}
