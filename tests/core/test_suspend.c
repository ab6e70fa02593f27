/* test_suspend.c - a machine that sleeps while a lease is held: as soon as it is
 * awake, everybody is told that the lease has ended.
 *
 * The clock is that of clock_shim, with which this program starts itself anew. */
/* SPDX-License-Identifier: MIT */
#include "check.h"

#include <dibs/dibs.h>

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

/* Longer than the lease lasts, and no test waits so long for what does not come. */
enum { TTL_MS = 600000, SLEEP_S = 700 };
#define BOUND_MS ((int)pace_ms(20000))

/* By how much the wall clock and the boot clock are ahead, in microseconds. */
static _Atomic(int64_t) *ahead_us;

static void suspend(void)
{
    atomic_fetch_add(&ahead_us[1], SLEEP_S * INT64_C(1000000));
}

static bool readable(int fd, int timeout_ms)
{
    struct pollfd at = {.fd = fd, .events = POLLIN};

    return poll(&at, 1, timeout_ms) == 1;
}

/* A lease that nothing renews, one that lasts for twice as long, and pipes: one that
 * says that the loss of the first was told, and one that lets the teller go on. */
typedef struct scene {
    dibs_client *cl;
    dibs_lock *lock;
    dibs_lock *later;
    int told[2];
    int go_on[2];
} scene;

/* Thread: the keeper, which tells of no other loss meanwhile. */
static void tell(dibs_lock *lock, void *arg)
{
    const scene *sc = arg;
    char byte;

    (void)lock;
    assert_int_equal(write(sc->told[1], "x", 1), 1);
    assert_int_equal(read(sc->go_on[0], &byte, 1), 1);
}

static dibs_lock *hold(scene *sc, const char *name, int64_t ttl_ms, bool told)
{
    dibs_lock *lock = NULL;

    CHECK(DIBS_OK, dibs_lock_new(sc->cl, name,
                                 DIBS_LOCK_OPTS(.ttl_ms = ttl_ms,
                                                .flags = DIBS_LOCK_NO_RENEW,
                                                .on_lost = told ? tell : NULL,
                                                .on_lost_arg = sc),
                                 &lock, err));
    CHECK(DIBS_OK, dibs_lock_try(lock, err));
    return lock;
}

static int setup(void **state)
{
    static scene sc;

    assert_int_equal(pipe(sc.told), 0);
    assert_int_equal(pipe(sc.go_on), 0);
    CHECK(DIBS_OK, dibs_open("memory:suspend", NULL, &sc.cl, err));
    sc.lock = hold(&sc, "k", TTL_MS, true);
    sc.later = hold(&sc, "later", 2 * TTL_MS, false);
    *state = &sc;
    return 0;
}

static int teardown(void **state)
{
    scene *sc = *state;

    assert_int_equal(write(sc->go_on[1], "x", 1), 1);
    dibs_lock_free(sc->lock);
    dibs_lock_free(sc->later);
    dibs_close(sc->cl);
    for (int i = 0; i < 2; i++) {
        close(sc->told[i]);
        close(sc->go_on[i]);
    }
    return 0;
}

static void the_handle_knows_at_the_first_look(void **state)
{
    scene *sc = *state;

    CHECK(DIBS_OK, dibs_lock_check(sc->lock));
    suspend();
    CHECK(DIBS_LOST, dibs_lock_check(sc->lock));
    assert_int_equal(dibs_lock_fence(sc->lock), 0);
    assert_int_equal(dibs_lock_state_get(sc->lock), DIBS_LOCK_LOST);
}

/* Also when the thread that tells of losses has no time to. */
static void the_loss_descriptor_goes_off(void **state)
{
    scene *sc = *state;
    int fd = dibs_lock_lost_fd(sc->lock);
    int later_fd = dibs_lock_lost_fd(sc->later);

    assert_false(readable(fd, 0));
    suspend();
    IN_TIME(readable(sc->told[0], BOUND_MS));
    IN_TIME(readable(fd, BOUND_MS));
    assert_false(readable(later_fd, 0));
    suspend();
    IN_TIME(readable(later_fd, BOUND_MS));
}

static void the_callback_is_made(void **state)
{
    scene *sc = *state;

    assert_false(readable(sc->told[0], 0));
    suspend();
    IN_TIME(readable(sc->told[0], BOUND_MS));
}

/* An asynchronous acquire whose time has gone by while the machine slept. */
static void
see(dibs_lock *lock, dibs_status rc, const dibs_error *why, void *arg)
{
    (void)lock;
    (void)why;
    assert_true(rc == DIBS_OK || rc == DIBS_TIMEOUT);
    assert_int_equal(write(*(int *)arg, "x", 1), 1);
}

static void who_waits_goes_on(void **state)
{
    scene *sc = *state;
    dibs_lock *next = NULL;
    int done[2];

    assert_int_equal(pipe(done), 0);
    CHECK(DIBS_OK, dibs_lock_new(sc->cl, "k", DIBS_LOCK_OPTS(.wait_ms = TTL_MS),
                                 &next, err));
    CHECK(DIBS_OK, dibs_lock_acquire_async(next, see, &done[1], err));
    assert_false(readable(done[0], 0));
    suspend();
    IN_TIME(readable(done[0], BOUND_MS));
    dibs_lock_free(next);
    close(done[0]);
    close(done[1]);
}

static bool count_waiters(const dibs_lease_info *info, void *arg)
{
    *(size_t *)arg = info->waiter_count;
    return true;
}

/* On a slow machine a waiter may have come and gone between two looks. */
static void await_waiters(const scene *sc, size_t count)
{
    size_t found = count + 1;

    for (int looks = BOUND_MS; found != count && looks > 0; looks--) {
        CHECK(DIBS_OK,
              dibs_lease_show(sc->cl, "k", count_waiters, &found, err));
        poll(NULL, 0, 1);
    }
    IN_TIME(found == count);
}

/* A lock that is tried again after a pause in which the machine sleeps. */
static dibs_lock *lock_with_pause(const scene *sc)
{
    dibs_lock *lock = NULL;

    CHECK(DIBS_OK,
          dibs_lock_new(sc->cl, "k",
                        DIBS_LOCK_OPTS(.wait_ms = pace_ms(400), .retries = 1,
                                       .retry_delay_ms = TTL_MS),
                        &lock, err));
    return lock;
}

static void a_pause_is_over(void **state)
{
    scene *sc = *state;
    dibs_lock *next = lock_with_pause(sc);
    int done[2];

    assert_int_equal(pipe(done), 0);
    CHECK(DIBS_OK, dibs_lock_acquire_async(next, see, &done[1], err));
    await_waiters(sc, 1);
    await_waiters(sc, 0);
    suspend();
    suspend();
    IN_TIME(readable(done[0], BOUND_MS));
    dibs_lock_free(next);
    close(done[0]);
    close(done[1]);
}

static void *acquire(void *arg)
{
    dibs_lock *lock = arg;

    return (void *)(uintptr_t)dibs_lock_acquire(lock, NULL);
}

static void a_pause_of_a_thread_is_over(void **state)
{
    scene *sc = *state;
    dibs_lock *next = lock_with_pause(sc);
    struct timespec until;
    pthread_t thread;
    void *rc = NULL;

    assert_int_equal(pthread_create(&thread, NULL, acquire, next), 0);
    await_waiters(sc, 1);
    await_waiters(sc, 0);
    suspend();
    suspend();
    assert_int_equal(clock_gettime(CLOCK_REALTIME, &until), 0);
    until.tv_sec += BOUND_MS / 1000;
    IN_TIME(pthread_timedjoin_np(thread, &rc, &until) == 0);
    assert_status((uintptr_t)rc, DIBS_OK);
    dibs_lock_free(next);
}

/* Starts this program anew, with the shim and a clock in memory. */
static int begin_anew(char **argv)
{
    int fd = memfd_create("clock", 0);
    char path[64];

    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    if (fd < 0 || ftruncate(fd, 2 * sizeof(*ahead_us)) != 0 ||
        setenv("CLOCK_SHIM", path, 1) != 0 ||
        setenv("LD_PRELOAD", CLOCK_SHIM_LIBRARY, 1) != 0)
        return 1;
    execv("/proc/self/exe", argv);
    perror("/proc/self/exe");
    return 1;
}

#define SCENE_TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        SCENE_TEST(the_handle_knows_at_the_first_look),
        SCENE_TEST(the_loss_descriptor_goes_off),
        SCENE_TEST(the_callback_is_made),
        SCENE_TEST(who_waits_goes_on),
        SCENE_TEST(a_pause_is_over),
        SCENE_TEST(a_pause_of_a_thread_is_over),
    };
    const char *path = getenv("CLOCK_SHIM");
    int fd;

    (void)argc;
    if (!path)
        return begin_anew(argv);
    fd = (int)strtol(path + sizeof("/proc/self/fd"), NULL, 10);
    ahead_us = mmap(NULL, 2 * sizeof(*ahead_us), PROT_READ | PROT_WRITE,
                    MAP_SHARED, fd, 0);
    if (ahead_us == MAP_FAILED)
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
