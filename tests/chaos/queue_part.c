/* queue_part.c - see queue_part.h: on the steps of the store. */
/* SPDX-License-Identifier: MIT */
#include "queue_part.h"
#include "queue_ground.h"

#include "base/rand.h"
#include "store/store.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STEP_MS = 1000, AGAIN_MS = 10, FULL_MS = 20, WAIT_MS = 200 };
enum { TEXT_ROOM = 32, GIVE_UP_MS = 50000 };

struct queue_part {
    const atomic_bool *over;
    dibs__store *st;
    int bell; /* -1: none yet */
    int64_t ttl_ms;
    char as[WORKER_ROOM];

    dibs__reserve ask;
    dibs__settlement settle[PART_BATCH];
    char reasons[PART_BATCH][REASON_ROOM];
    bool open;
    dibsx_nsec valid_until;
    effect *next; /* where deliveries go */
    size_t taken;

    dibs__push push;
    dibs__push_item items[PART_BATCH];
    char texts[PART_BATCH][TEXT_ROOM];
    char workers[PART_BATCH][WORKER_ROOM];
};

static uint64_t draw_lane(void)
{
    uint64_t bits = 0;

    if (!dibsx_random(&bits, sizeof(bits)))
        _Exit(2);
    return (bits >> 11) | 1;
}

static dibsx_nsec soon(void)
{
    return dibsx_after_ms(dibsx_now(), STEP_MS);
}

queue_part *part_open(const char *url, const char *queue, int64_t ttl_ms,
                      uint32_t worker, const atomic_bool *over)
{
    queue_part *pt = calloc(1, sizeof(*pt));
    dibs_error err = {0};

    if (!pt)
        return NULL;
    *pt = (queue_part){.over = over, .bell = -1, .ttl_ms = ttl_ms};
    pt->ask = (dibs__reserve){.queue = queue, .as = pt->as, .span_ms = ttl_ms};
    write_worker(worker, pt->as);
    pt->ask.settle = pt->settle;
    pt->push = (dibs__push){.queue = queue, .lane = draw_lane()};
    pt->push.items = pt->items;
    while (!atomic_load(over) &&
           dibs__store_open(url, soon(), &pt->st, &err) != DIBS_OK)
        poll(NULL, 0, AGAIN_MS);
    if (pt->st)
        return pt;
    free(pt);
    return NULL;
}

void part_close(queue_part *pt)
{
    if (!pt)
        return;
    dibs__store_close(pt->st);
    free(pt);
}

/* ---- push */

/* Sends a push until it is answered. `again`: it may have been done before. */
static dibs_status send_push(queue_part *pt, bool *again)
{
    dibsx_nsec give_up_at = dibsx_after_ms(dibsx_now(), GIVE_UP_MS);

    *again = false;
    while (!atomic_load(pt->over) && dibsx_now() < give_up_at) {
        dibs_error err = {0};
        dibs_status rc =
            pt->st->ops->queue->push(pt->st, &pt->push, soon(), &err);

        if (rc == DIBS_OK || rc == DIBS_FULL || rc == DIBS_LOST)
            return rc;
        *again = *again || rc != DIBS_UNAVAIL;
        poll(NULL, 0, AGAIN_MS);
    }
    *again = true;
    return DIBS_LOST;
}

void part_push(queue_part *pt, pushed *all, size_t count)
{
    dibs_status rc = DIBS_FULL;
    bool again = false;
    uint64_t sent_us = 0;

    for (size_t i = 0; i < count; i++) {
        int len = snprintf(pt->texts[i], TEXT_ROOM, "%" PRIu64, all[i].seq);

        write_worker(all[i].worker, pt->workers[i]);
        pt->items[i] = (dibs__push_item){.data = pt->texts[i],
                                         .len = (size_t)len,
                                         .delay_ms = (int64_t)all[i].delay_ms,
                                         .tries = all[i].tries,
                                         .to = pt->workers[i],
                                         .dedup = ""};
    }
    pt->push.count = count;
    while (rc == DIBS_FULL && !atomic_load(pt->over)) {
        pt->push.number++;
        sent_us = wall_us();
        rc = send_push(pt, &again);
        if (rc == DIBS_FULL)
            poll(NULL, 0, FULL_MS);
    }
    for (size_t i = 0; i < count; i++) {
        all[i].how = rc == DIBS_OK ? OUTCOME_OK
                     : again       ? OUTCOME_UNSURE
                                   : OUTCOME_NOT;
        all[i].id = rc == DIBS_OK ? pt->items[i].id : 0;
        all[i].sent_us = sent_us;
    }
    if (rc == DIBS_OK)
        return;
    pt->push.lane = draw_lane();
    pt->push.number = 0;
}

/* ---- reserve */

bool part_is_valid(void *arg)
{
    const queue_part *pt = arg;

    return pt->open && dibsx_now() < pt->valid_until;
}

static void take_delivery(const dibs__delivery *delivery, void *arg)
{
    queue_part *pt = arg;
    char text[TEXT_ROOM] = "";

    if (pt->taken == PART_BATCH || delivery->len >= sizeof(text))
        _Exit(2); /* more than was asked for, or another's */
    memcpy(text, delivery->data, delivery->len);
    pt->next[pt->taken++] = (effect){.id = delivery->token.id,
                                     .fence = delivery->token.fence,
                                     .attempt = delivery->token.attempt,
                                     .lost = delivery->lost,
                                     .at_us = wall_us(),
                                     .seq = strtoull(text, NULL, 10)};
}

/* Sends the next number until it is answered. */
static dibs_status send_ask(queue_part *pt, bool *again)
{
    int64_t drift_ms = pt->ttl_ms / 100 + 2;

    pt->ask.number++;
    *again = false;
    while (!atomic_load(pt->over)) {
        dibsx_nsec sent_at = dibsx_now();
        dibs_error err = {0};
        dibs_status rc;

        pt->taken = 0;
        rc = pt->st->ops->queue->reserve(pt->st, &pt->ask, soon(),
                                         take_delivery, pt, &err);
        if (rc == DIBS_OK) {
            pt->valid_until = dibsx_after_ms(sent_at, pt->ttl_ms - drift_ms);
            pt->ask.seen = pt->ask.stamp;
        }
        if (rc == DIBS_OK || rc == DIBS_LOST)
            return rc;
        *again = *again || rc != DIBS_UNAVAIL;
        poll(NULL, 0, AGAIN_MS);
    }
    *again = true;
    return DIBS_LOST;
}

static void open_lane(queue_part *pt)
{
    bool again;

    while (!pt->open && !atomic_load(pt->over)) {
        pt->ask.lane = draw_lane();
        pt->ask.number = 0;
        pt->ask.seen = 0;
        pt->ask.settle_count = 0;
        pt->ask.want = 0;
        pt->ask.wait = false;
        pt->open = send_ask(pt, &again) == DIBS_OK;
    }
}

/* A ring means "ask"; without one it asks soon. */
static void await_ring(queue_part *pt)
{
    dibs__notice notices[8];
    dibs_error err = {0};

    if (pt->bell < 0 &&
        pt->st->ops->doorbell_open(pt->st, soon(), &pt->bell, &err) != DIBS_OK)
        pt->bell = -1;
    poll(&(struct pollfd){.fd = pt->bell, .events = POLLIN}, 1,
         pt->bell < 0 ? AGAIN_MS : WAIT_MS);
    while (pt->bell >= 0 && pt->st->ops->doorbell_read(pt->st, notices, 8) == 8)
        continue;
}

static void ask_to_settle(queue_part *pt, effect *all, size_t count)
{
    static const dibs__settle_verb verbs[] = {[END_ACK] = DIBS__ITEM_ACK,
                                              [END_NACK] = DIBS__ITEM_NACK,
                                              [END_DEAD] = DIBS__ITEM_DEAD};
    uint64_t sent_us = wall_us();

    pt->ask.settle_count = count;
    for (size_t i = 0; i < count; i++) {
        all[i].sent_us = sent_us;
        write_reason(&all[i], pt->reasons[i]);
        pt->settle[i] = (dibs__settlement){
            .verb = verbs[all[i].end],
            .token = {all[i].id, all[i].fence, all[i].attempt},
            .ms = (int64_t)all[i].delay_ms,
            .reason = all[i].end == END_ACK ? NULL : pt->reasons[i]};
    }
}

void part_next(queue_part *pt, effect *all, size_t count, size_t want,
               effect *next, size_t *taken)
{
    bool again = false;
    dibs_status rc;

    open_lane(pt);
    pt->ask.hands = 1;
    pt->ask.want = (uint32_t)want;
    pt->ask.wait = true;
    ask_to_settle(pt, all, count);
    pt->next = next;
    rc = send_ask(pt, &again);
    for (size_t i = 0; i < count; i++)
        if (rc == DIBS_OK)
            all[i].how = pt->settle[i].rc == DIBS_OK ? OUTCOME_OK : OUTCOME_NOT;
        else
            all[i].how = again ? OUTCOME_UNSURE : OUTCOME_NOT;
    if (rc != DIBS_OK) {
        pt->open = false;
        pt->taken = 0;
    }
    *taken = pt->taken;
    if (pt->open && pt->taken == 0)
        await_ring(pt);
}

outcome part_redrive(queue_part *pt, uint64_t id)
{
    dibs_error err = {0};
    size_t count = 0;
    dibs_status rc =
        pt->st->ops->queue_admin->redrive(pt->st, pt->ask.queue, id, 1, soon(),
                                          &count, &err);

    if (rc == DIBS_OK && count == 1)
        return OUTCOME_OK;
    if (rc == DIBS_OK || rc == DIBS_NOTFOUND)
        return OUTCOME_GONE;
    return rc == DIBS_UNKNOWN ? OUTCOME_UNSURE : OUTCOME_NOT;
}
