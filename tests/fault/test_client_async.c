/* test_client_async.c - asynchronous calls on a store that fails. */
/* SPDX-License-Identifier: MIT */
#include "fault_world.h"

typedef struct outcome {
    atomic_int calls;
    dibs_status rc;
    dibs_error err;
} outcome;

/* The outcome outlives the test: a call that is under way when the test fails writes
 * there all the same. */
static void
ended(dibs_lock *lock, dibs_status rc, const dibs_error *err, void *arg)
{
    outcome *out = arg;

    (void)lock;
    out->rc = rc;
    out->err = *err;
    atomic_fetch_add(&out->calls, 1);
}

static void await(outcome *out)
{
    dibsx_nsec end = dibsx_after_ms(dibsx_now(), pace_ms(WORLD_BOUND_MS));

    while (atomic_load(&out->calls) == 0) {
        IN_TIME(dibsx_now() < end);
        world_sleep_ms(1);
    }
}

static void start(dibs_lock *lock, outcome *out)
{
    CHECK(DIBS_OK, dibs_lock_acquire_async(lock, ended, out, err));
}

static void a_failed_try_is_told(void **state)
{
    world *w = *state;
    dibs_lock *lock = world_lock(w->one, "k", NULL);
    static outcome none, unsure;

    world_fault(w, DIBS__STEP_ACQUIRE, DIBS__FAULT_FAIL, 1);
    start(lock, &none);
    await(&none);
    CHECK(DIBS_UNAVAIL, none.rc);
    assert_status(none.err.status, DIBS_UNAVAIL);
    world_fault(w, DIBS__STEP_ACQUIRE, DIBS__FAULT_DROP_AFTER, 1);
    start(lock, &unsure);
    await(&unsure);
    CHECK(DIBS_UNKNOWN, unsure.rc);
    /* What the store had granted was given up before that was told. */
    CHECK(DIBS_OK, dibs_lock_try(lock, err));
    dibs_lock_free(lock);
}

/* A wait outlasts a store that is away for a while. */
static void a_wait_goes_on_when_the_store_is_back(void **state)
{
    world *w = *state;
    dibs_lock *lock = world_lock(w->one, "k", DIBS_LOCK_OPTS(.wait_ms = -1));
    static outcome out;

    world_fault(w, DIBS__STEP_ACQUIRE, DIBS__FAULT_FAIL, 5);
    start(lock, &out);
    await(&out);
    CHECK(DIBS_OK, out.rc);
    assert_true(world_seen(w, DIBS__STEP_ACQUIRE) > 5);
    dibs_lock_free(lock);
}

/* The lock is not held from the call on, whatever becomes of the release. */
static void a_release_that_fails_is_told(void **state)
{
    world *w = *state;
    dibs_lock *lock = world_lock(w->one, "k", DIBS_LOCK_OPTS(.ttl_ms = 500));
    dibs_lock *other = world_lock(w->other, "k", NULL);
    static outcome out;

    CHECK(DIBS_OK, dibs_lock_try(lock, err));
    world_fault(w, DIBS__STEP_RELEASE, DIBS__FAULT_FAIL, -1);
    CHECK(DIBS_OK, dibs_lock_release_async(lock, ended, &out, err));
    assert_int_equal(dibs_lock_fence(lock), 0);
    await(&out);
    CHECK(DIBS_UNAVAIL, out.rc);
    world_heal(w);
    CHECK(DIBS_OK, world_try_until(other, WORLD_BOUND_MS));
    dibs_lock_free(other);
    dibs_lock_free(lock);
}

/* What the ask had brought goes back. */
static void freeing_waits_for_the_ask_under_way(void **state)
{
    world *w = *state;
    dibs_lock *lock = world_lock(w->one, "k", DIBS_LOCK_OPTS(.wait_ms = -1));
    size_t holders, waiters;
    static outcome out;

    world_delay(w, DIBS__STEP_ACQUIRE, 200);
    start(lock, &out);
    while (world_seen(w, DIBS__STEP_ACQUIRE) == 0)
        world_sleep_ms(1);
    dibs_lock_free(lock);
    world_heal(w);
    IN_TIME(atomic_load(&out.calls) == 0); /* The free came too late else. */
    world_count(w, "k", &holders, &waiters, NULL);
    assert_int_equal(holders + waiters, 0);
}

/* Freed right after a release was started, the release is sent all the same. */
static void freeing_sends_the_release(void **state)
{
    world *w = *state;
    size_t holders, waiters;

    for (int i = 0; i < 20; i++) {
        dibs_lock *lock = world_lock(w->one, "k", NULL);

        CHECK(DIBS_OK, dibs_lock_try(lock, err));
        CHECK(DIBS_OK, dibs_lock_release_async(lock, NULL, NULL, err));
        dibs_lock_free(lock);
        world_count(w, "k", &holders, &waiters, NULL);
        assert_int_equal(holders + waiters, 0);
    }
}

/* The release takes long, and nobody waits for it but an acquire of the same handle. */
static void an_acquire_never_passes_a_release_not_awaited(void **state)
{
    world *w = *state;
    dibs_lock *lock = world_lock(w->one, "k", NULL);
    static outcome out;

    CHECK(DIBS_OK, dibs_lock_try(lock, err));
    world_delay(w, DIBS__STEP_RELEASE, 100);
    for (int i = 0; i < 3; i++) {
        CHECK(DIBS_OK, dibs_lock_release_async(lock, NULL, NULL, err));
        CHECK(DIBS_OK, dibs_lock_try(lock, err));
    }
    CHECK(DIBS_OK, dibs_lock_release_async(lock, NULL, NULL, err));
    start(lock, &out);
    await(&out);
    CHECK(DIBS_OK, out.rc);
    world_heal(w);
    dibs_lock_free(lock);
}

/* The lease is that of the first handle, and the last to leave it is a guest. */
static void nor_does_one_of_another_handle(void **state)
{
    world *w = *state;
    const dibs_lock_opts *opts = DIBS_LOCK_OPTS(.flags = DIBS_LOCK_REENTRANT);
    dibs_lock *host = world_lock(w->one, "k", opts);
    dibs_lock *guest = world_lock(w->one, "k", opts);

    world_delay(w, DIBS__STEP_RELEASE, 100);
    for (int i = 0; i < 2; i++) {
        dibs_lock *next = i == 0 ? host : guest;

        CHECK(DIBS_OK, dibs_lock_try(host, err));
        CHECK(DIBS_OK, dibs_lock_try(guest, err));
        CHECK(DIBS_OK, dibs_lock_release_async(host, NULL, NULL, err));
        CHECK(DIBS_OK, dibs_lock_check(guest));
        CHECK(DIBS_OK, dibs_lock_release_async(guest, NULL, NULL, err));
        CHECK(DIBS_OK, dibs_lock_try(next, err));
        CHECK(DIBS_OK, dibs_lock_release_async(next, NULL, NULL, err));
    }
    world_heal(w);
    dibs_lock_free(guest);
    dibs_lock_free(host);
}

/* A step that hangs until the test lets it go on. */
typedef struct hang {
    atomic_bool begun;
    atomic_bool over;
} hang;

static void hang_on(void *arg)
{
    hang *hg = arg;

    atomic_store(&hg->begun, true);
    while (!atomic_load(&hg->over))
        world_sleep_ms(1);
}

/* One release hangs, the other is behind it, and both have ten minutes. An acquire gives
 * up after its own time; they are done later. */
static void a_short_wait_is_not_held_up_by_releases(void **state)
{
    static hang hg;
    world *w = *state;
    dibs_client *cl = world_client(w->url, 600000);
    dibs_lock *next = world_lock(cl, "k", DIBS_LOCK_OPTS(.wait_ms = 50));
    dibs_lock *readers[2];

    for (int i = 0; i < 2; i++) {
        readers[i] =
            world_lock(cl, "k",
                       DIBS_LOCK_OPTS(.ttl_ms = 60000, .mode = DIBS_SHARED));
        CHECK(DIBS_OK, dibs_lock_try(readers[i], err));
    }
    world_during(w, DIBS__STEP_RELEASE, hang_on, &hg);
    CHECK(DIBS_OK, dibs_lock_release_async(readers[0], NULL, NULL, err));
    while (!atomic_load(&hg.begun))
        world_sleep_ms(1);
    CHECK(DIBS_OK, dibs_lock_release_async(readers[1], NULL, NULL, err));
    world_delay(w, DIBS__STEP_RELEASE, 10000);
    CHECK(DIBS_TIMEOUT, dibs_lock_acquire(next, err));
    world_heal(w);
    atomic_store(&hg.over, true);
    CHECK(DIBS_OK, world_try_until(next, WORLD_BOUND_MS));
    dibs_lock_free(next);
    dibs_lock_free(readers[1]);
    dibs_lock_free(readers[0]);
    dibs_close(cl);
}

/* It is repeated if its answer was lost, and else the lease ends by its ttl. */
static void a_release_not_awaited_may_fail(void **state)
{
    world *w = *state;
    dibs_lock *lock = world_lock(w->one, "k", DIBS_LOCK_OPTS(.ttl_ms = 500));

    CHECK(DIBS_OK, dibs_lock_try(lock, err));
    world_fault(w, DIBS__STEP_RELEASE, DIBS__FAULT_DROP_BEFORE, 1);
    CHECK(DIBS_OK, dibs_lock_release_async(lock, NULL, NULL, err));
    CHECK(DIBS_OK, dibs_lock_try(lock, err));
    world_fault(w, DIBS__STEP_RELEASE, DIBS__FAULT_FAIL, 1);
    CHECK(DIBS_OK, dibs_lock_release_async(lock, NULL, NULL, err));
    CHECK(DIBS_OK, world_try_until(lock, WORLD_BOUND_MS));
    dibs_lock_free(lock);
}

static void note_failure(dibs_log_level level, const char *event,
                         const char *message, void *arg)
{
    (void)message;
    if (level == DIBS_LOG_WARN && strcmp(event, "release") == 0)
        atomic_fetch_add((atomic_int *)arg, 1);
}

static void a_release_not_awaited_that_fails_is_logged(void **state)
{
    static atomic_int logged;
    world *w = *state;
    dibs_client *cl = NULL;
    dibs_lock *lock;

    CHECK(DIBS_OK,
          dibs_open(w->url,
                    DIBS_CLIENT_OPTS(.log_level = DIBS_LOG_WARN,
                                     .log = note_failure, .log_arg = &logged),
                    &cl, err));
    lock = world_lock(cl, "k", NULL);
    CHECK(DIBS_OK, dibs_lock_try(lock, err));
    world_fault(w, DIBS__STEP_RELEASE, DIBS__FAULT_FAIL, -1);
    CHECK(DIBS_OK, dibs_lock_release_async(lock, NULL, NULL, err));
    dibs_lock_free(lock);
    dibs_close(cl);
    assert_int_equal(atomic_load(&logged), 1);
    world_heal(w);
}

/* Whatever becomes of it. */
static void every_call_is_called_back_once(void **state)
{
    enum { CALLS = 40 };
    static const char *const names[] = {"a", "b", "c", "d", "e", "f", "g"};
    world *w = *state;
    dibs_lock *locks[CALLS];
    static outcome outs[CALLS];

    world_fault(w, DIBS__STEP_ACQUIRE, DIBS__FAULT_DROP_AFTER, 10);
    for (int i = 0; i < CALLS; i++) {
        locks[i] =
            world_lock(w->one, names[i % 7],
                       DIBS_LOCK_OPTS(.wait_ms = pace_ms(300), .retries = 1,
                                      .retry_delay_ms = 5));
        start(locks[i], &outs[i]);
        if (i % 3 == 0)
            dibs_lock_cancel(locks[i]);
    }
    for (int i = 0; i < CALLS; i++)
        await(&outs[i]);
    for (int i = 0; i < CALLS; i++) {
        dibs_lock_free(locks[i]);
        assert_int_equal(atomic_load(&outs[i].calls), 1);
    }
}

static void give_back(dibs_lock *lock, void *arg)
{
    CHECK(DIBS_OK, dibs_lock_release_async(lock, ended, arg, err));
}

/* Who is asked for a lease gives it back in the callback, and the store is slow:
 * that keeps no other callback waiting. */
static void giving_back_when_asked_delays_no_announcement(void **state)
{
    world *w = *state;
    static loss lost;
    static outcome out;
    dibs_lock *kept = world_lock_told(w->one, "kept", 600, &lost);
    dibs_lock *asked =
        world_lock(w->one, "k",
                   DIBS_LOCK_OPTS(.on_yield = give_back, .on_yield_arg = &out));
    dibsx_nsec end_at;

    CHECK(DIBS_OK, dibs_lock_acquire(asked, err));
    world_fault(w, DIBS__STEP_RENEW, DIBS__FAULT_FAIL, -1);
    world_delay(w, DIBS__STEP_RELEASE, 1500);
    CHECK(DIBS_OK, dibs_lock_acquire(kept, err));
    end_at = end_of(kept);
    CHECK(DIBS_OK, dibs_lease_yield(w->other, "k", 0, NULL, err));
    await_loss(&lost, WORLD_BOUND_MS);
    IN_TIME(atomic_load(&lost.told_at) <= end_at + WORLD_LATE_MS * DIBSX_MS);
    IN_TIME(atomic_load(&out.calls) == 0);
    await(&out);
    CHECK(DIBS_OK, out.rc);
    world_heal(w);
    dibs_lock_free(asked);
    dibs_lock_free(kept);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(a_failed_try_is_told),
        WORLD_TEST(a_wait_goes_on_when_the_store_is_back),
        WORLD_TEST(a_release_that_fails_is_told),
        WORLD_TEST(freeing_waits_for_the_ask_under_way),
        WORLD_TEST(freeing_sends_the_release),
        WORLD_TEST(an_acquire_never_passes_a_release_not_awaited),
        WORLD_TEST(nor_does_one_of_another_handle),
        WORLD_TEST(a_short_wait_is_not_held_up_by_releases),
        WORLD_TEST(a_release_not_awaited_may_fail),
        WORLD_TEST(a_release_not_awaited_that_fails_is_logged),
        WORLD_TEST(every_call_is_called_back_once),
        WORLD_TEST(giving_back_when_asked_delays_no_announcement),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
