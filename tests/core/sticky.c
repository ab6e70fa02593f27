/* sticky.c - a lease that stays after its release, and goes when it is wanted. */
/* SPDX-License-Identifier: MIT */
#include "core.h"

#include <poll.h>
#include <pthread.h>

#define STICKY(...) DIBS_LOCK_OPTS(.flags = DIBS_LOCK_STICKY, __VA_ARGS__)

static void stays_and_is_taken_up_under_the_same_fence(void **state)
{
    dibs_client *cl = core_open();
    dibs_lock *lock = core_lock(cl, core_name(), STICKY(.ttl_ms = 60000));
    dibs_stats stats = {.size = sizeof(stats)};
    uint64_t fence;

    (void)state;
    CHECK(DIBS_OK, dibs_lock_acquire(lock, err));
    fence = dibs_lock_fence(lock);
    for (int i = 0; i < 100; i++) {
        CHECK(DIBS_OK, dibs_lock_release(lock, err));
        assert_int_equal(dibs_lock_state_get(lock), DIBS_LOCK_FREE);
        assert_int_equal(dibs_lock_fence(lock), 0);
        CHECK(DIBS_LOST, dibs_lock_check(lock));
        CHECK(DIBS_OK, dibs_lock_acquire(lock, err));
        assert_int_equal(dibs_lock_fence(lock), fence);
    }
    dibs_stats_get(cl, &stats);
    assert_int_equal(stats.acquired, 101);
    assert_int_equal(stats.held, 1);
    CHECK(DIBS_OK, dibs_lock_release(lock, err));
    dibs_stats_get(cl, &stats);
    assert_int_equal(stats.held, 0);
    CHECK(DIBS_LOST, dibs_lock_release(lock, err));
    dibs_lock_free(lock);
    dibs_close(cl);
}

/* The waiter's own wait is endless: only the holder's giving up can end it. */
static void an_idle_one_is_given_up_when_somebody_waits(void **state)
{
    dibs_client *cl = core_open();
    dibs_client *other = core_open();
    const char *name = core_name();
    dibs_lock *lock = core_lock(cl, name, STICKY(.ttl_ms = 3600000));
    dibs_lock *waiter = core_lock(other, name, DIBS_LOCK_OPTS(.wait_ms = -1));
    uint64_t fence;

    (void)state;
    CHECK(DIBS_OK, dibs_lock_acquire(lock, err));
    fence = dibs_lock_fence(lock);
    CHECK(DIBS_OK, dibs_lock_release(lock, err));
    CHECK(DIBS_OK, dibs_lock_acquire(waiter, err));
    assert_true(dibs_lock_fence(waiter) > fence);
    CHECK(DIBS_BUSY, dibs_lock_try(lock, err));
    CHECK(DIBS_OK, dibs_lock_release(waiter, err));
    CHECK(DIBS_OK, dibs_lock_try(lock, err));
    dibs_lock_free(lock);
    dibs_lock_free(waiter);
    dibs_close(other);
    dibs_close(cl);
}

typedef struct waiting {
    dibs_lock *lock;
    dibs_status rc;
    dibs_error err;
} waiting;

static void *wait_for(void *arg)
{
    waiting *wt = arg;

    wt->rc = dibs_lock_acquire(wt->lock, &wt->err);
    return NULL;
}

static bool has_waiter(const dibs_lease_info *info, void *arg)
{
    *(bool *)arg = info->waiter_count > 0;
    return true;
}

typedef struct place {
    dibs_client *cl;
    const char *name;
} place;

static bool somebody_waits(void *arg)
{
    place *pl = arg;
    bool waits = false;
    dibs_error err;
    dibs_status rc =
        dibs_lease_show(pl->cl, pl->name, has_waiter, &waits, &err);

    if (rc != DIBS_OK)
        assert_status(rc, DIBS_NOTFOUND);
    return waits;
}

static void one_in_use_goes_back_with_its_release(void **state)
{
    dibs_client *cl = core_open();
    dibs_client *other = core_open();
    const char *name = core_name();
    dibs_lock *lock = core_lock(cl, name, STICKY(.ttl_ms = 3600000));
    waiting wt = {.lock =
                      core_lock(other, name, DIBS_LOCK_OPTS(.wait_ms = -1))};
    place pl = {cl, name};
    pthread_t thread;

    (void)state;
    CHECK(DIBS_OK, dibs_lock_acquire(lock, err));
    assert_int_equal(pthread_create(&thread, NULL, wait_for, &wt), 0);
    core_until(somebody_waits, &pl);
    CHECK(DIBS_OK, dibs_lock_check(lock));
    CHECK(DIBS_OK, dibs_lock_release(lock, err));
    pthread_join(thread, NULL);
    CHECK(DIBS_OK, wt.rc);
    dibs_lock_free(lock);
    dibs_lock_free(wt.lock);
    dibs_close(other);
    dibs_close(cl);
}

static bool can_be_had(void *arg)
{
    return dibs_lock_try(arg, NULL) == DIBS_OK;
}

/* One who only tries is refused once; the holder hears of it and gives it up. */
static void a_try_is_heard_too(void **state)
{
    dibs_client *cl = core_open();
    dibs_client *other = core_open();
    const char *name = core_name();
    dibs_lock *lock = core_lock(cl, name, STICKY(.ttl_ms = 3600000));
    dibs_lock *trier = core_lock(other, name, NULL);

    (void)state;
    CHECK(DIBS_OK, dibs_lock_acquire(lock, err));
    CHECK(DIBS_OK, dibs_lock_release(lock, err));
    core_until(can_be_had, trier);
    dibs_lock_free(lock);
    dibs_lock_free(trier);
    dibs_close(other);
    dibs_close(cl);
}

static void free_and_close_give_it_back(void **state)
{
    dibs_client *cl = core_open();
    dibs_client *other = core_open();
    const char *first = core_name();
    dibs_lock *a = core_lock(cl, first, STICKY(.ttl_ms = 3600000));
    dibs_lock *b = core_lock(other, first, NULL);
    dibs_lock *c, *d;

    (void)state;
    CHECK(DIBS_OK, dibs_lock_acquire(a, err));
    CHECK(DIBS_OK, dibs_lock_release(a, err));
    dibs_lock_free(a);
    CHECK(DIBS_OK, dibs_lock_try(b, err));
    dibs_lock_free(b);

    first = core_name();
    c = core_lock(cl, first, STICKY(.ttl_ms = 3600000));
    d = core_lock(other, first, NULL);
    CHECK(DIBS_OK, dibs_lock_acquire(c, err));
    CHECK(DIBS_OK, dibs_lock_release(c, err));
    dibs_close(cl);
    CHECK(DIBS_OK, dibs_lock_try(d, err));
    dibs_lock_free(c);
    dibs_lock_free(d);
    dibs_close(other);
}

typedef struct taken_up {
    dibs_lock *lock;
    uint64_t fence;
} taken_up;

/* Whether the next use is under a new lease. */
static bool is_new(void *arg)
{
    taken_up *up = arg;

    CHECK(DIBS_OK, dibs_lock_acquire(up->lock, err));
    if (dibs_lock_fence(up->lock) > up->fence)
        return true;
    /* The news of the loss may come at any moment. */
    (void)dibs_lock_release(up->lock, NULL);
    return false;
}

static void a_lost_idle_lease_is_silent(void **state)
{
    dibs_client *cl = core_open();
    const char *name = core_name();
    dibs_lock *lock = core_lock(cl, name, STICKY(.ttl_ms = 60000));
    dibs_stats stats = {.size = sizeof(stats)};
    taken_up up = {.lock = lock};

    (void)state;
    CHECK(DIBS_OK, dibs_lock_acquire(lock, err));
    up.fence = dibs_lock_fence(lock);
    CHECK(DIBS_OK, dibs_lock_release(lock, err));
    CHECK(DIBS_LOST, dibs_lock_renew(lock, err));
    CHECK(DIBS_OK, dibs_lease_break(cl, name, 0, "test", NULL, err));
    core_until(is_new, &up);
    dibs_stats_get(cl, &stats);
    assert_int_equal(stats.held, 1);
    CHECK(DIBS_OK, dibs_lock_release(lock, err));
    dibs_stats_get(cl, &stats);
    assert_int_equal(stats.held, 0);
    dibs_lock_free(lock);
    dibs_close(cl);
}

/* What rests is what the next acquire asks for, or nothing does. */
static void a_downgraded_lease_is_not_kept(void **state)
{
    dibs_client *cl = core_open();
    dibs_client *other = core_open();
    const char *name = core_name();
    dibs_lock *lock = core_lock(cl, name, STICKY(.ttl_ms = 60000));
    dibs_lock *reader =
        core_lock(other, name, DIBS_LOCK_OPTS(.mode = DIBS_SHARED));

    (void)state;
    CHECK(DIBS_OK, dibs_lock_acquire(lock, err));
    CHECK(DIBS_OK, dibs_lock_downgrade(lock, err));
    CHECK(DIBS_OK, dibs_lock_release(lock, err));
    CHECK(DIBS_OK, dibs_lock_try(reader, err));
    CHECK(DIBS_BUSY, dibs_lock_try(lock, err));
    CHECK(DIBS_OK, dibs_lock_release(reader, err));
    CHECK(DIBS_OK, dibs_lock_try(lock, err));
    CHECK(DIBS_BUSY, dibs_lock_try(reader, err));
    dibs_lock_free(lock);
    dibs_lock_free(reader);
    dibs_close(other);
    dibs_close(cl);
}

static void note_call(dibs_lock *lock, void *arg)
{
    (void)lock;
    __atomic_store_n((int *)arg, 1, __ATOMIC_SEQ_CST);
}

static bool was_called(void *arg)
{
    return __atomic_load_n((int *)arg, __ATOMIC_SEQ_CST) == 1;
}

static void a_holder_is_asked_and_may_ignore_it(void **state)
{
    dibs_client *cl = core_open();
    dibs_client *other = core_open();
    const char *name = core_name();
    int asked = 0;
    dibs_lock *lock = core_lock(cl, name,
                                DIBS_LOCK_OPTS(.on_yield = note_call,
                                               .on_yield_arg = &asked));
    uint32_t count = 0;

    (void)state;
    CHECK(DIBS_NOTFOUND, dibs_lease_yield(other, name, 0, &count, err));
    CHECK(DIBS_OK, dibs_lock_acquire(lock, err));
    CHECK(DIBS_STALE, dibs_lease_yield(other, name, 1, &count, err));
    CHECK(DIBS_OK, dibs_lease_yield(other, name, 0, &count, err));
    assert_int_equal(count, 1);
    core_until(was_called, &asked);
    CHECK(DIBS_OK, dibs_lock_check(lock));
    CHECK(DIBS_OK, dibs_lock_release(lock, err));
    dibs_lock_free(lock);
    dibs_close(other);
    dibs_close(cl);
}

int core_sticky_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stays_and_is_taken_up_under_the_same_fence),
        cmocka_unit_test(an_idle_one_is_given_up_when_somebody_waits),
        cmocka_unit_test(one_in_use_goes_back_with_its_release),
        cmocka_unit_test(a_try_is_heard_too),
        cmocka_unit_test(free_and_close_give_it_back),
        cmocka_unit_test(a_lost_idle_lease_is_silent),
        cmocka_unit_test(a_downgraded_lease_is_not_kept),
        cmocka_unit_test(a_holder_is_asked_and_may_ignore_it),
    };

    return cmocka_run_group_tests_name("core sticky", tests, NULL, NULL);
}
