/* test_faults_cut.c - replies that are cut off at every byte, come too late, or
 * do not come at all, by a proxy between the client and the server. */
/* SPDX-License-Identifier: MIT */
#include "proxy.h"
#include "redis_world.h"

#include <pthread.h>

/* What a call may take beyond what it was given, on a busy machine. */
enum { TTL_MS = 1000, TIMEOUT_MS = 1000, SLACK_MS = 2000 };

/* A world whose first client is behind a proxy; the rival is not. */
typedef struct place {
    world *w;
    proxy px;
    char url[SERVER_URL_MAX];
    dibs_client *cl;
    dibs_lock *lock;
    dibs_lock *rival;
} place;

static void hold_once(dibs_lock *lock)
{
    CHECK(DIBS_OK, dibs_lock_try(lock, err));
    CHECK(DIBS_OK, dibs_lock_release(lock, err));
}

static void enter(place *at, world *w, const dibs_lock_opts *opts)
{
    at->w = w;
    assert_true(proxy_start(&at->px, w->sv.port));
    snprintf(at->url, sizeof(at->url), "redis://127.0.0.1:%d", at->px.port);
    at->cl = world_client(at->url, TIMEOUT_MS);
    at->lock = world_lock(at->cl, "k", opts);
    at->rival = world_lock(w->other, "k", DIBS_LOCK_OPTS(.ttl_ms = TTL_MS));
    /* The server gets the scripts that it does not have, for a name that may be
     * held and for one that is thought to be free. */
    hold_once(at->lock);
    hold_once(at->lock);
}

static void leave(place *at)
{
    dibs_lock_free(at->rival);
    dibs_lock_free(at->lock);
    dibs_close(at->cl);
    proxy_stop(&at->px);
}

/* Nobody has it, or will have it once a ttl is over. */
static void assert_free(place *at, uint64_t *fence)
{
    assert_int_equal(dibs_lock_fence(at->lock), 0);
    CHECK(DIBS_OK, world_try_until(at->rival, TTL_MS + SLACK_MS));
    assert_true(dibs_lock_fence(at->rival) > *fence);
    *fence = dibs_lock_fence(at->rival);
    CHECK(DIBS_OK, dibs_lock_release(at->rival, err));
}

/* The bytes of the answers to one call. */
static long measure(place *at, dibs_status (*call)(dibs_lock *, dibs_error *))
{
    proxy_arm(&at->px, -1);
    CHECK(DIBS_OK, call(at->lock, err));
    assert_true(atomic_load(&at->px.passed) > 0);
    return atomic_load(&at->px.passed);
}

/* With `thought_free` it is asked in the way of a name that was free before. */
static void cut_acquires(world *w, bool thought_free)
{
    static place at;
    uint64_t fence = 0;
    long len;

    enter(&at, w, DIBS_LOCK_OPTS(.ttl_ms = TTL_MS));
    len = measure(&at, dibs_lock_try);
    CHECK(DIBS_OK, dibs_lock_release(at.lock, err));
    for (long n = 0; n < len; n++) {
        dibsx_nsec from_at = dibsx_now();
        dibs_error why = {0};
        dibs_status rc;

        CHECK(DIBS_OK, dibs_ping(at.cl, NULL, err));
        if (thought_free)
            hold_once(at.lock);
        proxy_arm(&at.px, n);
        rc = dibs_lock_try(at.lock, &why);
        IN_TIME(atomic_load(&at.px.cuts) > n);
        assert_int_equal(atomic_load(&at.px.cuts), n + 1);
        CHECK(DIBS_UNKNOWN, rc);
        assert_true(strlen(why.message) > 10);
        IN_TIME(world_ms_since(from_at) <= pace_ms(TIMEOUT_MS + SLACK_MS));
        assert_free(&at, &fence);
    }
    leave(&at);
}

static void an_acquire_cut_at_any_byte_is_unknown(void **state)
{
    cut_acquires(*state, false);
    cut_acquires(*state, true);
}

/* Asked again, the server says that there is nothing left to give back. */
static void a_release_cut_at_any_byte_is_done(void **state)
{
    static place at;
    uint64_t fence = 0;
    long len;

    enter(&at, *state, DIBS_LOCK_OPTS(.ttl_ms = TTL_MS));
    CHECK(DIBS_OK, dibs_lock_try(at.lock, err));
    len = measure(&at, dibs_lock_release);
    for (long n = 0; n < len; n++) {
        CHECK(DIBS_OK, dibs_lock_try(at.lock, err));
        assert_true(dibs_lock_fence(at.lock) > fence);
        proxy_arm(&at.px, n);
        CHECK(DIBS_OK, dibs_lock_release(at.lock, err));
        IN_TIME(atomic_load(&at.px.cuts) > n);
        assert_int_equal(atomic_load(&at.px.cuts), n + 1);
        assert_free(&at, &fence);
    }
    leave(&at);
}

static void *acquire(void *arg)
{
    return (void *)(uintptr_t)dibs_lock_acquire(arg, NULL);
}

/* Waits behind the rival with the answer cut after n bytes; negative: not. */
static void wait_in_line(place *at, long n)
{
    pthread_t thread;
    void *rc = NULL;

    CHECK(DIBS_OK, dibs_lock_try(at->rival, err));
    proxy_arm(&at->px, n);
    assert_int_equal(pthread_create(&thread, NULL, acquire, at->lock), 0);
    world_await_waiters(at->w->other, "k", 1);
    CHECK(DIBS_OK, dibs_lock_release(at->rival, err));
    assert_int_equal(pthread_join(thread, &rc), 0);
    assert_status((uintptr_t)rc, DIBS_OK);
    world_expect_busy(at->rival, at->lock);
    CHECK(DIBS_OK, dibs_lock_release(at->lock, err));
}

/* A waiter asks again, so it is served whatever it missed. */
static void a_queued_answer_cut_at_any_byte_is_asked_again(void **state)
{
    enum {
        QUEUED_LEN = 60
    }; /* the list with who holds it, and a little more */
    static place at;

    enter(&at, *state,
          DIBS_LOCK_OPTS(.ttl_ms = TTL_MS, .wait_ms = WORLD_BOUND_MS));
    wait_in_line(&at, -1);
    for (long n = 0; n < QUEUED_LEN; n++)
        wait_in_line(&at, n);
    assert_true(atomic_load(&at.px.cuts) > QUEUED_LEN / 2);
    leave(&at);
}

static void a_renewal_cut_at_any_byte_is_made_again(void **state)
{
    enum { RENEWAL_LEN = 12 };
    static place at;
    uint64_t fence;

    enter(&at, *state, DIBS_LOCK_OPTS(.ttl_ms = pace_ms(600)));
    CHECK(DIBS_OK, dibs_lock_try(at.lock, err));
    fence = dibs_lock_fence(at.lock);
    world_await_renewal(at.cl);
    for (long n = 0; n < RENEWAL_LEN; n++) {
        proxy_arm(&at.px, n);
        world_await_renewal(at.cl);
        world_expect_held(at.lock);
        assert_int_equal(dibs_lock_fence(at.lock), fence);
    }
    assert_true(atomic_load(&at.px.cuts) > RENEWAL_LEN / 2);
    CHECK(DIBS_OK, dibs_lock_release(at.lock, err));
    leave(&at);
}

static void an_open_cut_at_any_byte_is_unavailable(void **state)
{
    static place at;
    long len;

    enter(&at, *state, NULL);
    proxy_arm(&at.px, -1);
    dibs_close(world_client(at.url, TIMEOUT_MS));
    len = atomic_load(&at.px.passed);
    assert_true(len > 0);
    /* The clock of the server, which is part of it, is some digits longer or
     * shorter now and then. */
    for (long n = 0; n < len; n++) {
        dibsx_nsec from_at = dibsx_now();
        dibs_client *cl = NULL;
        dibs_error why = {0};
        dibs_status rc;

        proxy_arm(&at.px, n);
        rc = dibs_open(at.url, DIBS_CLIENT_OPTS(.timeout_ms = TIMEOUT_MS), &cl,
                       &why);
        assert_status(rc, cl ? DIBS_OK : DIBS_UNAVAIL);
        assert_true(cl == NULL || n >= len - 6);
        IN_TIME(world_ms_since(from_at) <= pace_ms(TIMEOUT_MS + SLACK_MS));
        dibs_close(cl);
    }
    IN_TIME(atomic_load(&at.px.cuts) >= len - 6);
    leave(&at);
}

/* An answer that comes after its caller has gone is not taken for another's. */
static void a_late_answer_is_nobodys(void **state)
{
    world *w = *state;
    dibs_client *cl;
    dibs_lock *lock;
    dibs_value value = {0};
    static place at;

    enter(&at, w, DIBS_LOCK_OPTS(.ttl_ms = TTL_MS));
    cl = world_client(at.url, pace_ms(150));
    lock = world_lock(cl, "late", DIBS_LOCK_OPTS(.ttl_ms = TTL_MS));
    CHECK(DIBS_OK, dibs_state_set(w->other, "v", "seven", 5, 0, NULL, err));
    for (int i = 0; i < 5; i++) {
        dibs_error why = {0};

        atomic_store(&at.px.delay_ms, (int)pace_ms(300));
        IN_TIME(dibs_lock_try(lock, &why) != DIBS_OK);
        assert_int_equal(dibs_lock_fence(lock), 0);
        atomic_store(&at.px.delay_ms, 0);
        while (dibs_ping(cl, NULL, &why) != DIBS_OK)
            world_sleep_ms(5);
        CHECK(DIBS_OK, dibs_state_get(cl, "v", &value, err));
        assert_string_equal(value.data, "seven");
        dibs_value_free(&value);
    }
    CHECK(DIBS_OK, world_try_until(lock, WORLD_BOUND_MS));
    dibs_lock_free(lock);
    dibs_close(cl);
    leave(&at);
}

/* Answers that never come: told in time, and free again within a ttl. */
static void swallowed_answers_cost_the_lease_in_time(void **state)
{
    loss lost = {0};
    uint64_t fence;
    dibsx_nsec end_at;
    static place at;

    enter(&at, *state,
          DIBS_LOCK_OPTS(.ttl_ms = TTL_MS, .on_lost = note_loss,
                         .on_lost_arg = &lost));
    CHECK(DIBS_OK, dibs_lock_try(at.lock, err));
    fence = dibs_lock_fence(at.lock);
    proxy_swallow(&at.px, true);
    world_sleep_ms(20);
    end_at = end_of(at.lock);
    await_loss(&lost, WORLD_BOUND_MS);
    IN_TIME(atomic_load(&lost.told_at) <= end_at + WORLD_LATE_MS * DIBSX_MS);
    proxy_swallow(&at.px, false);
    CHECK(DIBS_OK, world_try_until(at.rival, 2 * TTL_MS + SLACK_MS));
    assert_true(dibs_lock_fence(at.rival) > fence);
    leave(&at);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(an_acquire_cut_at_any_byte_is_unknown),
        WORLD_TEST(a_release_cut_at_any_byte_is_done),
        WORLD_TEST(a_queued_answer_cut_at_any_byte_is_asked_again),
        WORLD_TEST(a_renewal_cut_at_any_byte_is_made_again),
        WORLD_TEST(an_open_cut_at_any_byte_is_unavailable),
        WORLD_TEST(a_late_answer_is_nobodys),
        WORLD_TEST(swallowed_answers_cost_the_lease_in_time),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
