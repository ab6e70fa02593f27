/* queue_choice.c - what the processes of the queue ground want of each item: a worker,
 * delays, few tries, nacks, deaths and redrives. Any process. */
/* SPDX-License-Identifier: MIT */
#include "queue_ground.h"

#include <inttypes.h>
#include <stdio.h>

/* A delayed retry holds up the line, so it is short there. */
enum { DELAY_MS = 300, LINE_DELAY_MS = 30 };
enum { DELAYED_OF = 16, FEW_OF = 32, FEW_TRIES = 3, ADDRESSED_OF = 4 };

static uint64_t draw(uint64_t *random)
{
    *random = *random * 6364136223846793005U + 1442695040888963407U;
    return *random >> 33;
}

static bool has_few_tries(int queue, uint64_t seq)
{
    return queue == POOL && seq % FEW_OF == 5;
}

void choose_push(int queue, pushed *one)
{
    if (queue == POOL && one->seq % DELAYED_OF == 3)
        one->delay_ms = 20 + one->seq % DELAY_MS;
    if (has_few_tries(queue, one->seq))
        one->tries = FEW_TRIES;
    if (queue == POOL && one->seq % ADDRESSED_OF == 2)
        one->worker = (uint32_t)(1 + one->seq / ADDRESSED_OF % (WORKERS + 1));
}

uint32_t worker_of(int queue, uint64_t who)
{
    return queue == POOL ? (uint32_t)(1 + who % WORKERS) : 0;
}

void write_worker(uint32_t worker, char out[WORKER_ROOM])
{
    out[0] = '\0';
    if (worker > 0)
        snprintf(out, WORKER_ROOM, "worker-%u", (unsigned)worker);
}

void choose_end(int queue, uint64_t *random, effect *one)
{
    uint64_t chance = draw(random) % 100;

    one->end = END_ACK;
    one->delay_ms = 0;
    if (chance < (has_few_tries(queue, one->seq) ? 70 : 8)) {
        one->end = END_NACK;
    } else if (chance < 14) {
        one->end = END_NACK;
        one->delay_ms =
            10 + draw(random) % (queue == LINE ? LINE_DELAY_MS : DELAY_MS);
    } else if (chance < 16) {
        one->end = END_DEAD;
    }
}

void write_reason(const effect *one, char out[REASON_ROOM])
{
    snprintf(out, REASON_ROOM, "%" PRIu64, one->fence);
}

bool wants_redrive(const control *ct, uint64_t *random, const effect *one)
{
    return !atomic_load(&ct->ending) && one->end == END_DEAD &&
           one->how == OUTCOME_OK && draw(random) % 2 == 0;
}
