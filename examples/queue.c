/* queue.c - jobs in a queue, done by a pool of threads.
 *
 * Usually the producer and the workers are different programs. A job that fails comes
 * back later; a worker that dies loses nothing.
 *
 *     queue [URL]
 */
/* SPDX-License-Identifier: MIT */
#include <dibs/dibs.h>
#include <stdatomic.h>
#include <stdio.h>

enum { JOBS = 20, THREADS = 4 };

typedef struct workshop {
    dibs_queue *queue;
    atomic_int done;
} workshop;

/* Called for each item, on one of the threads. */
static dibs_status work(dibs_item *item, void *arg)
{
    workshop *shop = arg;
    dibs_error err = {0};

    /* The first attempt of each job fails, and is repeated at once. */
    if (dibs_item_attempt(item) == 1)
        return dibs_item_nack(item, 0, "no luck", &err);
    if (dibs_item_check(item) != DIBS_OK)
        return DIBS_LOST;
    if (atomic_fetch_add(&shop->done, 1) + 1 == JOBS)
        dibs_queue_cancel(shop->queue);
    return DIBS_OK; /* the pool acks it */
}

int main(int argc, char **argv)
{
    workshop shop = {.done = 0};
    dibs_client *client = NULL;
    dibs_error err = {0};
    dibs_status rc = dibs_open(argc > 1 ? argv[1] : NULL, NULL, &client, &err);

    if (rc == DIBS_OK)
        rc = dibs_queue_new(client, "jobs", NULL, &shop.queue, &err);
    for (int job = 0; job < JOBS && rc == DIBS_OK; job++) {
        char id[32];
        int len = snprintf(id, sizeof(id), "job-%d", job);

        /* A push that the program repeats makes no second job. */
        rc = dibs_queue_push(shop.queue, id, (size_t)len,
                             DIBS_PUSH_OPTS(.dedup_id = id), NULL, &err);
    }
    if (rc == DIBS_OK)
        rc = dibs_queue_work(shop.queue, THREADS, work, &shop, &err);
    printf("%d jobs are done: %s\n", atomic_load(&shop.done),
           rc == DIBS_OK ? "OK" : err.message);
    dibs_queue_free(shop.queue);
    dibs_close(client);
    return rc == DIBS_OK ? 0 : 1;
}
