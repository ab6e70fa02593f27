/* fuzz_queue.h - the queue steps of a store, by number, for fuzz_step.h. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_TESTS_FUZZ_QUEUE_H
#define DIBS_TESTS_FUZZ_QUEUE_H

#include "fuzz.h"
#include "store/store.h"

enum { FUZZ_QUEUE_STEPS = 9 };

/* An item that was made has a number. */
static inline dibs_status fuzz_push(dibs__store *st, uint64_t number,
                                    dibsx_nsec deadline, dibs_error *err)
{
    dibs__push_item items[2] = {
        {.data = "x", .len = 1, .to = "", .dedup = ""},
        {.data = "y", .len = 1, .to = "", .dedup = number == 1 ? "id" : ""}};
    const dibs__push push = {
        .queue = "q", .lane = 7, .number = number, .items = items, .count = 2};
    dibs_status rc = st->ops->queue->push(st, &push, deadline, err);

    for (int i = 0; i < 2; i++)
        REQUIRE((rc == DIBS_OK) == (items[i].id > 0));
    return rc;
}

static inline void fuzz_each_delivery(const dibs__delivery *delivery, void *arg)
{
    (void)arg;
    REQUIRE(delivery->token.id > 0 && delivery->token.fence > 0 &&
            delivery->token.attempt > 0 && delivery->limit_ms >= 0);
    REQUIRE(delivery->data || delivery->len == 0);
}

/* Nothing is settled but by an answer, and that has a stamp. */
static inline dibs_status
fuzz_reserve(dibs__store *st, uint64_t number, dibs__settle_verb verb,
             dibsx_nsec deadline, dibs_error *err)
{
    dibs__settlement settle = {.verb = verb,
                               .token = {.id = 5, .fence = 6, .attempt = 1}};
    dibs__reserve ask = {.queue = "q",
                         .lane = 7,
                         .number = number,
                         .seen = number - 1,
                         .span_ms = 1000,
                         .want = 2,
                         .as = "",
                         .settle = &settle,
                         .settle_count = number > 1};
    dibs_status rc = st->ops->queue->reserve(st, &ask, deadline,
                                             fuzz_each_delivery, NULL, err);

    REQUIRE((rc == DIBS_OK) == (ask.stamp > 0) && ask.due_ms >= -1);
    REQUIRE(rc == DIBS_OK || number == 1 || settle.rc == rc);
    return rc;
}

static inline dibs_status
fuzz_tend(dibs__store *st, dibsx_nsec deadline, dibs_error *err)
{
    dibs__tend items[2] = {{.queue = "q", .lane = 7, .span_ms = 1000},
                           {.queue = "r", .lane = 8, .span_ms = 1000}};
    dibs_status rc = st->ops->queue->tend(st, items, 2, deadline, err);

    for (int i = 0; i < 2; i++)
        REQUIRE(items[i].left_ms >= 0 &&
                (items[i].rc == DIBS_OK || !items[i].ready));
    return rc;
}

static inline bool fuzz_each_view(const dibs__item_view *item, void *arg)
{
    REQUIRE(item->place == *(const dibs__item_place *)arg);
    REQUIRE(memchr(item->to, '\0', sizeof(item->to)));
    REQUIRE(memchr(item->dedup, '\0', sizeof(item->dedup)));
    REQUIRE(memchr(item->reason, '\0', sizeof(item->reason)));
    REQUIRE(item->data || item->len == 0);
    return true;
}

static inline bool fuzz_each_queue(const char *queue, void *arg)
{
    (void)arg;
    REQUIRE(queue);
    return true;
}

static inline dibs_status fuzz_queue_step(dibs__store *st, int which,
                                          dibsx_nsec deadline, dibs_error *err)
{
    const dibs__queue_admin_ops *ops = st->ops->queue_admin;
    dibs__item_place place = DIBS__PLACE_OUT;
    dibs__queue_stats stats;
    size_t count;

    switch (which) {
    case 0:
    case 1:
        return fuzz_push(st, 1 + (uint64_t)which, deadline, err);
    case 2:
        return fuzz_reserve(st, 1, DIBS__ITEM_ACK, deadline, err);
    case 3:
        return fuzz_reserve(st, 2, DIBS__ITEM_ACK, deadline, err);
    case 4:
        return fuzz_reserve(st, 2, DIBS__ITEM_NACK, deadline, err);
    case 5:
        return fuzz_tend(st, deadline, err);
    case 6:
        return ops->peek(st, "q", place, 0, 10, deadline, fuzz_each_view,
                         &place, err);
    case 7:
        return ops->stats(st, "q", deadline, &stats, err);
    default:
        return ops->purge(st, "q", DIBS__PLACE_READY, 10, deadline, &count,
                          err);
    }
}

#endif
