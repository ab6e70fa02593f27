/* fuzz_step.h - a step of a store, by number, for fuzz targets whose server answers
 * with the input. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_TESTS_FUZZ_STEP_H
#define DIBS_TESTS_FUZZ_STEP_H

#include "base/clock.h"
#include "fuzz.h"
#include "fuzz_queue.h"
#include "store/store.h"

#define fuzz_owner "0123456789abcdef0123456789abcdef"

static inline bool fuzz_each_entry(const char *name, const dibs__entry *entries,
                                   size_t count, void *arg)
{
    (void)arg;
    REQUIRE(name && (entries || count == 0));
    return true;
}

static inline bool fuzz_each_value(const dibs_state_item *item, void *arg)
{
    (void)arg;
    REQUIRE(item->key);
    return true;
}

static inline bool fuzz_each_log(const dibs__log_entry *entry, void *arg)
{
    (void)arg;
    REQUIRE(entry->data || entry->len == 0);
    return true;
}

/* What was granted has a fence, and time: no more than it can have. */
static inline void
fuzz_check_grant(dibs_status rc, const dibs__answer *ans, int64_t most_ms)
{
    if (rc == DIBS_OK)
        REQUIRE(ans->fence > 0 && ans->fence <= INT64_MAX && ans->left_ms > 0 &&
                ans->left_ms <= (ans->claim ? DIBS__CLAIM_MS : most_ms));
    if (rc == DIBS_BUSY)
        REQUIRE(ans->fence <= INT64_MAX && ans->left_ms >= 0);
}

static inline void
fuzz_check_renewals(dibs_status rc, const dibs__renewal *items)
{
    for (int i = 0; i < 2; i++)
        REQUIRE(
            rc != DIBS_OK || items[i].rc != DIBS_OK ||
            (items[i].left_ms > 0 && items[i].left_ms <= DIBS__LEASE_MAX_MS));
}

static inline dibs_status fuzz_lease_step(dibs__store *st, int which,
                                          dibsx_nsec deadline, dibs_error *err)
{
    const dibs__lease_ops *ops = st->ops->lease;
    dibs__ask asks[2] = {{.name = "a",
                          .owner = fuzz_owner,
                          .permits = 1,
                          .ttl_ms = 1000,
                          .most_ms = 1000,
                          .who = "host:1",
                          .alone = which == 1},
                         {.name = "b",
                          .owner = fuzz_owner,
                          .permits = 1,
                          .ttl_ms = 1000,
                          .most_ms = 1000,
                          .who = "host:1"}};
    dibs__renewal again[2] = {
        {.name = "a", .owner = fuzz_owner, .fence = 5, .ttl_ms = 1000},
        {.name = "b", .owner = fuzz_owner, .fence = 6, .ttl_ms = 1000}};
    dibs__answer answers[2] = {{0}};
    size_t blocked;
    uint32_t count;
    dibs_status rc;

    switch (which) {
    case 0:
    case 1:
        rc = ops->acquire(st, asks, deadline, answers, err);
        fuzz_check_grant(rc, &answers[0], 1000);
        return rc;
    case 2:
        rc = ops->renew(st, again, 2, deadline, err);
        fuzz_check_renewals(rc, again);
        return rc;
    case 3:
        return ops->release(st,
                            &(dibs__leave){.name = "a", .owner = fuzz_owner},
                            deadline, err);
    case 4:
        rc = ops->acquire_all(st, asks, 2, deadline, answers, &blocked, err);
        fuzz_check_grant(rc, &answers[0], 1000);
        fuzz_check_grant(rc, &answers[1], 1000);
        return rc;
    case 5:
        rc = ops->convert(st,
                          &(dibs__conversion){.name = "a",
                                              .owner = fuzz_owner,
                                              .fence = 5,
                                              .to_owner = fuzz_owner,
                                              .ttl_ms = 1000},
                          deadline, answers, err);
        fuzz_check_grant(rc, &answers[0], DIBS__LEASE_MAX_MS);
        REQUIRE(rc != DIBS_OK || answers[0].fence >= 5);
        return rc;
    case 6:
        return ops->yield(st, "a", 5, deadline, &count, err);
    case 7:
        return ops->inspect(st, "a", deadline, fuzz_each_entry, NULL, err);
    case 8:
        return ops->list(st, "", deadline, fuzz_each_entry, NULL, err);
    default:
        return ops->revoke(st, "a", 5, deadline, &count, err);
    }
}

static inline dibs_status fuzz_other_step(dibs__store *st, int which,
                                          dibsx_nsec deadline, dibs_error *err)
{
    const dibs__value_ops *ops = st->ops->value;
    dibs_value value = {0};
    uint64_t number;
    int64_t sum;
    dibs_status rc;

    switch (which) {
    case 10:
        rc = ops->get(st, "k", deadline, &value, err);
        dibs_value_free(&value);
        return rc;
    case 11:
        return ops->add(st, "k", 1, deadline, &sum, err);
    case 12:
        return ops->del(st, "k", 5, deadline, err);
    case 13:
        return ops->list(st, "", deadline, fuzz_each_value, NULL, err);
    case 14:
        return st->ops->log->append(
            st,
            &(dibs__append){.topic = "t", .data = "x", .len = 1, .keep = 10},
            deadline, &number, err);
    case 15:
        return st->ops->log->read(st, "t", 0, 10, deadline, fuzz_each_log, NULL,
                                  err);
    default:
        return st->ops->now(st, deadline, &sum, err);
    }
}

static inline bool fuzz_each_seat(const dibs__seat_entry *seat, void *arg)
{
    (void)arg;
    REQUIRE(memchr(seat->id, '\0', sizeof(seat->id)));
    REQUIRE(memchr(seat->who, '\0', sizeof(seat->who)));
    return true;
}

static inline bool fuzz_each_roster(const dibs__roster_row *row, void *arg)
{
    (void)arg;
    REQUIRE(memchr(row->name, '\0', sizeof(row->name)));
    REQUIRE(strncmp(row->name, "a", 1) == 0 && row->counts <= row->live);
    REQUIRE(row->head.kind == DIBS__ROSTER_BARRIER && row->live > 0);
    return true;
}

/* Nobody keeps a seat, draws tokens or counts calls beyond what can be. */
static inline dibs_status fuzz_coord_step(dibs__store *st, int which,
                                          dibsx_nsec deadline, dibs_error *err)
{
    dibs__meet items[2] = {
        {.name = "a", .id = fuzz_owner, .verb = DIBS__KEEP, .ttl_ms = 1000},
        {.name = "b", .id = fuzz_owner, .verb = DIBS__ARRIVE, .ttl_ms = 1000}};
    const dibs__draw draw = {.name = "a",
                             .cost = 3,
                             .least = 2,
                             .count = 10,
                             .period_us = 1000000,
                             .burst = 5};
    const dibs__meter report = {.key = "k", .window_ms = 1000, .bad = 1};
    const dibs__roster_query query = {DIBS__ROSTER_BARRIER, "a", "", 4};
    dibs__roster_head head;
    dibs__drawn drawn;
    dibs__sums sums;
    dibs_status rc;

    switch (which) {
    case 17:
        rc = st->ops->roster->meet(st, items, 2, deadline, err);
        for (int i = 0; i < 2 && rc == DIBS_OK; i++)
            REQUIRE(items[i].number <= INT64_MAX && items[i].left_ms >= 0);
        REQUIRE(rc != DIBS_OK || items[0].left_ms <= DIBS__LEASE_MAX_MS);
        return rc;
    case 18:
        return st->ops->roster->roll_call(st, "a", deadline, &head,
                                          fuzz_each_seat, NULL, err);
    case 19:
        rc = st->ops->rate->draw(st, &draw, deadline, &drawn, err);
        REQUIRE(rc != DIBS_OK || (drawn.granted >= 2 && drawn.granted <= 3));
        REQUIRE(drawn.wait_us >= 0 && drawn.remaining >= 0);
        return rc;
    case 21:
        return st->ops->roster->rosters(st, &query, deadline, fuzz_each_roster,
                                        NULL, err);
    default:
        rc = st->ops->meter->meter(st, &report, deadline, &sums, err);
        REQUIRE(rc != DIBS_OK || (sums.bad >= 0 && sums.good >= 0 &&
                                  sums.reporters <= DIBS__METER_MARKS));
        REQUIRE((rc != DIBS_OK && rc != DIBS_STALE) ||
                memchr(sums.state, '\0', sizeof(sums.state)));
        return rc;
    }
}

/* Whatever the server says, the step ends with a status. */
static inline void fuzz_step(dibs__store *st, int which, dibsx_nsec deadline)
{
    dibs_error err = {0};
    dibs_status rc;

    which %= 22 + FUZZ_QUEUE_STEPS;
    rc = which < 10   ? fuzz_lease_step(st, which, deadline, &err)
         : which < 17 ? fuzz_other_step(st, which, deadline, &err)
         : which < 22 ? fuzz_coord_step(st, which, deadline, &err)
                      : fuzz_queue_step(st, which - 22, deadline, &err);
    REQUIRE(rc >= DIBS_OK && rc <= DIBS_FORKED);
    REQUIRE(memchr(err.message, '\0', sizeof(err.message)));
}

#endif
