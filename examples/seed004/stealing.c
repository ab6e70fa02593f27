/* stealing.c - workers do their own items first, then steal from the worker that has most.
 *
 * TryDequeue and StealWork are one call, which also waits: nobody sleeps beside work. The
 * items of a worker that dies are everybody's, at their old places.
 *
 *     stealing [URL]
 */
/* SPDX-License-Identifier: MIT */
#include <dibs/dibs.h>
#include <stdio.h>

enum { JOBS = 6 };

/* Works until there is nothing more, or it has done enough. */
static int process_work(dibs_queue *work, const char *id, int most)
{
    dibs_item *item = NULL;
    dibs_error err = {0};
    int done = 0;

    /* A worker that goes on for ever waits here: -1. */
    while (done < most && dibs_queue_reserve(work, 0, &item, &err) == DIBS_OK) {
        printf("%s does %s\n", id, (const char *)dibs_item_data(item, NULL));
        done += dibs_item_ack(item, &err) == DIBS_OK;
        dibs_item_free(item);
    }
    return done;
}

int main(int argc, char **argv)
{
    const char *ids[] = {"anna", "bert"}; /* usually a process each */
    dibs_queue *work[] = {NULL, NULL};
    dibs_client *client = NULL;
    dibs_error err = {0};
    dibs_status rc = dibs_open(argc > 1 ? argv[1] : NULL, NULL, &client, &err);

    for (int i = 0; i < 2 && rc == DIBS_OK; i++)
        rc = dibs_queue_new(client, "work", DIBS_QUEUE_OPTS(.as = ids[i]),
                            &work[i], &err);
    for (int i = 0; i < 2 && rc == DIBS_OK; i++)
        process_work(work[i], ids[i], 1); /* the first look makes it known */
    for (int i = 0; i < JOBS && rc == DIBS_OK; i++) {
        const char *to = ids[i == JOBS - 1]; /* the last one is bert's */

        rc = dibs_queue_push(work[0], to, 4, DIBS_PUSH_OPTS(.to = to), NULL,
                             &err);
    }
    if (rc == DIBS_OK) {
        int first = process_work(work[0], ids[0], 2);
        int others = process_work(work[1], ids[1], JOBS);

        printf("anna did %d, bert %d\n", first, others);
    }
    dibs_queue_free(work[0]);
    dibs_queue_free(work[1]);
    dibs_close(client);
    return rc == DIBS_OK ? 0 : 1;
}
