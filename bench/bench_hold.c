/* bench_hold.c - what items in hand cost a Redis server.
 *
 *     bench_hold PORT tend COUNT   scripts in each third of the ttl while a client has COUNT
 *                                  items of one queue in hand, and does nothing else */
/* SPDX-License-Identifier: MIT */
#include "bench/pairs.h"
#include "bench/samples.h"
#include "bench/work.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { TTL_MS = 3000, THIRDS = 6 };

static void must(dibs_status rc, const dibs_error *err)
{
    if (rc != DIBS_OK)
        give_up("queue", err->message);
}

static dibs_queue *queue_open(const ground *on)
{
    dibs_queue *queue;
    dibs_error err;

    must(dibs_queue_set(on->client, "bench-hold",
                        DIBS_QUEUE_SETTINGS(.fields = DIBS_QUEUE_SET_CAP,
                                            .cap = 2000000),
                        &err),
         &err);
    must(dibs_queue_new(on->client, "bench-hold",
                        DIBS_QUEUE_OPTS(.ttl_ms = TTL_MS), &queue, &err),
         &err);
    return queue;
}

static void push_many(dibs_queue *queue, size_t count)
{
    dibs_push_item all[DIBS_QUEUE_BATCH];
    dibs_error err;

    for (size_t i = 0; i < DIBS_QUEUE_BATCH; i++)
        all[i] = (dibs_push_item){.data = "item", .len = 4};
    while (count > 0) {
        size_t part = count < DIBS_QUEUE_BATCH ? count : DIBS_QUEUE_BATCH;

        must(dibs_queue_push_many(queue, all, part, NULL, NULL, &err), &err);
        count -= part;
    }
}

static dibs_item *take(dibs_queue *queue)
{
    dibs_item *item;
    dibs_error err;

    must(dibs_queue_reserve(queue, 0, &item, &err), &err);
    return item;
}

static void measure_tends(const ground *on, size_t count)
{
    const struct timespec span = {.tv_sec = TTL_MS / 1000 * THIRDS / 3};
    dibs_queue *queue = queue_open(on);
    dibs_item **items = calloc(count, sizeof(dibs_item *));
    long long from;

    if (!items)
        give_up("items", "out of memory");
    push_many(queue, count);
    for (size_t i = 0; i < count; i++)
        items[i] = take(queue);
    from = raw_calls(on->bare, "evalsha");
    nanosleep(&span, NULL);
    printf("%.2f\n",
           (double)(raw_calls(on->bare, "evalsha") - from) / (double)THIRDS);
    for (size_t i = 0; i < count; i++)
        dibs_item_free(items[i]);
    free(items);
    dibs_queue_free(queue);
}

int main(int argc, char **argv)
{
    static const work list[] = {{"tend", measure_tends}, {NULL, NULL}};

    return measure_work(argc, argv, list, 100000);
}
