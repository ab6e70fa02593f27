/* queue_worker.c - the processes of the queue ground on the steps of the store: they take
 * and ack in batches. */
/* SPDX-License-Identifier: MIT */
#include "queue_ground.h"
#include "queue_part.h"

#include <unistd.h>

const char *const queue_names[QUEUES] = {"chaos-pool", "chaos-line"};

/* Of all items so many are the line's. */
enum { LINE_OF = 50, WORK_US = 6000 };

size_t draw_items(control *ct, int queue, pushed *all, size_t most)
{
    size_t count = 0;

    while (count < most && !atomic_load(&ct->pushed)) {
        if (queue == LINE &&
            atomic_fetch_add(&ct->line, 1) >= ct->items / LINE_OF)
            break;
        all[count] = (pushed){.seq = atomic_fetch_add(&ct->next_seq, 1) + 1};
        if (all[count].seq > ct->items)
            break;
        choose_push(queue, &all[count]);
        count++;
    }
    return count;
}

int steps_producer(const char *folder, int queue, uint64_t who)
{
    control *ct = map_file(folder, CONTROL, sizeof(*ct));
    witness *wn = witness_open(folder);
    queue_part *pt =
        part_open(ct->url, queue_names[queue], ct->ttl_ms, 0, &ct->over);
    pushed all[PART_BATCH];
    size_t count;

    while (wn && pt && (count = draw_items(ct, queue, all, PART_BATCH)) > 0) {
        witness_push(wn, queue, who, all, count);
        part_push(pt, all, count);
        witness_pushed(wn, all, count);
    }
    part_close(pt);
    witness_close(wn);
    return 0;
}

void do_work(uint64_t *random)
{
    *random = *random * 6364136223846793005U + 1442695040888963407U;
    usleep((useconds_t)((*random >> 33) % WORK_US));
}

/* Some of those that it has given up are tried again. */
static void
redrive_some(const control *ct, witness *wn, queue_part *pt, int queue,
             const effect *all, size_t count, uint64_t *random)
{
    for (size_t i = 0; i < count; i++)
        if (wants_redrive(ct, random, &all[i])) {
            witness_redrive(wn, queue, &all[i]);
            witness_redriven(wn, queue, &all[i], part_redrive(pt, all[i].id));
        }
}

int steps_consumer(const char *folder, int queue, uint64_t who)
{
    control *ct = map_file(folder, CONTROL, sizeof(*ct));
    witness *wn = witness_open(folder);
    queue_part *pt = part_open(ct->url, queue_names[queue], ct->ttl_ms,
                               worker_of(queue, who), &ct->over);
    effect hand[PART_BATCH], next[PART_BATCH];
    size_t count = 0, taken = 0;
    uint64_t random = who;

    if (wn)
        witness_worker(wn, who, worker_of(queue, who));
    while (wn && pt && !atomic_load(&ct->over)) {
        part_next(pt, hand, count, queue == POOL ? PART_BATCH : 1, next,
                  &taken);
        witness_told(wn, queue, hand, count);
        redrive_some(ct, wn, pt, queue, hand, count, &random);
        /* What is done, is done while they are this process's. */
        count = 0;
        do_work(&random);
        for (size_t i = 0; i < taken; i++)
            choose_end(queue, &random, &next[i]);
        if (taken > 0 &&
            witness_effects(wn, queue, who, next, taken, part_is_valid, pt))
            for (; count < taken; count++)
                hand[count] = next[count];
        do_work(&random);
    }
    part_close(pt);
    witness_close(wn);
    return 0;
}
