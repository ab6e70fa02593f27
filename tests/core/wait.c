/* wait.c - waiting for a lock: bounded, endless, cancelled, retried, in order. */
/* SPDX-License-Identifier: MIT */
#include "core.h"

#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

static int64_t now_ms(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

typedef struct taker {
    dibs_lock *lock;
    dibs_status rc;
    bool done;
    uint64_t fence;
    pthread_t thread;
} taker;

static void *take(void *arg)
{
    taker *tk = arg;

    tk->rc = dibs_lock_acquire(tk->lock, NULL);
    tk->fence = dibs_lock_fence(tk->lock);
    __atomic_store_n(&tk->done, true, __ATOMIC_RELEASE);
    return NULL;
}

static bool is_waiting(void *arg)
{
    taker *tk = arg;

    return dibs_lock_state_get(tk->lock) == DIBS_LOCK_WAITING;
}

static void
start(taker *tk, dibs_client *cl, const char *name, const dibs_lock_opts *opts)
{
    tk->done = false;
    tk->lock = core_lock(cl, name, opts);
    assert_int_equal(pthread_create(&tk->thread, NULL, take, tk), 0);
}

static bool is_done(void *arg)
{
    return __atomic_load_n(&((taker *)arg)->done, __ATOMIC_ACQUIRE);
}

/* A waiter that was late has lost its place to one that does not give back. */
static void finish(taker *tk)
{
    core_until(is_done, tk);
    assert_int_equal(pthread_join(tk->thread, NULL), 0);
}

static bool count_waiters(const dibs_lease_info *info, void *arg)
{
    *(size_t *)arg = info->waiter_count;
    return true;
}

typedef struct queue {
    dibs_client *cl;
    const char *name;
    size_t length;
} queue;

static bool queue_has(void *arg)
{
    const queue *qu = arg;
    size_t count = 0;

    CHECK(DIBS_OK,
          dibs_lease_show(qu->cl, qu->name, count_waiters, &count, err));
    return count == qu->length;
}

static void a_bounded_wait_ends(void **state)
{
    dibs_client *cl = core_open();
    const char *name = core_name();
    dibs_lock *holder = core_lock(cl, name, NULL);
    dibs_lock *lock =
        core_lock(cl, name, DIBS_LOCK_OPTS(.wait_ms = pace_ms(150)));
    int64_t start_ms;

    (void)state;
    CHECK(DIBS_OK, dibs_lock_try(holder, err));
    start_ms = now_ms();
    CHECK(DIBS_TIMEOUT, dibs_lock_acquire(lock, err));
    assert_true(now_ms() - start_ms >= 149);
    CHECK(DIBS_OK, dibs_lock_release(holder, err));
    CHECK(DIBS_OK, dibs_lock_try(lock, err));
    dibs_lock_free(lock);
    dibs_lock_free(holder);
    dibs_close(cl);
}

static void a_release_hands_over(void **state)
{
    dibs_client *cl = core_open();
    dibs_client *other = core_open();
    const char *name = core_name();
    dibs_lock *holder = core_lock(cl, name, DIBS_LOCK_OPTS(.ttl_ms = 60000));
    queue qu = {.cl = cl, .name = name, .length = 1};
    taker tk;
    uint64_t fence;

    (void)state;
    CHECK(DIBS_OK, dibs_lock_try(holder, err));
    fence = dibs_lock_fence(holder);
    start(&tk, other, name, DIBS_LOCK_OPTS(.wait_ms = -1, .ttl_ms = 60000));
    core_until(queue_has, &qu);
    CHECK(DIBS_OK, dibs_lock_release(holder, err));
    finish(&tk);
    CHECK(DIBS_OK, tk.rc);
    assert_true(tk.fence > fence);
    CHECK(DIBS_BUSY, dibs_lock_try(holder, err));
    dibs_lock_free(tk.lock);
    dibs_lock_free(holder);
    dibs_close(other);
    dibs_close(cl);
}

static bool claim_confirmed(void *arg)
{
    return dibs_lock_valid_ms(arg) > 30000;
}

/* A lease that was handed over is a short claim until the keeper renews it. */
static void a_handed_over_lease_is_made_whole(void **state)
{
    dibs_client *cl = core_open();
    const char *name = core_name();
    dibs_lock *holder = core_lock(cl, name, NULL);
    queue qu = {.cl = cl, .name = name, .length = 1};
    taker tk;

    (void)state;
    CHECK(DIBS_OK, dibs_lock_try(holder, err));
    start(&tk, cl, name, DIBS_LOCK_OPTS(.wait_ms = -1, .ttl_ms = 60000));
    core_until(queue_has, &qu);
    CHECK(DIBS_OK, dibs_lock_release(holder, err));
    finish(&tk);
    core_until(claim_confirmed, tk.lock);
    assert_int_equal(dibs_lock_fence(tk.lock), tk.fence);
    dibs_lock_free(tk.lock);
    dibs_lock_free(holder);
    dibs_close(cl);
}

static void an_expired_holder_is_followed(void **state)
{
    dibs_client *cl = core_open();
    const char *name = core_name();
    dibs_lock *holder =
        core_lock(cl, name,
                  DIBS_LOCK_OPTS(.ttl_ms = 200, .flags = DIBS_LOCK_NO_RENEW));
    dibs_lock *lock = core_lock(cl, name, DIBS_LOCK_OPTS(.wait_ms = 5000));

    (void)state;
    CHECK(DIBS_OK, dibs_lock_try(holder, err));
    CHECK(DIBS_OK, dibs_lock_acquire(lock, err));
    assert_int_equal(dibs_lock_state_get(holder), DIBS_LOCK_LOST);
    CHECK(DIBS_LOST, dibs_lock_release(holder, err));
    dibs_lock_free(lock);
    dibs_lock_free(holder);
    dibs_close(cl);
}

static void a_cancelled_wait_ends_and_leaves_the_queue(void **state)
{
    dibs_client *cl = core_open();
    const char *name = core_name();
    dibs_lock *holder = core_lock(cl, name, NULL);
    queue qu = {.cl = cl, .name = name, .length = 1};
    taker tk;

    (void)state;
    CHECK(DIBS_OK, dibs_lock_try(holder, err));
    start(&tk, cl, name, DIBS_LOCK_OPTS(.wait_ms = -1));
    core_until(is_waiting, &tk);
    core_until(queue_has, &qu);
    CHECK(DIBS_INVALID, dibs_lock_release(tk.lock, err));
    dibs_lock_cancel(tk.lock);
    finish(&tk);
    CHECK(DIBS_CANCELLED, tk.rc);
    qu.length = 0;
    assert_true(queue_has(&qu));
    dibs_lock_free(tk.lock);
    dibs_lock_free(holder);
    dibs_close(cl);
}

static void retries_follow_their_delay(void **state)
{
    dibs_client *cl = core_open();
    const char *name = core_name();
    dibs_lock *holder = core_lock(cl, name, NULL);
    dibs_lock *lock =
        core_lock(cl, name, DIBS_LOCK_OPTS(.retries = 3, .retry_delay_ms = 40));
    dibs_stats stats = {.size = sizeof(stats)};
    int64_t start_ms = now_ms();

    (void)state;
    CHECK(DIBS_OK, dibs_lock_try(holder, err));
    CHECK(DIBS_BUSY, dibs_lock_acquire(lock, err));
    assert_true(now_ms() - start_ms >= 3 * 20);
    dibs_stats_get(cl, &stats);
    assert_int_equal(stats.busy, 1);
    assert_int_equal(stats.timed_out + stats.cancelled, 0);
    dibs_lock_free(lock);
    dibs_lock_free(holder);
    dibs_close(cl);
}

static void retries_can_be_cancelled(void **state)
{
    dibs_client *cl = core_open();
    const char *name = core_name();
    dibs_lock *holder = core_lock(cl, name, NULL);
    dibs_stats stats = {.size = sizeof(stats)};
    taker tk;

    (void)state;
    CHECK(DIBS_OK, dibs_lock_try(holder, err));
    start(&tk, cl, name,
          DIBS_LOCK_OPTS(.retries = 1000, .retry_delay_ms = 60000));
    do {
        poll(NULL, 0, 1);
        dibs_stats_get(cl, &stats);
    } while (stats.waiting == 0 && !is_done(&tk));
    /* The cancel may come before the first try has ended: say it until heard. */
    while (!is_done(&tk))
        dibs_lock_cancel(tk.lock);
    finish(&tk);
    CHECK(DIBS_CANCELLED, tk.rc);
    dibs_stats_get(cl, &stats);
    assert_int_equal(stats.cancelled, 1);
    dibs_lock_free(tk.lock);
    dibs_lock_free(holder);
    dibs_close(cl);
}

enum { IN_LINE = 5 };

typedef struct expected {
    dibs_lock *lock;
    uint32_t place;
} expected;

static bool has_place(void *arg)
{
    const expected *ex = arg;

    return dibs_lock_place(ex->lock) == ex->place;
}

/* Waits for it: a waiter learns of its place with its next answer. */
static void expect_place(dibs_lock *lock, size_t place)
{
    core_until(has_place, &(expected){.lock = lock, .place = (uint32_t)place});
}

static void waiters_are_served_in_order(void **state)
{
    dibs_client *cl = core_open();
    const char *name = core_name();
    dibs_lock *holder = core_lock(cl, name, NULL);
    taker line[IN_LINE];

    (void)state;
    CHECK(DIBS_OK, dibs_lock_try(holder, err));
    for (size_t i = 0; i < IN_LINE; i++) {
        queue qu = {.cl = cl, .name = name, .length = i + 1};
        start(&line[i], cl, name, DIBS_LOCK_OPTS(.wait_ms = -1));
        core_until(queue_has, &qu);
        expect_place(line[i].lock, i + 1);
    }
    assert_int_equal(dibs_lock_place(holder), 0);
    CHECK(DIBS_OK, dibs_lock_release(holder, err));
    for (size_t i = 0; i < IN_LINE; i++) {
        finish(&line[i]);
        CHECK(DIBS_OK, line[i].rc);
        assert_int_equal(dibs_lock_place(line[i].lock), 0);
        for (size_t behind = i + 1; behind < IN_LINE; behind++)
            expect_place(line[behind].lock, behind - i);
        if (i > 0)
            assert_true(line[i].fence > line[i - 1].fence);
        CHECK(DIBS_OK, dibs_lock_release(line[i].lock, err));
        dibs_lock_free(line[i].lock);
    }
    dibs_lock_free(holder);
    dibs_close(cl);
}

static void priority_goes_first(void **state)
{
    dibs_client *cl = core_open();
    const char *name = core_name();
    dibs_lock *holder = core_lock(cl, name, NULL);
    queue qu = {.cl = cl, .name = name, .length = 1};
    taker low, high;

    (void)state;
    CHECK(DIBS_OK, dibs_lock_try(holder, err));
    start(&low, cl, name, DIBS_LOCK_OPTS(.wait_ms = -1));
    core_until(queue_has, &qu);
    start(&high, cl, name, DIBS_LOCK_OPTS(.wait_ms = -1, .priority = 5));
    qu.length = 2;
    core_until(queue_has, &qu);
    CHECK(DIBS_OK, dibs_lock_release(holder, err));
    finish(&high);
    CHECK(DIBS_OK, dibs_lock_release(high.lock, err));
    finish(&low);
    assert_true(low.fence > high.fence);
    dibs_lock_free(low.lock);
    dibs_lock_free(high.lock);
    dibs_lock_free(holder);
    dibs_close(cl);
}

static void hold_min_keeps_others_out(void **state)
{
    dibs_client *cl = core_open();
    const char *name = core_name();
    const int64_t hold_ms = pace_ms(300);
    dibs_lock *a = core_lock(cl, name, DIBS_LOCK_OPTS(.hold_min_ms = hold_ms));
    dibs_lock *b =
        core_lock(cl, name, DIBS_LOCK_OPTS(.wait_ms = pace_ms(5000)));
    int64_t start_ms = now_ms();
    dibs_status rc;

    (void)state;
    CHECK(DIBS_OK, dibs_lock_try(a, err));
    CHECK(DIBS_OK, dibs_lock_release(a, err));
    rc = dibs_lock_try(b, NULL);
    IN_TIME(rc != DIBS_OK || now_ms() - start_ms < hold_ms);
    CHECK(DIBS_BUSY, rc);
    CHECK(DIBS_OK, dibs_lock_acquire(b, err));
    assert_true(now_ms() - start_ms >= hold_ms - 1);
    dibs_lock_free(a);
    dibs_lock_free(b);
    dibs_close(cl);
}

/* It counts from the grant: who has held for so long keeps nobody out. */
static void hold_min_that_is_over_keeps_nobody_out(void **state)
{
    dibs_client *cl = core_open();
    const char *name = core_name();
    dibs_lock *a = core_lock(cl, name, DIBS_LOCK_OPTS(.hold_min_ms = 400));
    dibs_lock *b = core_lock(cl, name, NULL);
    int64_t start_ms;

    (void)state;
    CHECK(DIBS_OK, dibs_lock_try(a, err));
    start_ms = now_ms();
    while (now_ms() - start_ms <= 400)
        poll(NULL, 0, 5);
    CHECK(DIBS_OK, dibs_lock_release(a, err));
    CHECK(DIBS_OK, dibs_lock_try(b, err));
    dibs_lock_free(a);
    dibs_lock_free(b);
    dibs_close(cl);
}

int core_wait_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_bounded_wait_ends),
        cmocka_unit_test(a_release_hands_over),
        cmocka_unit_test(a_handed_over_lease_is_made_whole),
        cmocka_unit_test(an_expired_holder_is_followed),
        cmocka_unit_test(a_cancelled_wait_ends_and_leaves_the_queue),
        cmocka_unit_test(retries_follow_their_delay),
        cmocka_unit_test(retries_can_be_cancelled),
        cmocka_unit_test(waiters_are_served_in_order),
        cmocka_unit_test(priority_goes_first),
        cmocka_unit_test(hold_min_keeps_others_out),
        cmocka_unit_test(hold_min_that_is_over_keeps_nobody_out),
    };

    return cmocka_run_group_tests_name("wait", tests, NULL, NULL);
}
