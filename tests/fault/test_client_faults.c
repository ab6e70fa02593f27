/* test_client_faults.c - taking and giving back on a store that fails: answers
 * lost before and after the step was done, steps refused, notices lost. */
/* SPDX-License-Identifier: MIT */
#include "core/client.h"
#include "fault_world.h"

#include <pthread.h>

static void expect_one_holder(world *w, const char *name, const dibs_lock *lock)
{
    uint64_t found, fence = dibs_lock_fence(lock);
    size_t holders, waiters;

    world_count(w, name, &holders, &waiters, &found);
    CHECK(DIBS_OK, dibs_lock_check(lock));
    assert_int_equal(holders, 1);
    assert_int_equal(waiters, 0);
    assert_int_equal(found, fence);
}

static void acquire_through(world *w, dibs__fault_kind kind)
{
    dibs_lock *lock = world_lock(w->one, "k", DIBS_LOCK_OPTS(.wait_ms = 10000));

    world_fault(w, DIBS__STEP_ACQUIRE, kind, 3);
    CHECK(DIBS_OK, dibs_lock_acquire(lock, err));
    assert_true(world_seen(w, DIBS__STEP_ACQUIRE) > 3);
    CHECK(DIBS_OK, dibs_lock_check(lock));
    assert_true(dibs_lock_fence(lock) > 0);
    IN_TIME(dibs_lock_valid_ms(lock) > 0);
    expect_one_holder(w, "k", lock);
    CHECK(DIBS_OK, dibs_lock_release(lock, err));
    dibs_lock_free(lock);
}

static void acquire_whose_requests_are_lost_ends_in_one_holder(void **state)
{
    acquire_through(*state, DIBS__FAULT_DROP_BEFORE);
}

static void acquire_whose_answers_are_lost_ends_in_one_holder(void **state)
{
    acquire_through(*state, DIBS__FAULT_DROP_AFTER);
}

static void acquire_outlasts_a_store_that_is_away(void **state)
{
    acquire_through(*state, DIBS__FAULT_FAIL);
}

static bool note_left(const dibs_lease_info *info, void *arg)
{
    IN_TIME(info->holder_count > 0);
    assert_int_equal(info->holder_count, 1);
    *(int64_t *)arg = info->holders[0].left_ms;
    return false;
}

/* Validity counts from the request that the store answered, and a lease that it
 * granted to a lost one is not believed longer than the store does. */
static void a_lost_answer_does_not_lengthen_the_lease(void **state)
{
    world *w = *state;
    dibs_lock *lock = world_lock(w->one, "k",
                                 DIBS_LOCK_OPTS(.ttl_ms = 2000, .wait_ms = 5000,
                                                .flags = DIBS_LOCK_NO_RENEW));
    dibs_lock *rival = world_lock(w->other, "k", NULL);
    int64_t left_ms = 0;
    dibs_status rc;

    world_fault(w, DIBS__STEP_ACQUIRE, DIBS__FAULT_DROP_AFTER, 5);
    CHECK(DIBS_OK, dibs_lock_acquire(lock, err));
    rc = dibs_lease_show(w->other, "k", note_left, &left_ms, NULL);
    IN_TIME(rc != DIBS_NOTFOUND);
    assert_status(rc, DIBS_OK);
    assert_true(left_ms < 2000);
    assert_true(dibs_lock_valid_ms(lock) <= left_ms);
    CHECK(DIBS_OK, world_try_until(rival, WORLD_BOUND_MS));
    assert_int_equal(dibs_lock_valid_ms(lock), 0);
    assert_int_equal(dibs_lock_fence(lock), 0);
    dibs_lock_free(lock);
    dibs_lock_free(rival);
}

static void a_store_that_stays_away_ends_the_wait_in_time(void **state)
{
    world *w = *state;
    dibs_lock *lock =
        world_lock(w->one, "k", DIBS_LOCK_OPTS(.wait_ms = pace_ms(300)));
    dibsx_nsec began_at = dibsx_now();
    dibs_error err = {0};
    size_t holders, waiters;

    world_fault(w, DIBS__STEP_ACQUIRE, DIBS__FAULT_FAIL, -1);
    assert_status(dibs_lock_acquire(lock, &err), DIBS_UNAVAIL);
    assert_status(err.status, DIBS_UNAVAIL);
    assert_true(err.retriable);
    assert_true(world_ms_since(began_at) >= 250);
    IN_TIME(world_ms_since(began_at) < pace_ms(3000));
    assert_int_equal(dibs_lock_state_get(lock), DIBS_LOCK_FREE);
    world_count(w, "k", &holders, &waiters, NULL);
    assert_int_equal(holders + waiters, 0);
    dibs_lock_free(lock);
}

/* The first ask is granted by a store that is away from then on. */
static void go_away_with_the_first_answer(world *w)
{
    world_fault(w, DIBS__STEP_ACQUIRE, DIBS__FAULT_DROP_AFTER, 1);
    world_fault_then(w, DIBS__STEP_ACQUIRE, DIBS__FAULT_FAIL);
}

static void a_wait_that_may_have_been_granted_does_not_deny_it(void **state)
{
    world *w = *state;
    dibs_lock *lock = world_lock(w->one, "k",
                                 DIBS_LOCK_OPTS(.ttl_ms = pace_ms(5000),
                                                .wait_ms = pace_ms(300)));
    size_t holders, waiters;
    dibs_error err = {0};

    go_away_with_the_first_answer(w);
    world_fault(w, DIBS__STEP_RELEASE, DIBS__FAULT_FAIL, -1);
    assert_status(dibs_lock_acquire(lock, &err), DIBS_UNKNOWN);
    assert_status(err.status, DIBS_UNKNOWN);
    assert_true(err.message[0] != '\0');
    assert_int_equal(dibs_lock_state_get(lock), DIBS_LOCK_FREE);
    world_count(w, "k", &holders, &waiters, NULL);
    IN_TIME(holders > 0);
    assert_int_equal(holders, 1);
    dibs_lock_free(lock);
}

static void a_wait_whose_grant_was_taken_back_changed_nothing(void **state)
{
    world *w = *state;
    dibs_lock *lock =
        world_lock(w->one, "k", DIBS_LOCK_OPTS(.wait_ms = pace_ms(300)));
    size_t holders, waiters;

    go_away_with_the_first_answer(w);
    CHECK(DIBS_UNAVAIL, dibs_lock_acquire(lock, err));
    world_count(w, "k", &holders, &waiters, NULL);
    assert_int_equal(holders + waiters, 0);
    dibs_lock_free(lock);
}

static void a_try_whose_answer_was_lost_takes_back_what_it_got(void **state)
{
    world *w = *state;
    dibs_lock *lock = world_lock(w->one, "k", NULL);
    dibs_lock *rival = world_lock(w->other, "k", NULL);

    world_fault(w, DIBS__STEP_ACQUIRE, DIBS__FAULT_DROP_AFTER, 1);
    CHECK(DIBS_UNKNOWN, dibs_lock_try(lock, err));
    assert_int_equal(dibs_lock_state_get(lock), DIBS_LOCK_FREE);
    assert_int_equal(dibs_lock_fence(lock), 0);
    CHECK(DIBS_OK, dibs_lock_try(rival, err));
    dibs_lock_free(lock);
    dibs_lock_free(rival);
}

static void
a_try_that_cannot_take_back_leaves_nothing_beyond_the_ttl(void **state)
{
    world *w = *state;
    dibs_lock *lock = world_lock(w->one, "k", DIBS_LOCK_OPTS(.ttl_ms = 500));
    dibs_lock *rival = world_lock(w->other, "k", NULL);
    dibsx_nsec began_at = dibsx_now();

    world_fault(w, DIBS__STEP_ACQUIRE, DIBS__FAULT_DROP_AFTER, 1);
    world_fault(w, DIBS__STEP_RELEASE, DIBS__FAULT_FAIL, -1);
    CHECK(DIBS_UNKNOWN, dibs_lock_try(lock, err));
    assert_int_equal(dibs_lock_fence(lock), 0);
    CHECK(DIBS_OK, world_try_until(rival, WORLD_BOUND_MS));
    assert_true(world_ms_since(began_at) >= 495);
    IN_TIME(world_ms_since(began_at) < pace_ms(3000));
    world_heal(w);
    dibs_lock_free(lock);
    dibs_lock_free(rival);
}

static void release_is_repeated_when_its_answer_was_lost(void **state)
{
    world *w = *state;
    dibs_lock *lock = world_lock(w->one, "k", NULL);
    size_t holders, waiters;

    CHECK(DIBS_OK, dibs_lock_acquire(lock, err));
    world_fault(w, DIBS__STEP_RELEASE, DIBS__FAULT_DROP_AFTER, 1);
    CHECK(DIBS_OK, dibs_lock_release(lock, err));
    world_count(w, "k", &holders, &waiters, NULL);
    assert_int_equal(holders + waiters, 0);

    CHECK(DIBS_OK, dibs_lock_acquire(lock, err));
    world_fault(w, DIBS__STEP_RELEASE, DIBS__FAULT_DROP_BEFORE, 1);
    CHECK(DIBS_OK, dibs_lock_release(lock, err));
    world_count(w, "k", &holders, &waiters, NULL);
    assert_int_equal(holders + waiters, 0);
    dibs_lock_free(lock);
}

/* The second try was not done, of which the first one's outcome does not depend. */
static void a_release_in_doubt_stays_in_doubt(void **state)
{
    world *w = *state;
    dibs_lock *lock = world_lock(w->one, "k", NULL);

    CHECK(DIBS_OK, dibs_lock_acquire(lock, err));
    world_fault(w, DIBS__STEP_RELEASE, DIBS__FAULT_DROP_AFTER, 1);
    world_fault_then(w, DIBS__STEP_RELEASE, DIBS__FAULT_FAIL);
    CHECK(DIBS_UNKNOWN, dibs_lock_release(lock, err));
    world_heal(w);
    dibs_lock_free(lock);
}

static void
release_on_a_store_that_is_away_ends_belief_all_the_same(void **state)
{
    world *w = *state;
    int64_t ttl_ms = pace_ms(900);
    dibs_lock *lock = world_lock(w->one, "k", DIBS_LOCK_OPTS(.ttl_ms = ttl_ms));
    dibs_lock *rival = world_lock(w->other, "k", NULL);
    dibsx_nsec began_at = dibsx_now();
    dibs_status rc;
    int renewals;

    CHECK(DIBS_OK, dibs_lock_acquire(lock, err));
    world_fault(w, DIBS__STEP_RELEASE, DIBS__FAULT_FAIL, -1);
    CHECK(DIBS_UNAVAIL, dibs_lock_release(lock, err));
    assert_int_equal(dibs_lock_state_get(lock), DIBS_LOCK_FREE);
    assert_int_equal(dibs_lock_fence(lock), 0);
    renewals = world_seen(w, DIBS__STEP_RENEW);
    rc = dibs_lock_try(rival, NULL);
    IN_TIME(rc != DIBS_OK || world_ms_since(began_at) < ttl_ms);
    assert_status(rc, DIBS_BUSY);
    CHECK(DIBS_OK, world_try_until(rival, ttl_ms + WORLD_BOUND_MS));
    /* Nothing renews after release; the rival is not due for long. */
    IN_TIME(world_seen(w, DIBS__STEP_RENEW) == renewals);
    world_heal(w);
    dibs_lock_free(lock);
    dibs_lock_free(rival);
}

static void count_run(dibs_lock *lock, void *arg)
{
    CHECK(DIBS_OK, dibs_lock_check(lock));
    ++*(int *)arg;
}

/* Any other answer would say that the work was not done, and have it done twice. */
static void work_under_a_lock_is_done_though_release_fails(void **state)
{
    static const dibs__fault_kind kinds[] = {DIBS__FAULT_FAIL,
                                             DIBS__FAULT_DROP_BEFORE,
                                             DIBS__FAULT_DROP_AFTER};
    world *w = *state;

    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        char name[16];
        int runs = 0;

        snprintf(name, sizeof(name), "k%zu", i);
        world_fault(w, DIBS__STEP_RELEASE, kinds[i], -1);
        CHECK(DIBS_OK,
              dibs_with_lock(w->one, name, NULL, count_run, &runs, err));
        assert_int_equal(runs, 1);
    }
}

static void release_it(dibs_lock *lock, void *arg)
{
    ++*(int *)arg;
    CHECK(DIBS_OK, dibs_lock_release(lock, err));
}

static void work_under_a_lock_that_ended_is_told_so(void **state)
{
    world *w = *state;
    dibs_error err = {0};
    int runs = 0;

    assert_status(dibs_with_lock(w->one, "k", NULL, release_it, &runs, &err),
                  DIBS_LOST);
    assert_status(err.status, DIBS_LOST);
    assert_int_equal(runs, 1);
}

typedef struct waiter {
    dibs_lock *lock;
    dibs_status rc;
    dibsx_nsec done_at;
    pthread_t thread;
} waiter;

static void *wait_for_it(void *arg)
{
    waiter *wt = arg;
    dibs_error err = {0};

    wt->rc = dibs_lock_acquire(wt->lock, &err);
    wt->done_at = dibsx_now();
    return NULL;
}

static void await_waiters(world *w, const char *name, size_t wanted)
{
    dibsx_nsec end = dibsx_after_ms(dibsx_now(), WORLD_BOUND_MS);
    size_t holders, waiters = 0;

    while (waiters != wanted && dibsx_now() < end) {
        world_sleep_ms(2);
        world_count(w, name, &holders, &waiters, NULL);
    }
    IN_TIME(waiters == wanted);
}

/* Hands one lease over to a waiter; returns how long that took, in ms. */
static int64_t hand_over_as(world *w, dibs_lock_mode mode)
{
    const dibs_lock_opts *opts =
        DIBS_LOCK_OPTS(.mode = mode, .capacity = mode == DIBS_PERMITS,
                       .wait_ms = 20000);
    dibs_lock *lock = world_lock(w->one, "k", opts);
    waiter wt = {.lock = world_lock(w->other, "k", opts)};
    dibsx_nsec released_at;

    CHECK(DIBS_OK, dibs_lock_acquire(lock, err));
    assert_int_equal(pthread_create(&wt.thread, NULL, wait_for_it, &wt), 0);
    await_waiters(w, "k", 1);
    released_at = dibsx_now();
    CHECK(DIBS_OK, dibs_lock_release(lock, err));
    assert_int_equal(pthread_join(wt.thread, NULL), 0);
    CHECK(DIBS_OK, wt.rc);
    expect_one_holder(w, "k", wt.lock);
    CHECK(DIBS_OK, dibs_lock_release(wt.lock, err));
    dibs_lock_free(lock);
    dibs_lock_free(wt.lock);
    return (wt.done_at - released_at) / DIBSX_MS;
}

static int64_t hand_over(world *w)
{
    return hand_over_as(w, DIBS_EXCLUSIVE);
}

static void a_waiter_is_served_when_all_notices_are_lost(void **state)
{
    world *w = *state;

    world_fault(w, DIBS__STEP_BELL, DIBS__FAULT_DROP_BEFORE, -1);
    IN_TIME(hand_over(w) < 2000);
}

static void a_permit_is_granted_when_all_notices_are_lost(void **state)
{
    world *w = *state;

    world_fault(w, DIBS__STEP_BELL, DIBS__FAULT_DROP_BEFORE, -1);
    IN_TIME(hand_over_as(w, DIBS_PERMITS) < 2000);
}

static void acquire_and_release(world *w, const char *name)
{
    dibs_lock *lock =
        world_lock(w->one, name, DIBS_LOCK_OPTS(.wait_ms = 10000));

    CHECK(DIBS_OK, dibs_lock_acquire(lock, err));
    CHECK(DIBS_OK, dibs_lock_release(lock, err));
    dibs_lock_free(lock);
}

/* Each acquire that may wait tries again, until one has opened it. */
static void a_client_opens_its_doorbell_once(void **state)
{
    world *w = *state;

    world_fault(w, DIBS__STEP_LISTEN, DIBS__FAULT_FAIL, 2);
    for (int i = 0; i < 3; i++)
        acquire_and_release(w, "k");
    assert_int_equal(world_seen(w, DIBS__STEP_LISTEN), 3);
    for (int i = 0; i < 3; i++)
        acquire_and_release(w, "other");
    assert_int_equal(world_seen(w, DIBS__STEP_LISTEN), 3);
}

enum { CROWD = 100, POLL_MS = 1000 };

static void
count_done(dibs_lock *lock, dibs_status rc, const dibs_error *why, void *arg)
{
    (void)lock;
    (void)rc;
    (void)why;
    atomic_fetch_add((atomic_int *)arg, 1);
}

/* Waits until there have been so many asks. */
static void await_asks(world *w, int count)
{
    dibsx_nsec end = dibsx_after_ms(dibsx_now(), WORLD_BOUND_MS);

    while (world_seen(w, DIBS__STEP_ACQUIRE) < count) {
        IN_TIME(dibsx_now() < end);
        world_sleep_ms(1);
    }
}

/* A thread that asks, and is held up before its ask is done. */
typedef struct asking {
    dibs_lock *lock;
    dibs_status rc;
    atomic_bool inside, may_ask;
} asking;

static void hold_up(void *arg)
{
    asking *as = arg;

    atomic_store(&as->inside, true);
    while (!atomic_load(&as->may_ask))
        world_sleep_ms(1);
}

static void *acquire_held(void *arg)
{
    asking *as = arg;

    as->rc = dibs_lock_acquire(as->lock, NULL);
    return NULL;
}

/* The store has answered that the lock is held, and it was released since: the thread that
 * has the answer comes after the loss of the notice to the mutex of the client. */
static void a_notice_lost_during_an_ask_leads_to_another(void **state)
{
    world *w = *state;
    dibs_lock *held = world_lock(w->other, "k", NULL);
    asking as = {.lock =
                     world_lock(w->one, "k", DIBS_LOCK_OPTS(.wait_ms = -1))};
    dibs__notice_handler *handler = &w->one->lock_notices;
    pthread_t thread;
    dibsx_nsec lost_at;

    CHECK(DIBS_OK, dibs_lock_try(held, err));
    world_fault(w, DIBS__STEP_BELL, DIBS__FAULT_DROP_BEFORE, -1);
    world_during(w, DIBS__STEP_ACQUIRE, hold_up, &as);
    assert_int_equal(pthread_create(&thread, NULL, acquire_held, &as), 0);
    while (!atomic_load(&as.inside))
        world_sleep_ms(1);
    pthread_mutex_lock(&w->one->mutex);
    atomic_store(&as.may_ask, true);
    await_waiters(w, "k", 1);
    CHECK(DIBS_OK, dibs_lock_release(held, err));
    handler->hear_missed(w->one, handler);
    lost_at = dibsx_now();
    pthread_mutex_unlock(&w->one->mutex);
    pthread_join(thread, NULL);
    IN_TIME(world_ms_since(lost_at) < POLL_MS / 2);
    assert_status(as.rc, DIBS_OK);
    dibs_lock_free(held);
    dibs_lock_free(as.lock);
}

/* All of a crowd, and not some, ask at once when notices were lost. None has a reason
 * of its own to ask before a second has passed. */
static void all_who_wait_ask_when_notices_were_lost(void **state)
{
    static atomic_int done;
    world *w = *state;
    dibs_lock *held[CROWD], *waits[CROWD];
    dibsx_nsec began_at;
    int asks;

    atomic_store(&done, 0);
    for (int i = 0; i < CROWD; i++) {
        char name[16];

        snprintf(name, sizeof(name), "k%d", i);
        held[i] = world_lock(w->one, name, NULL);
        waits[i] = world_lock(w->other, name, DIBS_LOCK_OPTS(.wait_ms = -1));
        CHECK(DIBS_OK, dibs_lock_try(held[i], err));
    }
    asks = world_seen(w, DIBS__STEP_ACQUIRE);
    world_fault(w, DIBS__STEP_BELL, DIBS__FAULT_DROP_AFTER, -1);
    began_at = dibsx_now();
    for (int i = 0; i < CROWD; i++)
        CHECK(DIBS_OK,
              dibs_lock_acquire_async(waits[i], count_done, &done, err));
    await_asks(w, asks + CROWD);
    await_waiters(w, "k99", 1);
    CHECK(DIBS_OK, dibs_lock_release(held[0], err));
    await_asks(w, asks + 2 * CROWD);
    IN_TIME(world_ms_since(began_at) < POLL_MS);
    for (int i = 0; i < CROWD; i++) {
        dibs_lock_free(waits[i]);
        dibs_lock_free(held[i]);
    }
}

static void a_waiter_is_served_when_the_answer_to_release_is_lost(void **state)
{
    world *w = *state;

    world_fault(w, DIBS__STEP_RELEASE, DIBS__FAULT_DROP_AFTER, 1);
    hand_over(w);
}

static void a_notice_makes_the_wait_short(void **state)
{
    world *w = *state;
    dibs_stats stats = {.size = sizeof(stats)};

    hand_over(w);
    dibs_stats_get(w->other, &stats);
    IN_TIME(stats.rings == 1);
}

static void a_cancelled_wait_on_a_failing_store_leaves_nothing(void **state)
{
    world *w = *state;
    dibs_lock *lock = world_lock(w->one, "k", NULL);
    waiter wt = {.lock =
                     world_lock(w->other, "k", DIBS_LOCK_OPTS(.wait_ms = -1))};
    size_t holders, waiters;

    CHECK(DIBS_OK, dibs_lock_acquire(lock, err));
    world_fault(w, DIBS__STEP_ACQUIRE, DIBS__FAULT_DROP_AFTER, -1);
    assert_int_equal(pthread_create(&wt.thread, NULL, wait_for_it, &wt), 0);
    await_waiters(w, "k", 1);
    dibs_lock_cancel(wt.lock);
    assert_int_equal(pthread_join(wt.thread, NULL), 0);
    CHECK(DIBS_CANCELLED, wt.rc);
    world_count(w, "k", &holders, &waiters, NULL);
    world_expect_held(lock);
    assert_int_equal(holders, 1);
    assert_int_equal(waiters, 0);
    world_heal(w);
    dibs_lock_free(wt.lock);
    dibs_lock_free(lock);
}

static void values_say_whether_they_may_have_been_written(void **state)
{
    world *w = *state;
    dibs_value value = {0};
    dibs_error err = {0};

    world_fault(w, DIBS__STEP_PUT, DIBS__FAULT_FAIL, 1);
    assert_status(dibs_state_set(w->one, "v", "1", 1, 0, NULL, &err),
                  DIBS_UNAVAIL);
    assert_status(dibs_state_get(w->one, "v", &value, &err), DIBS_NOTFOUND);
    world_fault(w, DIBS__STEP_PUT, DIBS__FAULT_DROP_AFTER, 1);
    assert_status(dibs_state_set(w->one, "v", "2", 1, 0, NULL, &err),
                  DIBS_UNKNOWN);
    world_fault(w, DIBS__STEP_GET, DIBS__FAULT_DROP_AFTER, 1);
    assert_int_not_equal(dibs_state_get(w->one, "v", &value, &err), DIBS_OK);
    assert_null(value.data);
    assert_status(dibs_state_get(w->one, "v", &value, &err), DIBS_OK);
    assert_string_equal(value.data, "2");
    dibs_value_free(&value);
}

static bool never_shown(const dibs_index_entry *entry, void *arg)
{
    (void)entry;
    *(bool *)arg = true;
    return true;
}

/* All commits of a call whose answer is lost may have been done, and a repeat is
 * refused by its check, with what is there. */
static void commits_say_whether_they_may_have_been_done(void **state)
{
    world *w = *state;
    dibs_commit_change changes[] = {
        {.verb = DIBS_COMMIT_PUT, .name = "{b}v", .data = "me", .len = 2},
        {.verb = DIBS_COMMIT_ENTER, .name = "{b}i", .member = "m", .at = 1}};
    dibs_commit_check check = {.key = "{b}v", .version = DIBS_VERSION_NONE};
    dibs_commit commit = {.checks = &check,
                          .check_count = 1,
                          .changes = changes,
                          .change_count = 2};
    dibs_index_look look = {.index = "{b}i", .up_to = 9, .limit = 9};
    const char *const keys[] = {"{b}v"};
    dibs_value value = {0};
    bool shown = false;

    world_fault(w, DIBS__STEP_COMMIT, DIBS__FAULT_FAIL, 1);
    CHECK(DIBS_UNAVAIL, dibs_state_commit(w->one, &commit, 1, err));
    assert_status(commit.rc, DIBS_UNAVAIL);
    world_fault(w, DIBS__STEP_COMMIT, DIBS__FAULT_DROP_BEFORE, 1);
    CHECK(DIBS_UNKNOWN, dibs_state_commit(w->one, &commit, 1, err));
    CHECK(DIBS_OK, dibs_state_get_many(w->one, keys, 1, &value, err));
    assert_int_equal(value.version, 0);
    world_fault(w, DIBS__STEP_COMMIT, DIBS__FAULT_DROP_AFTER, 1);
    CHECK(DIBS_UNKNOWN, dibs_state_commit(w->one, &commit, 1, err));
    assert_status(commit.rc, DIBS_UNKNOWN);
    assert_int_equal(commit.version, 0);
    assert_int_equal(commit.now_us, 0);
    assert_int_equal(changes[1].size, 0);
    CHECK(DIBS_STALE, dibs_state_commit(w->one, &commit, 1, err));
    assert_string_equal(commit.found.data, "me");
    dibs_commit_free(&commit, 1);

    world_fault(w, DIBS__STEP_GET_MANY, DIBS__FAULT_DROP_AFTER, 1);
    CHECK(DIBS_UNKNOWN, dibs_state_get_many(w->one, keys, 1, &value, err));
    assert_null(value.data);
    world_fault(w, DIBS__STEP_FIRST, DIBS__FAULT_FAIL, 1);
    CHECK(DIBS_UNAVAIL,
          dibs_index_first(w->one, &look, 1, NULL, never_shown, &shown, err));
    assert_false(shown);
    assert_int_equal(look.next, -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(acquire_whose_requests_are_lost_ends_in_one_holder),
        WORLD_TEST(acquire_whose_answers_are_lost_ends_in_one_holder),
        WORLD_TEST(acquire_outlasts_a_store_that_is_away),
        WORLD_TEST(a_lost_answer_does_not_lengthen_the_lease),
        WORLD_TEST(a_store_that_stays_away_ends_the_wait_in_time),
        WORLD_TEST(a_wait_that_may_have_been_granted_does_not_deny_it),
        WORLD_TEST(a_wait_whose_grant_was_taken_back_changed_nothing),
        WORLD_TEST(a_try_whose_answer_was_lost_takes_back_what_it_got),
        WORLD_TEST(a_try_that_cannot_take_back_leaves_nothing_beyond_the_ttl),
        WORLD_TEST(release_is_repeated_when_its_answer_was_lost),
        WORLD_TEST(a_release_in_doubt_stays_in_doubt),
        WORLD_TEST(release_on_a_store_that_is_away_ends_belief_all_the_same),
        WORLD_TEST(work_under_a_lock_is_done_though_release_fails),
        WORLD_TEST(work_under_a_lock_that_ended_is_told_so),
        WORLD_TEST(a_waiter_is_served_when_all_notices_are_lost),
        WORLD_TEST(a_permit_is_granted_when_all_notices_are_lost),
        WORLD_TEST(a_notice_lost_during_an_ask_leads_to_another),
        WORLD_TEST(all_who_wait_ask_when_notices_were_lost),
        WORLD_TEST(a_waiter_is_served_when_the_answer_to_release_is_lost),
        WORLD_TEST(a_notice_makes_the_wait_short),
        WORLD_TEST(a_client_opens_its_doorbell_once),
        WORLD_TEST(a_cancelled_wait_on_a_failing_store_leaves_nothing),
        WORLD_TEST(values_say_whether_they_may_have_been_written),
        WORLD_TEST(commits_say_whether_they_may_have_been_done),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
