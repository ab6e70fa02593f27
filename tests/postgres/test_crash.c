/* test_crash.c - a server that crashes right after a step: what the step told
 * somebody, or did for somebody else, is there afterwards.
 *
 * The server writes its log when a step waits for that, and else not for ten
 * seconds: what nobody waited for is lost. */
/* SPDX-License-Identifier: MIT */
#include "pg_world.h"

#include "store/store.h"
#include <stdio.h>
#include <string.h>

#define ONE   "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define OTHER "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define THIRD "cccccccccccccccccccccccccccccccc"

enum { TTL_MS = 60000 };

static dibsx_nsec soon(void)
{
    return dibsx_after_ms(dibsx_now(), PG_BOUND_MS);
}

static dibs__ask ask_of(const char *owner)
{
    return (dibs__ask){.name = "k",
                       .owner = owner,
                       .permits = 1,
                       .ttl_ms = TTL_MS,
                       .who = "host:1"};
}

static uint64_t ask(dibs__store *st, const dibs__ask *what, dibs_status rc)
{
    dibs__answer ans;

    CHECK(rc, st->ops->lease->acquire(st, what, soon(), &ans, err));
    return ans.fence;
}

static uint64_t hold(dibs__store *st, const char *owner)
{
    dibs__ask what = ask_of(owner);

    return ask(st, &what, DIBS_OK);
}

static void wait_for(dibs__store *st, const char *owner)
{
    dibs__ask what = ask_of(owner);

    what.flags = DIBS__ASK_QUEUE;
    ask(st, &what, DIBS_BUSY);
}

/* Holds it for a short time, in which others come to wait; until it is over. Then a
 * third one asks, and is refused, for those have places: if they still have. */
static void be_refused_after(dibs__store *st, const char *const *waiters)
{
    const int hold_ms = pace_ms(300) < DIBS__PLACE_MS / 3 ? (int)pace_ms(300)
                                                          : DIBS__PLACE_MS / 3;
    dibs__ask what = ask_of(ONE);
    dibsx_nsec asked_at = dibsx_now(), placed_at;
    dibs__answer ans;
    dibs_status rc;

    what.ttl_ms = hold_ms;
    ask(st, &what, DIBS_OK);
    what.flags = DIBS__ASK_QUEUE;
    what.ttl_ms = TTL_MS;
    placed_at = dibsx_now();
    for (; *waiters; waiters++) {
        what.owner = *waiters;
        rc = st->ops->lease->acquire(st, &what, soon(), &ans, NULL);
        IN_TIME(rc == DIBS_BUSY || world_ms_since(asked_at) < hold_ms);
        assert_status(rc, DIBS_BUSY);
    }
    asked_at = dibsx_now();
    while (world_ms_since(asked_at) <= hold_ms)
        world_sleep_ms(5);
    what = ask_of(THIRD);
    rc = st->ops->lease->acquire(st, &what, soon(), &ans, NULL);
    IN_TIME(rc == DIBS_BUSY || world_ms_since(placed_at) < DIBS__PLACE_MS);
    assert_status(rc, DIBS_BUSY);
}

static void leave(dibs__store *st, const dibs__leave *how)
{
    CHECK(DIBS_OK, st->ops->lease->release(st, how, soon(), err));
}

static void grant(dibs__store *st)
{
    hold(st, ONE);
}

static void grant_readers(dibs__store *st)
{
    dibs__ask what = ask_of(ONE);

    what.mode = DIBS__SHARED;
    ask(st, &what, DIBS_OK);
    what.owner = OTHER;
    ask(st, &what, DIBS_OK);
}

static void hand_over(dibs__store *st)
{
    dibsx_nsec placed_at;

    hold(st, ONE);
    placed_at = dibsx_now();
    wait_for(st, OTHER);
    leave(st, &(dibs__leave){.name = "k", .owner = ONE});
    IN_TIME(world_ms_since(placed_at) < DIBS__PLACE_MS);
}

/* The one that asks is refused because the queue goes first, which it serves. */
static void serve_the_queue_and_be_refused(dibs__store *st)
{
    be_refused_after(st, (const char *const[]){OTHER, NULL});
}

/* The same by one that has a place behind it and now does not want to wait. */
static void serve_the_queue_and_give_up(dibs__store *st)
{
    be_refused_after(st, (const char *const[]){OTHER, THIRD, NULL});
}

static void renew(dibs__store *st)
{
    dibs__renewal item = {.name = "k",
                          .owner = ONE,
                          .fence = hold(st, ONE),
                          .ttl_ms = 10 * TTL_MS};

    CHECK(DIBS_OK, st->ops->lease->renew(st, &item, 1, soon(), err));
    CHECK(DIBS_OK, item.rc);
}

static void hand_on(dibs__store *st)
{
    const dibs__conversion how = {.name = "k",
                                  .owner = ONE,
                                  .to_owner = OTHER,
                                  .fence = hold(st, ONE),
                                  .mode = DIBS__EXCLUSIVE,
                                  .ttl_ms = TTL_MS};
    dibs__answer ans;

    CHECK(DIBS_OK, st->ops->lease->convert(st, &how, soon(), &ans, err));
}

static void leave_a_ghost(dibs__store *st)
{
    hold(st, ONE);
    leave(st, &(dibs__leave){.name = "k", .owner = ONE, .keep_ms = TTL_MS});
}

static void leave_a_tombstone(dibs__store *st)
{
    hold(st, ONE);
    leave(st, &(dibs__leave){.name = "k", .owner = ONE, .unanswered = true});
}

static void take_a_set(dibs__store *st)
{
    dibs__ask asks[2] = {ask_of(ONE), ask_of(OTHER)};
    dibs__answer answers[2];
    size_t blocked;

    asks[1].name = "other";
    CHECK(DIBS_OK, st->ops->lease->acquire_all(st, asks, 2, soon(), answers,
                                               &blocked, err));
}

/* Several callers in one transaction, as they are combined: the second gives back,
 * which alone would not wait for anything. */
static void be_sent_with(dibs__store *st, const char *mine, const char *given)
{
    dibs__ask what = ask_of(ONE);
    char sql[512];

    what.name = given;
    ask(st, &what, DIBS_OK);
    snprintf(sql, sizeof(sql),
             "SELECT dibs.batch(ARRAY[0, 1], ARRAY['%s', '%s'], "
             "ARRAY['" OTHER "', '" ONE "'], ARRAY['exclusive', 'exclusive'], "
             "ARRAY[1, 1], ARRAY[0, 0], ARRAY[0, 0], ARRAY[0, 0], "
             "ARRAY[60000, 0], ARRAY['', ''], '')",
             mine, given);
    assert_true(pg_tell(&world_sv, sql));
}

static void be_sent_before_a_release(dibs__store *st)
{
    be_sent_with(st, "k", "l");
}

static void be_sent_after_a_release(dibs__store *st)
{
    be_sent_with(st, "k", "j");
}

static void put_value(dibs__store *st)
{
    dibs__put put = {.key = "k", .data = "x", .len = 1};
    uint64_t version;

    put.expected = DIBS_VERSION_ANY;
    CHECK(DIBS_OK, st->ops->value->put(st, &put, soon(), &version, err));
}

/* What is done, and how many rows say so afterwards. */
typedef struct scene {
    const char *what;
    void (*act)(dibs__store *st);
    const char *trace;
    long long count;
} scene;

#define HOLDERS "SELECT count(*) FROM dibs.lease WHERE role = 'holder'"

static const scene scenes[] = {
    {"a grant", grant, HOLDERS " AND owner = '" ONE "'", 1},
    {"grants to readers", grant_readers, HOLDERS, 2},
    {"a grant by a release", hand_over, HOLDERS " AND owner = '" OTHER "'", 1},
    {"a grant by one who is refused", serve_the_queue_and_be_refused,
     HOLDERS " AND owner = '" OTHER "'", 1},
    {"a grant by one who gives up", serve_the_queue_and_give_up,
     HOLDERS " AND owner = '" OTHER "'", 1},
    {"a renewal", renew, HOLDERS " AND until_us - since_us > 300000000", 1},
    {"a lease that is handed on", hand_on, HOLDERS " AND owner = '" OTHER "'",
     1},
    {"a time for which others are kept out", leave_a_ghost,
     "SELECT count(*) FROM dibs.party WHERE role = 'ghost'", 1},
    {"a tombstone", leave_a_tombstone, "SELECT count(*) FROM dibs.tomb", 1},
    {"a set", take_a_set, HOLDERS, 2},
    {"a grant before a release", be_sent_before_a_release,
     HOLDERS " AND name = 'k'", 1},
    {"a grant after a release", be_sent_after_a_release,
     HOLDERS " AND name = 'k'", 1},
    {"a value", put_value, "SELECT count(*) FROM dibs.value", 1},
};

static void crash(void)
{
    pg_crash(&world_sv);
    assert_true(pg_restart(&world_sv));
}

static void write_the_log_late(void)
{
    assert_true(pg_tell(&world_sv, "ALTER SYSTEM SET wal_writer_delay = "
                                   "'10s'"));
    assert_true(pg_tell(&world_sv, "ALTER SYSTEM SET autovacuum = off"));
    crash();
}

static void what_a_step_answered_outlasts_a_crash(void **state)
{
    char url[PG_URL_MAX];

    (void)state;
    pg_url(&world_sv, url);
    write_the_log_late();
    for (size_t i = 0; i < sizeof(scenes) / sizeof(scenes[0]); i++) {
        const scene *sc = &scenes[i];
        dibs__store *st = NULL;

        assert_true(pg_tell(&world_sv, "TRUNCATE dibs.roll, dibs.party, "
                                       "dibs.tomb, dibs.value"));
        CHECK(DIBS_OK, dibs__store_open(url, soon(), &st, err));
        sc->act(st);
        crash();
        dibs__store_close(st);
        if (pg_number(&world_sv, sc->trace) != sc->count)
            fail_msg("%s is gone after a crash", sc->what);
    }
}

static void drop_item(const dibs__delivery *delivery, void *arg)
{
    (void)delivery;
    (void)arg;
}

static dibs_status reserve(dibs__store *st, dibs__reserve *what)
{
    dibs_error err = {0};
    dibs_status rc;

    what->number++;
    what->seen = what->stamp;
    do
        rc = st->ops->queue->reserve(st, what, soon(), drop_item, NULL, &err);
    while (rc == DIBS_UNAVAIL || rc == DIBS_UNKNOWN);
    return rc;
}

/* A lane that has an item, and waits for one more, goes on with both. */
static void a_lane_with_an_item_outlasts_a_crash(void **state)
{
    dibs__push_item item = {.data = "job", .len = 3, .to = "", .dedup = ""};
    dibs__push push = {
        .queue = "jobs", .lane = 1, .number = 1, .items = &item, .count = 1};
    dibs__reserve ask = {.queue = "jobs",
                         .lane = 2,
                         .span_ms = 10 * TTL_MS,
                         .as = "",
                         .hands = 1};
    dibs__store *st = NULL;
    char url[PG_URL_MAX];

    (void)state;
    pg_url(&world_sv, url);
    write_the_log_late();
    CHECK(DIBS_OK, dibs__store_open(url, soon(), &st, err));
    CHECK(DIBS_OK, st->ops->queue->push(st, &push, soon(), err));
    assert_status(reserve(st, &ask), DIBS_OK);
    ask.want = 1;
    assert_status(reserve(st, &ask), DIBS_OK);
    ask.wait = true;
    assert_status(reserve(st, &ask), DIBS_OK);
    crash();
    assert_int_equal(pg_number(&world_sv, "SELECT number FROM dibs.lane WHERE "
                                          "lane = 2"),
                     ask.number);
    assert_status(reserve(st, &ask), DIBS_OK);
    assert_int_equal(pg_number(&world_sv,
                               "SELECT count(*) FROM dibs.item WHERE lane = 2 "
                               "AND attempts = 1 AND lost = 0"),
                     1);
    dibs__store_close(st);
}

static void a_watch_survives_killed_connections_and_a_crash(void **state)
{
    dibs_client *one = NULL, *other = NULL;
    dibs_watch *watch = NULL;
    char url[PG_URL_MAX];

    (void)state;
    pg_url(&world_sv, url);
    CHECK(DIBS_OK, dibs_open(url, NULL, &one, err));
    CHECK(DIBS_OK, dibs_open(url, NULL, &other, err));
    CHECK(DIBS_OK, dibs_state_watch(one, "v", &watch, err));
    (void)world_watch_sees(other, watch, "before");
    world_watch_told(other, watch);
    assert_true(pg_tell(&world_sv,
                        "SELECT pg_terminate_backend(pid) FROM "
                        "pg_stat_activity WHERE pid <> pg_backend_pid() AND "
                        "backend_type = 'client backend'"));
    (void)world_watch_sees(other, watch, "after the kill");
    world_watch_told(other, watch);
    crash();
    (void)world_watch_sees(other, watch, "after the crash");
    world_watch_told(other, watch);
    dibs_watch_free(watch);
    dibs_close(one);
    dibs_close(other);
}

static dibs_status meet(dibs__store *st, dibs__meet *item, dibs__meet_verb verb)
{
    dibs_error err = {0};
    dibs_status rc;

    item->verb = verb;
    do
        rc = st->ops->roster->meet(st, item, 1, soon(), &err);
    while (rc == DIBS_UNAVAIL || rc == DIBS_UNKNOWN);
    assert_status(rc, DIBS_OK);
    return item->rc;
}

/* Seats outlast a crash once something after them was waited for; a strict roster
 * does not count them all the same. */
static void a_strict_roster_ends_with_the_run(void **state)
{
    dibs__meet strict = {.name = "strict",
                         .id = ONE,
                         .flags = DIBS__MEET_STRICT,
                         .ttl_ms = 10 * TTL_MS};
    dibs__meet other = strict;
    dibs__store *st = NULL;
    char url[PG_URL_MAX];
    dibs_client *cl = NULL;

    (void)state;
    other.name = "other";
    other.flags = 0;
    pg_url(&world_sv, url);
    CHECK(DIBS_OK, dibs_open(url, NULL, &cl, err));
    CHECK(DIBS_OK, dibs__store_open(url, soon(), &st, err));
    assert_int_equal(meet(st, &strict, DIBS__SIT), DIBS_OK);
    assert_int_equal(meet(st, &other, DIBS__SIT), DIBS_OK);
    strict.fence = strict.number;
    other.fence = other.number;
    assert_int_equal(meet(st, &strict, DIBS__KEEP), DIBS_OK);
    assert_int_equal(meet(st, &other, DIBS__KEEP), DIBS_OK);
    CHECK(DIBS_OK, dibs_state_set(cl, "v", "on disk", 7, 0, NULL, err));
    crash();
    assert_int_equal(meet(st, &other, DIBS__KEEP), DIBS_OK);
    assert_int_equal(meet(st, &strict, DIBS__KEEP), DIBS_LOST);
    assert_int_equal(meet(st, &strict, DIBS__SIT), DIBS_OK);
    assert_true(strict.number > strict.fence);
    dibs__store_close(st);
    dibs_close(cl);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_watch_survives_killed_connections_and_a_crash),
        cmocka_unit_test(what_a_step_answered_outlasts_a_crash),
        cmocka_unit_test(a_lane_with_an_item_outlasts_a_crash),
        cmocka_unit_test(a_strict_roster_ends_with_the_run),
    };

    return cmocka_run_group_tests_name("postgres crash", tests, world_begin,
                                       world_end);
}
