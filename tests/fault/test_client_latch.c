/* test_client_latch.c - latches on a store that fails: lost answers, lost tells, and a
 * store that hangs. */
/* SPDX-License-Identifier: MIT */
#include "fault_world.h"

#include <pthread.h>
#include <unistd.h>

enum { BRIEF_MS = 50, ANSWER_MS = 300 };

typedef struct waiter {
    dibs_client *cl;
    int64_t wait_ms;
    dibs_status rc;
    pthread_t thread;
} waiter;

static void *wait_here(void *arg)
{
    waiter *wt = arg;

    wt->rc = dibs_latch_wait(wt->cl, "l", 2, wt->wait_ms, NULL);
    return NULL;
}

static void start_waiter(waiter *wt, dibs_client *cl, int64_t wait_ms)
{
    *wt = (waiter){.cl = cl, .wait_ms = wait_ms};
    assert_int_equal(pthread_create(&wt->thread, NULL, wait_here, wt), 0);
}

static void end_waiter(waiter *wt, dibs_status want)
{
    pthread_join(wt->thread, NULL);
    IN_TIME(wt->rc == want);
}

static void await_steps(world *w, dibs__step step, int count)
{
    dibsx_nsec end = dibsx_after_ms(dibsx_now(), pace_ms(WORLD_BOUND_MS));

    while (world_seen(w, step) < count) {
        IN_TIME(dibsx_now() < end);
        usleep(1000);
    }
}

static uint32_t count_down(dibs_client *cl, const char *id)
{
    uint32_t left = UINT32_MAX;

    CHECK(DIBS_OK, dibs_latch_count_down(cl, "l", 2, id, &left, err));
    return left;
}

/* Redisson's threw an exception when its pool of subscriptions was empty. */
static void waits_without_a_free_subscription(void **state)
{
    world *w = *state;
    waiter one;

    world_fault(w, DIBS__STEP_EAR, DIBS__FAULT_FAIL, -1);
    start_waiter(&one, w->one, WORLD_BOUND_MS);
    await_steps(w, DIBS__STEP_EAR, 1);
    assert_int_equal(count_down(w->other, "a"), 1);
    assert_int_equal(count_down(w->other, "b"), 0);
    end_waiter(&one, DIBS_OK);
}

/* The tell of the opening is lost with the connection. */
static void missed_tells_are_made_up_for(void **state)
{
    world *w = *state;
    waiter one;

    start_waiter(&one, w->one, WORLD_BOUND_MS);
    await_steps(w, DIBS__STEP_EAR, 1);
    world_fault(w, DIBS__STEP_BELL, DIBS__FAULT_DROP_AFTER, -1);
    assert_int_equal(count_down(w->other, "a"), 1);
    assert_int_equal(count_down(w->other, "b"), 0);
    end_waiter(&one, DIBS_OK);
}

static void freeze(world *w)
{
    world_delay(w, DIBS__STEP_MEET, 2 * WORLD_BOUND_MS);
    world_delay(w, DIBS__STEP_EAR, 2 * WORLD_BOUND_MS);
}

/* Hazelcast's did not return while a member was frozen. A wait ends with the request that
 * is under way, whether the store froze before it or meanwhile. */
static void timed_wait_ends_while_the_store_is_frozen(void **state)
{
    world *w = *state;
    dibs_client *cl = world_client(w->url, ANSWER_MS);
    int64_t most_ms = BRIEF_MS + ANSWER_MS + WORLD_SLACK_MS;
    dibsx_nsec begun_at;
    waiter one;

    freeze(w);
    begun_at = dibsx_now();
    CHECK(DIBS_UNAVAIL, dibs_latch_wait(cl, "l", 2, BRIEF_MS, err));
    IN_TIME(dibsx_now() - begun_at < most_ms * DIBSX_MS);
    world_heal(w);
    start_waiter(&one, cl, pace_ms(ANSWER_MS));
    await_steps(w, DIBS__STEP_EAR, 1);
    freeze(w);
    begun_at = dibsx_now();
    pthread_join(one.thread, NULL);
    if (one.rc != DIBS_TIMEOUT)
        assert_status(one.rc, DIBS_UNAVAIL);
    IN_TIME(dibsx_now() - begun_at < (most_ms + pace_ms(ANSWER_MS)) * DIBSX_MS);
    world_heal(w);
    CHECK(DIBS_TIMEOUT, dibs_latch_wait(cl, "l", 2, 0, err));
    dibs_close(cl);
}

/* The wait goes on over an outage. */
static void a_wait_goes_on_while_the_store_is_away(void **state)
{
    world *w = *state;

    assert_int_equal(count_down(w->other, "a"), 1);
    assert_int_equal(count_down(w->other, "b"), 0);
    world_fault(w, DIBS__STEP_MEET, DIBS__FAULT_FAIL, 1);
    CHECK(DIBS_OK, dibs_latch_wait(w->one, "l", 2, WORLD_BOUND_MS, err));
    world_fault(w, DIBS__STEP_MEET, DIBS__FAULT_FAIL, -1);
    CHECK(DIBS_UNAVAIL, dibs_latch_wait(w->one, "l", 2, 0, err));
}

/* Counted, and its answer lost: the same id again counts once. */
static void a_count_without_an_answer_counts_once(void **state)
{
    world *w = *state;
    uint32_t left;

    world_fault(w, DIBS__STEP_MEET, DIBS__FAULT_DROP_AFTER, 1);
    CHECK(DIBS_UNKNOWN, dibs_latch_count_down(w->one, "l", 2, "a", &left, err));
    assert_int_equal(count_down(w->one, "a"), 1);
    CHECK(DIBS_TIMEOUT, dibs_latch_wait(w->one, "l", 2, 0, err));
    assert_int_equal(count_down(w->one, "b"), 0);
    CHECK(DIBS_OK, dibs_latch_wait(w->one, "l", 2, 0, err));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(waits_without_a_free_subscription),
        WORLD_TEST(missed_tells_are_made_up_for),
        WORLD_TEST(timed_wait_ends_while_the_store_is_frozen),
        WORLD_TEST(a_wait_goes_on_while_the_store_is_away),
        WORLD_TEST(a_count_without_an_answer_counts_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
