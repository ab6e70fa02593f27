/* test_client_multi.c - sets of names on a store that fails: the one step whose
 * answer is lost, comes late or is refused, and a client that is closed. */
/* SPDX-License-Identifier: MIT */
#include "fault_world.h"

#include "base/alloc.h"
#include "core/lock/lock.h"
#include <dibs/async.h>
#include <pthread.h>

static const char *const names[] = {"a", "b", "c"};

enum { COUNT = sizeof(names) / sizeof(names[0]) };

static dibs_multi *set_of(dibs_client *cl, const dibs_lock_opts *opts)
{
    dibs_multi *multi = NULL;

    CHECK(DIBS_OK, dibs_multi_new(cl, names, COUNT, opts, &multi, err));
    return multi;
}

static void expect_holders(world *w, size_t expected)
{
    for (size_t i = 0; i < COUNT; i++) {
        size_t holders, waiters;

        world_count(w, names[i], &holders, &waiters, NULL);
        IN_TIME(holders >= expected);
        assert_int_equal(holders, expected);
        assert_int_equal(waiters, 0);
    }
}

static void one_step_takes_them_all(void **state)
{
    world *w = *state;
    dibs_multi *multi = set_of(w->one, DIBS_LOCK_OPTS(.wait_ms = -1));

    CHECK(DIBS_OK, dibs_multi_acquire(multi, err));
    assert_int_equal(world_seen(w, DIBS__STEP_ACQUIRE_ALL), 1);
    assert_int_equal(world_seen(w, DIBS__STEP_ACQUIRE), 0);
    expect_holders(w, 1);
    CHECK(DIBS_OK, dibs_multi_release(multi, err));
    expect_holders(w, 0);
    dibs_multi_free(multi);
}

static void a_lost_answer_is_asked_for_again(void **state)
{
    world *w = *state;
    dibs_multi *multi = set_of(w->one, NULL);

    world_fault(w, DIBS__STEP_ACQUIRE_ALL, DIBS__FAULT_DROP_AFTER, 1);
    CHECK(DIBS_OK, dibs_multi_acquire(multi, err));
    assert_int_equal(world_seen(w, DIBS__STEP_ACQUIRE_ALL), 2);
    CHECK(DIBS_OK, dibs_multi_check(multi));
    expect_holders(w, 1);
    dibs_multi_free(multi);
    expect_holders(w, 0);
}

static void answers_lost_for_good_leave_nothing(void **state)
{
    world *w = *state;
    dibs_multi *multi = set_of(w->one, NULL);

    world_fault(w, DIBS__STEP_ACQUIRE_ALL, DIBS__FAULT_DROP_AFTER, 2);
    CHECK(DIBS_UNKNOWN, dibs_multi_acquire(multi, err));
    CHECK(DIBS_LOST, dibs_multi_check(multi));
    expect_holders(w, 0);
    dibs_multi_free(multi);
}

static void who_waits_goes_on_in_order(void **state)
{
    world *w = *state;
    dibs_multi *multi = set_of(w->one, DIBS_LOCK_OPTS(.wait_ms = -1));

    world_fault(w, DIBS__STEP_ACQUIRE_ALL, DIBS__FAULT_DROP_AFTER, 2);
    world_fault(w, DIBS__STEP_ACQUIRE, DIBS__FAULT_DROP_AFTER, 2);
    CHECK(DIBS_OK, dibs_multi_acquire(multi, err));
    CHECK(DIBS_OK, dibs_multi_check(multi));
    expect_holders(w, 1);
    dibs_multi_free(multi);
    expect_holders(w, 0);
}

static void a_store_that_stays_away_ends_the_wait(void **state)
{
    world *w = *state;
    dibs_multi *multi = set_of(w->one, DIBS_LOCK_OPTS(.wait_ms = pace_ms(200)));
    dibs_multi *once = set_of(w->one, NULL);

    world_fault(w, DIBS__STEP_ACQUIRE_ALL, DIBS__FAULT_FAIL, -1);
    world_fault(w, DIBS__STEP_ACQUIRE, DIBS__FAULT_FAIL, -1);
    CHECK(DIBS_UNAVAIL, dibs_multi_acquire(multi, err));
    CHECK(DIBS_UNAVAIL, dibs_multi_acquire(once, err));
    world_heal(w);
    expect_holders(w, 0);
    CHECK(DIBS_OK, dibs_multi_acquire(once, err));
    dibs_multi_free(once);
    dibs_multi_free(multi);
}

static void sets_that_may_have_been_granted_are_not_denied(void **state)
{
    world *w = *state;
    dibs_multi *multi = set_of(w->one, DIBS_LOCK_OPTS(.wait_ms = pace_ms(200)));
    dibs_multi *once = set_of(w->one, NULL);
    dibs_error err = {0};

    world_fault(w, DIBS__STEP_ACQUIRE_ALL, DIBS__FAULT_DROP_AFTER, 1);
    world_fault_then(w, DIBS__STEP_ACQUIRE_ALL, DIBS__FAULT_FAIL);
    assert_status(dibs_multi_acquire(once, &err), DIBS_UNAVAIL);
    expect_holders(w, 0);

    world_fault(w, DIBS__STEP_ACQUIRE_ALL, DIBS__FAULT_DROP_AFTER, 1);
    world_fault_then(w, DIBS__STEP_ACQUIRE_ALL, DIBS__FAULT_FAIL);
    world_fault(w, DIBS__STEP_ACQUIRE, DIBS__FAULT_FAIL, -1);
    world_fault(w, DIBS__STEP_RELEASE, DIBS__FAULT_FAIL, -1);
    assert_status(dibs_multi_acquire(once, &err), DIBS_UNKNOWN);
    assert_status(err.status, DIBS_UNKNOWN);
    expect_holders(w, 1);
    assert_status(dibs_multi_acquire(multi, &err), DIBS_UNAVAIL);
    world_fault(w, DIBS__STEP_ACQUIRE_ALL, DIBS__FAULT_DROP_BEFORE, 1);
    world_fault_then(w, DIBS__STEP_ACQUIRE_ALL, DIBS__FAULT_FAIL);
    assert_status(dibs_multi_acquire(multi, &err), DIBS_UNKNOWN);
    dibs_multi_free(once);
    dibs_multi_free(multi);
}

/* The first name was had, and could not be given back. */
static void what_is_left_of_a_set_is_not_denied(void **state)
{
    world *w = *state;
    dibs_multi *multi = set_of(w->one, DIBS_LOCK_OPTS(.mode = DIBS_SHARED,
                                                      .wait_ms = pace_ms(200)));
    dibs_error err = {0};

    world_fault(w, DIBS__STEP_ACQUIRE, DIBS__FAULT_NONE, 1);
    world_fault_then(w, DIBS__STEP_ACQUIRE, DIBS__FAULT_FAIL);
    assert_status(dibs_multi_acquire(multi, &err), DIBS_UNAVAIL);
    expect_holders(w, 0);
    world_fault(w, DIBS__STEP_ACQUIRE, DIBS__FAULT_NONE, 1);
    world_fault_then(w, DIBS__STEP_ACQUIRE, DIBS__FAULT_FAIL);
    world_fault(w, DIBS__STEP_RELEASE, DIBS__FAULT_FAIL, -1);
    assert_status(dibs_multi_acquire(multi, &err), DIBS_UNKNOWN);
    assert_status(err.status, DIBS_UNKNOWN);
    dibs_multi_free(multi);
}

static void what_stands_in_for_the_store_takes_sets(void **state)
{
    world *w = *state;
    dibs_client *cl = NULL;
    dibs_multi *multi;

    CHECK(DIBS_OK,
          dibs_open(w->url, DIBS_CLIENT_OPTS(.on_unavailable = DIBS_AWAY_OPEN),
                    &cl, err));
    multi = set_of(cl, NULL);
    world_fault(w, DIBS__STEP_ACQUIRE_ALL, DIBS__FAULT_FAIL, -1);
    world_fault(w, DIBS__STEP_ACQUIRE, DIBS__FAULT_FAIL, -1);
    CHECK(DIBS_OK, dibs_multi_acquire(multi, err));
    for (size_t i = 0; i < COUNT; i++)
        assert_int_equal(dibs_lock_fallback(dibs_multi_lock(multi, i)),
                         DIBS_FALLBACK_OPEN);
    CHECK(DIBS_OK, dibs_multi_release(multi, err));
    world_heal(w);
    /* The first set in order finds that the store is back. */
    CHECK(DIBS_OK, dibs_multi_acquire(multi, err));
    for (size_t i = 0; i < COUNT; i++)
        assert_int_equal(dibs_lock_fallback(dibs_multi_lock(multi, i)),
                         DIBS_FALLBACK_NONE);
    expect_holders(w, 1);
    dibs_multi_free(multi);
    dibs_close(cl);
}

/* Nobody waits for the release, but the set that needs the name does. */
static void a_set_comes_after_releases_of_its_names(void **state)
{
    world *w = *state;
    dibs_lock *lock = world_lock(w->one, "b", NULL);
    dibs_multi *multi = set_of(w->one, NULL);

    CHECK(DIBS_OK, dibs_lock_try(lock, err));
    world_delay(w, DIBS__STEP_RELEASE, 100);
    CHECK(DIBS_OK, dibs_lock_release_async(lock, NULL, NULL, err));
    CHECK(DIBS_OK, dibs_multi_try(multi, err));
    dibs_multi_free(multi);
    dibs_lock_free(lock);
}

/* The store grants them for less time than the answer takes. */
static void leases_that_ran_out_on_the_way_are_not_believed(void **state)
{
    world *w = *state;
    const dibs_lock_opts *brief =
        DIBS_LOCK_OPTS(.ttl_ms = 40, .flags = DIBS_LOCK_NO_RENEW);
    dibs_multi *multi = set_of(w->one, brief);

    world_delay(w, DIBS__STEP_ACQUIRE_ALL, 80);
    CHECK(DIBS_TIMEOUT, dibs_multi_acquire(multi, err));
    CHECK(DIBS_LOST, dibs_multi_check(multi));
    expect_holders(w, 0);
    dibs_multi_free(multi);
}

static void a_release_that_fails_says_so(void **state)
{
    world *w = *state;
    dibs_multi *multi = set_of(w->one, DIBS_LOCK_OPTS(.ttl_ms = 3000));

    CHECK(DIBS_OK, dibs_multi_acquire(multi, err));
    world_fault(w, DIBS__STEP_RELEASE, DIBS__FAULT_FAIL, 1);
    CHECK(DIBS_UNAVAIL, dibs_multi_release(multi, err));
    CHECK(DIBS_LOST, dibs_multi_check(multi));
    CHECK(DIBS_LOST, dibs_multi_release(multi, err));
    dibs_multi_free(multi);
}

static void *take(void *arg)
{
    dibs_status rc = dibs_multi_acquire(arg, NULL);

    if (pace_explains(rc))
        MISSED("a set is %s", dibs_status_name(rc));
    /* Nobody can say which of them is first. */
    return rc == DIBS_OK || rc == DIBS_CANCELLED || rc == DIBS_INVALID ? NULL
                                                                       : arg;
}

/* Closes the client while a set is being taken, so many times, each a little
 * later, in one step and in order. */
static void closed_while_it_is_taken(world *w, const dibs_lock_opts *opts)
{
    for (int i = 0; i < 20; i++) {
        dibs_client *cl = world_open(w);
        dibs_multi *multi = set_of(cl, opts);
        pthread_t thread;
        void *wrong;

        assert_int_equal(pthread_create(&thread, NULL, take, multi), 0);
        world_sleep_ms(i);
        dibs_close(cl);
        assert_int_equal(pthread_join(thread, &wrong), 0);
        assert_null(wrong);
        dibs_multi_free(multi);
        expect_holders(w, 0);
    }
}

static void a_client_may_be_closed_meanwhile(void **state)
{
    world *w = *state;

    world_delay(w, DIBS__STEP_ACQUIRE_ALL, 10);
    world_delay(w, DIBS__STEP_ACQUIRE, 3);
    closed_while_it_is_taken(w, NULL);
    closed_while_it_is_taken(w, DIBS_LOCK_OPTS(.mode = DIBS_SHARED,
                                               .wait_ms = -1));
}

static void a_client_may_be_closed_while_it_waits(void **state)
{
    world *w = *state;
    dibs_client *cl = world_open(w);
    dibs_lock *in_the_way = world_lock(w->other, "b", NULL);
    dibs_multi *multi = set_of(cl, DIBS_LOCK_OPTS(.wait_ms = -1));
    size_t holders, waiters = 0;
    pthread_t thread;
    void *wrong;

    CHECK(DIBS_OK, dibs_lock_try(in_the_way, err));
    assert_int_equal(pthread_create(&thread, NULL, take, multi), 0);
    while (waiters == 0)
        world_count(w, "b", &holders, &waiters, NULL);
    dibs_close(cl);
    assert_int_equal(pthread_join(thread, &wrong), 0);
    assert_null(wrong);
    dibs_multi_free(multi);
    dibs_lock_free(in_the_way);
    expect_holders(w, 0);
}

static uint64_t attempts_of(dibs_client *cl)
{
    dibs_stats stats = {.size = sizeof(stats)};

    dibs_stats_get(cl, &stats);
    return stats.attempts;
}

/* A try that has counted pauses before it lets the client go. */
static void a_client_may_be_closed_while_it_pauses(void **state)
{
    world *w = *state;
    dibs_client *cl = world_open(w);
    dibs_lock *in_the_way = world_lock(w->other, "b", NULL);
    dibs_multi *multi =
        set_of(cl, DIBS_LOCK_OPTS(.retries = 9, .retry_delay_ms = 3600000));
    pthread_t thread;
    dibsx_nsec closed_at;
    void *wrong;

    CHECK(DIBS_OK, dibs_lock_try(in_the_way, err));
    assert_int_equal(pthread_create(&thread, NULL, take, multi), 0);
    while (attempts_of(cl) == 0)
        world_sleep_ms(1);
    closed_at = dibsx_now();
    dibs_close(cl);
    assert_int_equal(pthread_join(thread, &wrong), 0);
    /* A pause that nobody ends looks at its client each second. */
    IN_TIME(world_ms_since(closed_at) < 500);
    assert_null(wrong);
    dibs_multi_free(multi);
    dibs_lock_free(in_the_way);
}

/* As the keeper does, but when the lock has another lease. */
static void tell_late(dibs_multi *multi, size_t i)
{
    dibs_lock *lock = dibs_multi_lock(multi, i);

    lock->callbacks->on_lost(lock, lock->callbacks->on_lost_arg);
}

static void a_loss_that_is_told_late_is_not_of_the_next_set(void **state)
{
    world *w = *state;
    loss lost = {0};
    dibs_multi *multi =
        set_of(w->one, DIBS_LOCK_OPTS(.wait_ms = -1, .on_lost = note_loss,
                                      .on_lost_arg = &lost));
    dibs_lock *in_the_way = world_lock(w->other, "b", NULL);
    size_t holders, waiters = 0;
    pthread_t thread;
    void *wrong;
    uint64_t fence;

    CHECK(DIBS_OK, dibs_multi_acquire(multi, err));
    tell_late(multi, 1);
    assert_int_equal(atomic_load(&lost.count), 0);
    CHECK(DIBS_OK, dibs_multi_release(multi, err));

    CHECK(DIBS_OK, dibs_lock_try(in_the_way, err));
    assert_int_equal(pthread_create(&thread, NULL, take, multi), 0);
    while (waiters == 0)
        world_count(w, "b", &holders, &waiters, NULL);
    fence = dibs_lock_fence(dibs_multi_lock(multi, 0));
    tell_late(multi, 0);
    CHECK(DIBS_OK, dibs_lock_release(in_the_way, err));
    assert_int_equal(pthread_join(thread, &wrong), 0);
    assert_null(wrong);
    IN_TIME(dibs_multi_check(multi) == DIBS_OK);
    IN_TIME(atomic_load(&lost.count) == 0);
    assert_int_equal(dibs_lock_fence(dibs_multi_lock(multi, 0)), fence);
    dibs_multi_free(multi);
    dibs_lock_free(in_the_way);
}

static void memory_that_is_short_is_an_answer(void **state)
{
    world *w = *state;
    dibs_status rc = DIBS_NOMEM;
    dibs_multi *multi = NULL;

    for (unsigned long n = 1; rc != DIBS_OK; n++) {
        dibsx_alloc_fail_at(n);
        rc = dibs_multi_new(w->one, names, COUNT, DIBS_LOCK_OPTS(.label = "x"),
                            &multi, NULL);
        dibsx_alloc_fail_at(0);
        assert_true(rc == DIBS_OK || (rc == DIBS_NOMEM && !multi));
    }
    CHECK(DIBS_OK, dibs_multi_acquire(multi, err));
    dibs_multi_free(multi);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(one_step_takes_them_all),
        WORLD_TEST(a_lost_answer_is_asked_for_again),
        WORLD_TEST(answers_lost_for_good_leave_nothing),
        WORLD_TEST(who_waits_goes_on_in_order),
        WORLD_TEST(a_store_that_stays_away_ends_the_wait),
        WORLD_TEST(sets_that_may_have_been_granted_are_not_denied),
        WORLD_TEST(what_is_left_of_a_set_is_not_denied),
        WORLD_TEST(what_stands_in_for_the_store_takes_sets),
        WORLD_TEST(a_set_comes_after_releases_of_its_names),
        WORLD_TEST(leases_that_ran_out_on_the_way_are_not_believed),
        WORLD_TEST(a_release_that_fails_says_so),
        WORLD_TEST(a_client_may_be_closed_meanwhile),
        WORLD_TEST(a_client_may_be_closed_while_it_waits),
        WORLD_TEST(a_client_may_be_closed_while_it_pauses),
        WORLD_TEST(a_loss_that_is_told_late_is_not_of_the_next_set),
        WORLD_TEST(memory_that_is_short_is_an_answer),
    };

    return cmocka_run_group_tests_name("client_multi", tests, NULL, NULL);
}
