/* test_faults_restart.c - leases and watches while their server is killed and comes
 * back, with its data and without, or stands still for longer than they live. */
/* SPDX-License-Identifier: MIT */
#include "redis_world.h"

#include "store/store.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

enum { TTL_MS = 1500 };

/* A holder that tells of its loss, and a rival on the other client. */
static void take(world *w, loss *lost, dibs_lock **lock, dibs_lock **rival)
{
    *lock = world_lock_told(w->one, "k", TTL_MS, lost);
    *rival = world_lock(w->other, "k", DIBS_LOCK_OPTS(.ttl_ms = TTL_MS));
    CHECK(DIBS_OK, dibs_lock_acquire(*lock, err));
    world_expect_busy(*rival, *lock);
}

static void a_lease_outlives_a_server_that_keeps_its_data(void **state)
{
    world *w = *state;
    loss lost = {0};
    dibs_lock *lock, *rival;
    uint64_t fence;

    take(w, &lost, &lock, &rival);
    fence = dibs_lock_fence(lock);
    server_await_written(&w->sv);
    server_kill(&w->sv);
    assert_true(server_restart(&w->sv));
    world_await_renewal(w->one);
    world_await(lock, DIBS_LOCK_HELD, TTL_MS);
    assert_int_equal(dibs_lock_fence(lock), fence);
    world_expect_busy(rival, lock);
    CHECK(DIBS_OK, dibs_lock_release(lock, err));
    CHECK(DIBS_OK, dibs_lock_try(rival, err));
    assert_true(dibs_lock_fence(rival) > fence);
    assert_int_equal(atomic_load(&lost.count), 0);
    dibs_lock_free(lock);
    dibs_lock_free(rival);
}

static void a_holder_is_told_that_the_server_forgot(void **state)
{
    world *w = *state;
    loss lost = {0};
    dibs_lock *lock, *rival;
    uint64_t fence;

    take(w, &lost, &lock, &rival);
    fence = dibs_lock_fence(lock);
    server_await_written(&w->sv);
    server_kill(&w->sv);
    assert_true(server_restart(&w->sv));
    await_loss(&lost, TTL_MS);
    assert_int_equal(dibs_lock_fence(lock), 0);
    CHECK(DIBS_OK, world_try_until(rival, WORLD_BOUND_MS));
    assert_true(dibs_lock_fence(rival) > fence);
    CHECK(DIBS_LOST, dibs_lock_release(lock, err));
    IN_TIME(dibs_lock_fence(rival) > 0);
    dibs_lock_free(lock);
    dibs_lock_free(rival);
}

/* Whoever comes first after a server that was away too long gets a higher
 * fence than all before. */
static void a_server_away_for_too_long_costs_the_lease(void **state)
{
    world *w = *state;
    loss lost = {0};
    dibs_lock *lock, *rival;
    dibsx_nsec end_at;
    uint64_t fence;

    take(w, &lost, &lock, &rival);
    fence = dibs_lock_fence(lock);
    server_await_written(&w->sv);
    server_kill(&w->sv);
    end_at = end_of(lock);
    await_loss(&lost, WORLD_BOUND_MS);
    IN_TIME(atomic_load(&lost.told_at) <= end_at + WORLD_LATE_MS * DIBSX_MS);
    assert_true(server_restart(&w->sv));
    CHECK(DIBS_OK, world_try_until(rival, WORLD_BOUND_MS));
    assert_true(dibs_lock_fence(rival) > fence);
    dibs_lock_free(lock);
    dibs_lock_free(rival);
}

static void *acquire(void *arg)
{
    dibs_error err = {0};
    dibs_status rc = dibs_lock_acquire(arg, &err);

    if (rc != DIBS_OK)
        fprintf(stderr, "acquire: %s: %s\n", dibs_status_name(rc), err.message);
    return (void *)(uintptr_t)rc;
}

/* With its data the queue is kept as well; without it the waiter asks anew. */
static void a_waiter_outlives_the_server(void **state)
{
    world *w = *state;
    dibs_lock *lock = world_lock(w->one, "k", NULL);
    dibs_lock *waiter =
        world_lock(w->other, "k", DIBS_LOCK_OPTS(.wait_ms = WORLD_BOUND_MS));
    pthread_t thread;
    void *rc = NULL;

    CHECK(DIBS_OK, dibs_lock_acquire(lock, err));
    assert_int_equal(pthread_create(&thread, NULL, acquire, waiter), 0);
    world_await_waiters(w->one, "k", 1);
    server_await_written(&w->sv);
    server_kill(&w->sv);
    assert_true(server_restart(&w->sv));
    if (w->sv.aof)
        CHECK(DIBS_OK, dibs_lock_release(lock, err));
    assert_int_equal(pthread_join(thread, &rc), 0);
    assert_status((uintptr_t)rc, DIBS_OK);
    assert_true(dibs_lock_fence(waiter) > 0);
    dibs_lock_free(waiter);
    dibs_lock_free(lock);
}

/* The end of validity as it stands when the server has stopped answering. */
static dibsx_nsec final_end_of(const dibs_lock *lock)
{
    world_sleep_ms(50);
    IN_TIME(dibs_lock_check(lock) == DIBS_OK);
    return end_of(lock);
}

static void a_server_that_stands_still_costs_the_lease_in_time(void **state)
{
    world *w = *state;
    loss lost = {0};
    dibs_lock *lock, *rival;
    dibsx_nsec end_at;
    uint64_t fence;

    take(w, &lost, &lock, &rival);
    fence = dibs_lock_fence(lock);
    server_pause(&w->sv);
    end_at = final_end_of(lock);
    await_loss(&lost, WORLD_BOUND_MS);
    assert_true(atomic_load(&lost.told_at) >= end_at - 20 * DIBSX_MS);
    IN_TIME(atomic_load(&lost.told_at) <= end_at + WORLD_LATE_MS * DIBSX_MS);
    assert_int_equal(dibs_lock_state_get(lock), DIBS_LOCK_LOST);
    server_resume(&w->sv);
    CHECK(DIBS_OK, world_try_until(rival, WORLD_BOUND_MS));
    assert_true(dibs_lock_fence(rival) > fence);
    dibs_lock_free(lock);
    dibs_lock_free(rival);
}

/* What a call may take beyond what it was given, on a busy machine. */
enum { SLACK_MS = 2000 };

/* What the first wait of a client may take more, to open its doorbell. */
enum { BELL_MS = 0 };

/* A call takes as long as its step may, and as long again to take back what the
 * step may have done. */
static void no_call_hangs_on_a_server_that_stands_still(void **state)
{
    world *w = *state;
    dibs_client *cl = world_client(w->url, 400);
    dibs_lock *lock = world_lock(cl, "k", DIBS_LOCK_OPTS(.ttl_ms = TTL_MS));
    dibs_lock *free_one = world_lock(cl, "f", DIBS_LOCK_OPTS(.ttl_ms = TTL_MS));
    dibs_lock *waiter =
        world_lock(cl, "w", DIBS_LOCK_OPTS(.wait_ms = pace_ms(300)));
    dibsx_nsec from_at;
    dibs_error why = {0};

    CHECK(DIBS_OK, dibs_lock_acquire(lock, err));
    server_pause(&w->sv);
    from_at = dibsx_now();
    assert_int_not_equal(dibs_ping(cl, NULL, &why), DIBS_OK);
    IN_TIME(world_ms_since(from_at) <= pace_ms(400 + SLACK_MS));
    from_at = dibsx_now();
    assert_int_not_equal(dibs_lock_try(free_one, &why), DIBS_OK);
    IN_TIME(world_ms_since(from_at) <= pace_ms(2 * 400 + SLACK_MS));
    from_at = dibsx_now();
    assert_int_not_equal(dibs_lock_acquire(waiter, &why), DIBS_OK);
    assert_true(world_ms_since(from_at) >= 250);
    IN_TIME(world_ms_since(from_at) <= pace_ms(300 + 400 + BELL_MS + SLACK_MS));
    from_at = dibsx_now();
    assert_int_not_equal(dibs_lock_release(lock, &why), DIBS_OK);
    IN_TIME(world_ms_since(from_at) <= pace_ms(2 * 400 + SLACK_MS));
    server_resume(&w->sv);
    CHECK(DIBS_OK, world_try_until(lock, WORLD_BOUND_MS));
    CHECK(DIBS_OK, world_try_until(free_one, WORLD_BOUND_MS));
    dibs_lock_free(lock);
    dibs_lock_free(waiter);
    dibs_lock_free(free_one);
    dibs_close(cl);
}

/* A pause that is shorter than the lease is noticed and forgotten. */
static void a_short_pause_costs_nothing(void **state)
{
    world *w = *state;
    loss lost = {0};
    dibs_lock *lock, *rival;
    uint64_t fence;

    take(w, &lost, &lock, &rival);
    fence = dibs_lock_fence(lock);
    server_pause(&w->sv);
    world_sleep_ms(TTL_MS / 2);
    server_resume(&w->sv);
    world_await_renewal(w->one);
    world_await(lock, DIBS_LOCK_HELD, TTL_MS);
    assert_int_equal(dibs_lock_fence(lock), fence);
    world_expect_busy(rival, lock);
    CHECK(DIBS_OK, dibs_lock_release(lock, err));
    assert_int_equal(atomic_load(&lost.count), 0);
    dibs_lock_free(lock);
    dibs_lock_free(rival);
}

static void a_watch_survives_a_killed_connection(void **state)
{
    world *w = *state;
    dibs_watch *watch = NULL;

    CHECK(DIBS_OK, dibs_state_watch(w->one, "v", &watch, err));
    (void)world_watch_sees(w->other, watch, "before");
    assert_true(server_tell(&w->sv, "CLIENT", "KILL", "TYPE", "pubsub", NULL));
    assert_true(server_tell(&w->sv, "CLIENT", "KILL", "TYPE", "normal",
                            "SKIPME", "yes", NULL));
    (void)world_watch_sees(w->other, watch, "after");
    world_watch_told(w->other, watch);
    dibs_watch_free(watch);
}

static void a_watch_survives_a_restart(void **state)
{
    world *w = *state;
    dibs_watch *watch = NULL;
    dibs_change ch;

    CHECK(DIBS_OK, dibs_state_watch(w->one, "v", &watch, err));
    (void)world_watch_sees(w->other, watch, "before");
    server_await_written(&w->sv);
    server_kill(&w->sv);
    /* The next look finds the server away; the time is over at once. */
    while (dibs_watch_next(watch, 0, &ch, NULL) == DIBS_TIMEOUT)
        world_sleep_ms(10);
    assert_true(server_restart(&w->sv));
    (void)world_watch_sees(w->other, watch, "after");
    world_watch_told(w->other, watch);
    dibs_watch_free(watch);
}

static dibs_status meet(dibs__store *st, dibs__meet *item, dibs__meet_verb verb)
{
    dibs_error err = {0};
    dibs_status rc;

    item->verb = verb;
    do
        rc = st->ops->roster->meet(st, item, 1,
                                   dibsx_after_ms(dibsx_now(), pace_ms(5000)),
                                   &err);
    while (rc == DIBS_UNAVAIL || rc == DIBS_UNKNOWN);
    assert_status(rc, DIBS_OK);
    return item->rc;
}

/* What a run of the server knows of seats is not for another to count. */
static void a_strict_roster_ends_with_the_run(void **state)
{
    world *w = *state;
    dibs__meet strict = {.name = "s",
                         .id = "0123456789abcdef0123456789abcdef",
                         .flags = DIBS__MEET_STRICT,
                         .ttl_ms = 600000};
    dibs__meet other = strict;
    dibs__store *st = NULL;

    other.name = "o";
    other.flags = 0;
    CHECK(DIBS_OK,
          dibs__store_open(w->url, dibsx_after_ms(dibsx_now(), pace_ms(5000)),
                           &st, err));
    assert_int_equal(meet(st, &strict, DIBS__SIT), DIBS_OK);
    assert_int_equal(meet(st, &other, DIBS__SIT), DIBS_OK);
    strict.fence = strict.number;
    other.fence = other.number;
    assert_int_equal(meet(st, &strict, DIBS__KEEP), DIBS_OK);
    assert_int_equal(meet(st, &other, DIBS__KEEP), DIBS_OK);
    server_await_written(&w->sv);
    server_kill(&w->sv);
    assert_true(server_restart(&w->sv));
    assert_int_equal(meet(st, &other, DIBS__KEEP), DIBS_OK);
    assert_int_equal(meet(st, &strict, DIBS__KEEP), DIBS_LOST);
    assert_int_equal(meet(st, &strict, DIBS__SIT), DIBS_OK);
    assert_true(strict.number > strict.fence);
    dibs__store_close(st);
}

static void
note_why(dibs_election *el, uint64_t term, dibs_lost_why why, void *arg)
{
    (void)el;
    (void)term;
    *(atomic_int *)arg = (int)why;
}

static dibs_election *
candidate(dibs_client *cl, uint32_t minimum, atomic_int *why)
{
    dibs_election *el = NULL;

    CHECK(DIBS_OK, dibs_election_new(
                       cl, "e",
                       DIBS_ELECTION_OPTS(.ttl_ms = pace_ms(900),
                                          .minimum_nodes = minimum, .arg = why,
                                          .on_lost = why ? note_why : NULL),
                       &el, err));
    return el;
}

static void lead(dibs_election *el)
{
    CHECK(DIBS_OK, dibs_election_wait(el, WORLD_SEAT_MS, err));
}

/* The first leads under its term, and the other one is a candidate. */
static void assert_leads(dibs_election *el, uint64_t term, dibs_election *other)
{
    dibs_status rc = dibs_election_check(other);

    IN_TIME(dibs_election_term(el) == term);
    assert_int_equal(rc, DIBS_LOST);
}

static void store_restart_costs_no_leader(void **state)
{
    world *w = *state;
    dibs_election *el = candidate(w->one, 0, NULL);
    dibs_election *other = candidate(w->other, 0, NULL);
    uint64_t term;

    lead(el);
    term = dibs_election_term(el);
    CHECK(DIBS_OK, dibs_election_campaign(other, err));
    server_await_written(&w->sv);
    server_kill(&w->sv);
    assert_true(server_restart(&w->sv));
    world_await_renewal(w->one);
    assert_leads(el, term, other);
    dibs_election_free(el);
    lead(other);
    assert_true(dibs_election_term(other) > term);
    dibs_election_free(other);
}

/* Seats that count end with the run of the server: the leader cannot know whether
 * another server has counted their members meanwhile. */
static void a_restart_ends_a_term_that_counts_members(void **state)
{
    world *w = *state;
    static atomic_int why;
    dibs_election *el = candidate(w->one, 1, &why);
    uint64_t term;

    lead(el);
    term = dibs_election_term(el);
    server_await_written(&w->sv);
    server_kill(&w->sv);
    assert_true(server_restart(&w->sv));
    while (why == 0)
        poll(NULL, 0, 1);
    IN_TIME(why == DIBS_LOST_FEW);
    lead(el);
    assert_true(dibs_election_term(el) > term);
    dibs_election_free(el);
}

static void two_reconnects_in_a_row_one_leader(void **state)
{
    world *w = *state;
    dibs_election *el = candidate(w->one, 0, NULL);
    dibs_election *other = candidate(w->other, 0, NULL);
    uint64_t term;

    lead(el);
    term = dibs_election_term(el);
    CHECK(DIBS_OK, dibs_election_campaign(other, err));
    for (int i = 0; i < 2; i++) {
        assert_true(
            server_tell(&w->sv, "CLIENT", "KILL", "TYPE", "normal", NULL));
        world_await_renewal(w->one);
        assert_leads(el, term, other);
    }
    dibs_election_free(el);
    lead(other);
    dibs_election_free(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(a_lease_outlives_a_server_that_keeps_its_data),
        WORLD_TEST_FORGETFUL(a_holder_is_told_that_the_server_forgot),
        WORLD_TEST(a_server_away_for_too_long_costs_the_lease),
        WORLD_TEST_FORGETFUL(a_server_away_for_too_long_costs_the_lease),
        WORLD_TEST(a_waiter_outlives_the_server),
        WORLD_TEST_FORGETFUL(a_waiter_outlives_the_server),
        WORLD_TEST(a_server_that_stands_still_costs_the_lease_in_time),
        WORLD_TEST(no_call_hangs_on_a_server_that_stands_still),
        WORLD_TEST(a_short_pause_costs_nothing),
        WORLD_TEST(a_watch_survives_a_killed_connection),
        WORLD_TEST(a_watch_survives_a_restart),
        WORLD_TEST(a_strict_roster_ends_with_the_run),
        WORLD_TEST(store_restart_costs_no_leader),
        WORLD_TEST(a_restart_ends_a_term_that_counts_members),
        WORLD_TEST(two_reconnects_in_a_row_one_leader),
        WORLD_TEST_FORGETFUL(a_watch_survives_a_restart),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
