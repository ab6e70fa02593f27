/* test_client_away.c - what on_unavailable does while the store is away. */
/* SPDX-License-Identifier: MIT */
#include "fault_world.h"

#include <pthread.h>

typedef struct told {
    atomic_int away;
    atomic_int back;
} told;

static void
note(dibs_log_level level, const char *event, const char *message, void *arg)
{
    told *td = arg;

    (void)level;
    (void)message;
    if (strcmp(event, "away") == 0)
        atomic_fetch_add(&td->away, 1);
    else if (strcmp(event, "back") == 0)
        atomic_fetch_add(&td->back, 1);
}

/* A client that shares its local store with the others of the test. */
static dibs_client *open_with(world *w, dibs_away policy, told *td)
{
    dibs_client *cl = NULL;

    CHECK(DIBS_OK,
          dibs_open(w->url,
                    DIBS_CLIENT_OPTS(.on_unavailable = policy,
                                     .local_url = "memory:away", .log = note,
                                     .log_arg = td, .log_level = DIBS_LOG_WARN),
                    &cl, err));
    return cl;
}

static void cut(world *w, dibs__fault_kind kind)
{
    world_fault(w, DIBS__STEP_ACQUIRE, kind, -1);
    world_fault(w, DIBS__STEP_RELEASE, DIBS__FAULT_FAIL, -1);
    world_fault(w, DIBS__STEP_RENEW, DIBS__FAULT_FAIL, -1);
}

static uint64_t fallbacks(dibs_client *cl)
{
    dibs_stats stats = {.size = sizeof(stats)};

    dibs_stats_get(cl, &stats);
    return stats.fallbacks;
}

static void by_default_it_fails(void **state)
{
    world *w = *state;
    dibs_lock *lock = world_lock(w->one, "k", NULL);
    dibs_error err = {0};

    cut(w, DIBS__FAULT_FAIL);
    assert_status(dibs_lock_try(lock, &err), DIBS_UNAVAIL);
    assert_true(err.retriable);
    assert_int_equal(dibs_lock_fallback(lock), DIBS_FALLBACK_NONE);
    assert_int_equal(fallbacks(w->one), 0);
    dibs_lock_free(lock);
}

static void locally_one_machine_takes_turns(void **state)
{
    world *w = *state;
    told td = {0};
    dibs_client *one = open_with(w, DIBS_AWAY_LOCAL, &td);
    dibs_client *other = open_with(w, DIBS_AWAY_LOCAL, &td);
    dibs_lock *a = world_lock(one, "k", DIBS_LOCK_OPTS(.ttl_ms = pace_ms(400)));
    dibs_lock *b = world_lock(other, "k", NULL);

    cut(w, DIBS__FAULT_FAIL);
    CHECK(DIBS_OK, dibs_lock_try(a, err));
    assert_int_equal(dibs_lock_fallback(a), DIBS_FALLBACK_LOCAL);
    world_expect_busy(b, a);
    /* It is renewed where it is kept. */
    world_sleep_ms(pace_ms(600));
    world_expect_held(a);
    CHECK(DIBS_OK, dibs_lock_release(a, err));
    CHECK(DIBS_OK, dibs_lock_try(b, err));
    assert_int_equal(fallbacks(one), 1);
    assert_int_equal(fallbacks(other), 2);
    assert_int_equal(atomic_load(&td.away), 2);
    dibs_lock_free(a);
    dibs_lock_free(b);
    dibs_close(other);
    dibs_close(one);
}

static void retries_are_one_use(void **state)
{
    world *w = *state;
    told td = {0};
    dibs_client *one = open_with(w, DIBS_AWAY_LOCAL, &td);
    dibs_client *other = open_with(w, DIBS_AWAY_LOCAL, &td);
    dibs_lock *a = world_lock(one, "k", DIBS_LOCK_OPTS(.ttl_ms = 60000));
    dibs_lock *b =
        world_lock(other, "k",
                   DIBS_LOCK_OPTS(.retries = 3, .retry_delay_ms = 1));

    cut(w, DIBS__FAULT_FAIL);
    CHECK(DIBS_OK, dibs_lock_try(a, err));
    CHECK(DIBS_BUSY, dibs_lock_acquire(b, err));
    assert_int_equal(fallbacks(other), 1);
    CHECK(DIBS_BUSY, dibs_lock_acquire(b, err));
    assert_int_equal(fallbacks(other), 2);
    dibs_lock_free(a);
    dibs_lock_free(b);
    dibs_close(other);
    dibs_close(one);
}

static void a_guest_is_kept_where_its_lease_is(void **state)
{
    world *w = *state;
    told td = {0};
    dibs_client *cl = open_with(w, DIBS_AWAY_LOCAL, &td);
    const dibs_lock_opts *opts = DIBS_LOCK_OPTS(.flags = DIBS_LOCK_REENTRANT);
    dibs_lock *host = world_lock(cl, "k", opts);
    dibs_lock *guest = world_lock(cl, "k", opts);

    cut(w, DIBS__FAULT_FAIL);
    CHECK(DIBS_OK, dibs_lock_try(host, err));
    CHECK(DIBS_OK, dibs_lock_try(guest, err));
    assert_int_equal(dibs_lock_fence(guest), dibs_lock_fence(host));
    assert_int_equal(dibs_lock_fallback(guest), DIBS_FALLBACK_LOCAL);
    dibs_lock_free(guest);
    dibs_lock_free(host);
    dibs_close(cl);
}

/* What stands in has no replicas to wait for. */
static void expect_all_steps(world *w, dibs_away policy)
{
    told td = {0};
    dibs_client *cl = open_with(w, policy, &td);
    dibs_lock *lock =
        world_lock(cl, "k",
                   DIBS_LOCK_OPTS(.ttl_ms = 1500, .durability = "wait:1"));

    CHECK(DIBS_OK, dibs_lock_try(lock, err));
    assert_int_not_equal(dibs_lock_fallback(lock), DIBS_FALLBACK_NONE);
    CHECK(DIBS_OK, dibs_lock_renew(lock, err));
    CHECK(DIBS_OK, dibs_lock_downgrade(lock, err));
    world_await_renewal(cl);
    CHECK(DIBS_OK, dibs_lock_release(lock, err));
    dibs_lock_free(lock);
    dibs_close(cl);
}

static void what_stands_in_is_not_asked_for_replicas(void **state)
{
    world *w = *state;

    cut(w, DIBS__FAULT_FAIL);
    expect_all_steps(w, DIBS_AWAY_LOCAL);
    expect_all_steps(w, DIBS_AWAY_OPEN);
}

static void *acquire(void *arg)
{
    return (void *)(intptr_t)dibs_lock_acquire(arg, NULL);
}

static void locally_a_waiter_is_notified(void **state)
{
    world *w = *state;
    told td = {0};
    dibs_client *one = open_with(w, DIBS_AWAY_LOCAL, &td);
    dibs_client *other = open_with(w, DIBS_AWAY_LOCAL, &td);
    dibs_lock *a = world_lock(one, "k", DIBS_LOCK_OPTS(.ttl_ms = 60000));
    dibs_lock *b = world_lock(other, "k", DIBS_LOCK_OPTS(.wait_ms = -1));
    dibs_stats stats = {.size = sizeof(stats)};
    pthread_t thread;
    void *rc;

    cut(w, DIBS__FAULT_DROP_BEFORE);
    CHECK(DIBS_OK, dibs_lock_try(a, err));
    assert_int_equal(pthread_create(&thread, NULL, acquire, b), 0);
    do
        dibs_stats_get(other, &stats);
    while (stats.fallbacks == 0);
    CHECK(DIBS_OK, dibs_lock_release(a, err));
    assert_int_equal(pthread_join(thread, &rc), 0);
    assert_status((intptr_t)rc, DIBS_OK);
    assert_int_equal(dibs_lock_fallback(b), DIBS_FALLBACK_LOCAL);
    dibs_lock_free(a);
    dibs_lock_free(b);
    dibs_close(other);
    dibs_close(one);
}

static void open_runs_without_a_lock(void **state)
{
    world *w = *state;
    told td = {0};
    dibs_client *cl = open_with(w, DIBS_AWAY_OPEN, &td);
    dibs_lock *a = world_lock(cl, "k", DIBS_LOCK_OPTS(.ttl_ms = pace_ms(400)));
    dibs_lock *b = world_lock(cl, "k", NULL);

    cut(w, DIBS__FAULT_FAIL);
    CHECK(DIBS_OK, dibs_lock_try(a, err));
    CHECK(DIBS_OK, dibs_lock_try(b, err));
    assert_int_equal(dibs_lock_fallback(b), DIBS_FALLBACK_OPEN);
    world_sleep_ms(pace_ms(600));
    world_expect_held(a);
    CHECK(DIBS_OK, dibs_lock_renew(a, err));
    CHECK(DIBS_OK, dibs_lock_release(a, err));
    assert_int_equal(atomic_load(&td.away), 1);
    dibs_lock_free(a);
    dibs_lock_free(b);
    dibs_close(cl);
}

static void when_the_store_is_back_it_is_used(void **state)
{
    world *w = *state;
    told td = {0};
    dibs_client *cl = open_with(w, DIBS_AWAY_OPEN, &td);
    dibs_lock *lock = world_lock(cl, "k", NULL);
    dibs_lock *other = world_lock(w->other, "k", NULL);

    cut(w, DIBS__FAULT_FAIL);
    CHECK(DIBS_OK, dibs_lock_try(lock, err));
    CHECK(DIBS_OK, dibs_lock_release(lock, err));
    world_heal(w);
    CHECK(DIBS_OK, dibs_lock_try(lock, err));
    assert_int_equal(dibs_lock_fallback(lock), DIBS_FALLBACK_NONE);
    world_expect_busy(other, lock);
    assert_int_equal(atomic_load(&td.away), 1);
    assert_int_equal(atomic_load(&td.back), 1);
    dibs_lock_free(lock);
    dibs_lock_free(other);
    dibs_close(cl);
}

/* Busy is an answer: nothing stands in for a store that gives one. */
static void a_busy_lock_is_no_reason(void **state)
{
    world *w = *state;
    told td = {0};
    dibs_client *cl = open_with(w, DIBS_AWAY_OPEN, &td);
    dibs_lock *lock = world_lock(cl, "k", NULL);
    dibs_lock *other = world_lock(w->other, "k", NULL);

    CHECK(DIBS_OK, dibs_lock_try(other, err));
    CHECK(DIBS_BUSY, dibs_lock_try(lock, err));
    assert_int_equal(fallbacks(cl), 0);
    dibs_lock_free(lock);
    dibs_lock_free(other);
    dibs_close(cl);
}

/* Once when it begins and once when it ends, however often it is asked between. */
static void a_wait_for_the_store_is_told_once(void **state)
{
    world *w = *state;
    told td = {0};
    dibs_client *cl = open_with(w, DIBS_AWAY_FAIL, &td);
    dibs_lock *lock = world_lock(cl, "k", DIBS_LOCK_OPTS(.wait_ms = -1));
    pthread_t thread;
    void *rc;
    int seen;

    cut(w, DIBS__FAULT_FAIL);
    assert_int_equal(pthread_create(&thread, NULL, acquire, lock), 0);
    while (atomic_load(&td.away) == 0)
        world_sleep_ms(1);
    seen = world_seen(w, DIBS__STEP_ACQUIRE);
    while (world_seen(w, DIBS__STEP_ACQUIRE) < seen + 2)
        world_sleep_ms(1);
    assert_int_equal(atomic_load(&td.back), 0);
    world_heal(w);
    assert_int_equal(pthread_join(thread, &rc), 0);
    assert_status((intptr_t)rc, DIBS_OK);
    assert_int_equal(atomic_load(&td.away), 1);
    assert_int_equal(atomic_load(&td.back), 1);
    dibs_lock_free(lock);
    dibs_close(cl);
}

/* So is a store that takes its time within one step. */
static void a_store_that_does_not_answer_is_told(void **state)
{
    world *w = *state;
    told td = {0};
    dibs_client *cl = open_with(w, DIBS_AWAY_FAIL, &td);
    dibs_lock *lock = world_lock(cl, "k", DIBS_LOCK_OPTS(.wait_ms = -1));

    world_delay(w, DIBS__STEP_ACQUIRE, 2500);
    CHECK(DIBS_OK, dibs_lock_acquire(lock, err));
    assert_int_equal(world_seen(w, DIBS__STEP_ACQUIRE), 1);
    IN_TIME(atomic_load(&td.away) == 1);
    assert_int_equal(atomic_load(&td.back), 1);
    world_heal(w);
    dibs_lock_free(lock);
    dibs_close(cl);
}

static void retries_outlast_a_store_that_is_away(void **state)
{
    const char *const names[] = {"k", "l"};
    const dibs_lock_opts *opts =
        DIBS_LOCK_OPTS(.retries = 5, .retry_delay_ms = 1);
    world *w = *state;
    dibs_lock *lock = world_lock(w->one, "n", opts);
    dibs_multi *multi = NULL;

    world_fault(w, DIBS__STEP_ACQUIRE, DIBS__FAULT_FAIL, 3);
    world_fault(w, DIBS__STEP_ACQUIRE_ALL, DIBS__FAULT_FAIL, 3);
    CHECK(DIBS_OK, dibs_lock_acquire(lock, err));
    CHECK(DIBS_OK, dibs_multi_new(w->one, names, 2, opts, &multi, err));
    CHECK(DIBS_OK, dibs_multi_acquire(multi, err));
    dibs_multi_free(multi);
    dibs_lock_free(lock);
}

static void opening_waits_for_the_store(void **state)
{
    world *w = *state;
    int seen = world_seen(w, DIBS__STEP_OPEN);
    dibs_client *cl = NULL;

    world_fault(w, DIBS__STEP_OPEN, DIBS__FAULT_FAIL, 5);
    CHECK(DIBS_UNAVAIL, dibs_open(w->url, NULL, &cl, err));
    CHECK(DIBS_OK,
          dibs_open(w->url, DIBS_CLIENT_OPTS(.open_wait_ms = WORLD_BOUND_MS),
                    &cl, err));
    assert_int_equal(world_seen(w, DIBS__STEP_OPEN), seen + 6);
    dibs_close(cl);
    world_fault(w, DIBS__STEP_OPEN, DIBS__FAULT_FAIL, -1);
    CHECK(DIBS_UNAVAIL,
          dibs_open(w->url, DIBS_CLIENT_OPTS(.open_wait_ms = 30), &cl, err));
    CHECK(DIBS_INVALID,
          dibs_open(w->url, DIBS_CLIENT_OPTS(.open_wait_ms = 30, .lazy = true),
                    &cl, err));
}

#define OWNER "0123456789abcdef0123456789abcdef"

/* A store that was away when the client was opened is checked before it is used,
 * and not again. */
static void expect_contact(world *w, dibs_client *cl, dibs_status away)
{
    dibs_lock *lock = world_lock(cl, "k", NULL);
    int seen = world_seen(w, DIBS__STEP_OPEN);

    CHECK(away, dibs_lock_try(lock, err));
    assert_int_equal(world_seen(w, DIBS__STEP_OPEN), seen + 1);
    assert_int_equal(world_seen(w, DIBS__STEP_ACQUIRE), 0);
    if (away == DIBS_OK)
        CHECK(DIBS_OK, dibs_lock_release(lock, err));
    if (away != DIBS_OK)
        CHECK(away, dibs_lock_adopt(lock, OWNER, 7, err));
    seen = world_seen(w, DIBS__STEP_OPEN) - 1;
    assert_int_equal(world_seen(w, DIBS__STEP_RENEW), 0);
    world_heal(w);
    CHECK(DIBS_OK, dibs_state_set(cl, "v", "x", 1, 0, NULL, err));
    assert_int_equal(world_seen(w, DIBS__STEP_OPEN), seen + 2);
    CHECK(DIBS_OK, dibs_lock_try(lock, err));
    assert_int_equal(dibs_lock_fallback(lock), DIBS_FALLBACK_NONE);
    assert_int_equal(world_seen(w, DIBS__STEP_OPEN), seen + 2);
    dibs_lock_free(lock);
    dibs_close(cl);
}

static void a_lazy_client_makes_contact_at_its_first_use(void **state)
{
    world *w = *state;
    int seen = world_seen(w, DIBS__STEP_OPEN);
    dibs_client *cl = NULL;

    world_fault(w, DIBS__STEP_OPEN, DIBS__FAULT_FAIL, -1);
    CHECK(DIBS_OK, dibs_open(w->url, DIBS_CLIENT_OPTS(.lazy = true), &cl, err));
    assert_int_equal(world_seen(w, DIBS__STEP_OPEN), seen);
    assert_true(dibs_is_lazy(cl));
    assert_false(dibs_is_lazy(w->one));
    expect_contact(w, cl, DIBS_UNAVAIL);
}

/* Every call that uses the store makes the first contact before; a ping tells how long
 * that took. */
static void a_first_call_that_fails_reads_nothing(void **state)
{
    world *w = *state;
    dibs_client *cl = NULL;
    int64_t took_us = -1;

    world_fault(w, DIBS__STEP_OPEN, DIBS__FAULT_FAIL, -1);
    CHECK(DIBS_OK, dibs_open(w->url, DIBS_CLIENT_OPTS(.lazy = true), &cl, err));
    CHECK(DIBS_UNAVAIL, dibs_name_stats_shared(cl, "", NULL, NULL, err));
    assert_int_equal(world_seen(w, DIBS__STEP_SCAN), 0);
    CHECK(DIBS_UNAVAIL, dibs_ping(cl, &took_us, err));
    assert_true(took_us >= 0);
    assert_int_equal(world_seen(w, DIBS__STEP_NOW), 0);
    dibs_close(cl);
}

static void a_client_with_a_fallback_makes_contact_later(void **state)
{
    world *w = *state;
    told td = {0};

    world_fault(w, DIBS__STEP_OPEN, DIBS__FAULT_FAIL, -1);
    expect_contact(w, open_with(w, DIBS_AWAY_OPEN, &td), DIBS_OK);
}

/* There was no contact yet, at which the store is looked at. */
static void no_statistics_before_the_first_contact(void **state)
{
    world *w = *state;
    dibs_client *cl = NULL;
    dibs_lock *lock;

    world_fault(w, DIBS__STEP_OPEN, DIBS__FAULT_FAIL, -1);
    CHECK(DIBS_OK, dibs_open(w->url,
                             DIBS_CLIENT_OPTS(.on_unavailable = DIBS_AWAY_LOCAL,
                                              .local_url = "memory:away",
                                              .share_stats = true),
                             &cl, err));
    lock = world_lock(cl, "k", NULL);
    CHECK(DIBS_OK, dibs_lock_try(lock, err));
    assert_int_equal(dibs_lock_fallback(lock), DIBS_FALLBACK_LOCAL);
    dibs_lock_free(lock);
    dibs_close(cl);
    assert_int_equal(world_seen(w, DIBS__STEP_GET), 0);
    assert_int_equal(world_seen(w, DIBS__STEP_PUT), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(by_default_it_fails),
        WORLD_TEST(locally_one_machine_takes_turns),
        WORLD_TEST(retries_are_one_use),
        WORLD_TEST(a_guest_is_kept_where_its_lease_is),
        WORLD_TEST(what_stands_in_is_not_asked_for_replicas),
        WORLD_TEST(locally_a_waiter_is_notified),
        WORLD_TEST(open_runs_without_a_lock),
        WORLD_TEST(when_the_store_is_back_it_is_used),
        WORLD_TEST(a_busy_lock_is_no_reason),
        WORLD_TEST(a_wait_for_the_store_is_told_once),
        WORLD_TEST(a_store_that_does_not_answer_is_told),
        WORLD_TEST(retries_outlast_a_store_that_is_away),
        WORLD_TEST(opening_waits_for_the_store),
        WORLD_TEST(a_lazy_client_makes_contact_at_its_first_use),
        WORLD_TEST(a_first_call_that_fails_reads_nothing),
        WORLD_TEST(a_client_with_a_fallback_makes_contact_later),
        WORLD_TEST(no_statistics_before_the_first_contact),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
