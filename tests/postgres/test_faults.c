/* test_faults.c - a server that is restarted, whose processes are killed, that
 * ends connections or stands still; clients that are killed in the middle of a
 * call. No two hold at once, fences rise, and no call hangs. */
/* SPDX-License-Identifier: MIT */
#include "child.h"
#include "pg_world.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#define OURS "FROM pg_stat_activity WHERE application_name = 'dibs'"

/* Holds, lets `harm` be done, and looks who holds afterwards. */
static void hold_through(void (*harm)(void))
{
    char url[PG_URL_MAX];
    dibs_client *one, *other;
    dibs_lock *lock, *rival;
    uint64_t fence;

    pg_url(&world_sv, url);
    one = world_client(url, WORLD_STEP_MS);
    other = world_client(url, WORLD_STEP_MS);
    lock = world_lock(one, "through", DIBS_LOCK_OPTS(.ttl_ms = 60000));
    rival = world_lock(other, "through", NULL);
    for (int i = 0; i < 3; i++) {
        CHECK(DIBS_OK, dibs_lock_try(lock, err));
        fence = dibs_lock_fence(lock);
        harm();
        CHECK(DIBS_OK, dibs_ping(other, NULL, err));
        CHECK(DIBS_BUSY, dibs_lock_try(rival, err));
        assert_int_equal(dibs_lock_fence(lock), fence);
        CHECK(DIBS_OK, dibs_lock_check(lock));
        CHECK(DIBS_OK, dibs_lock_release(lock, err));
        CHECK(DIBS_OK, dibs_lock_try(rival, err));
        assert_true(dibs_lock_fence(rival) > fence);
        CHECK(DIBS_OK, dibs_lock_release(rival, err));
    }
    dibs_lock_free(rival);
    dibs_lock_free(lock);
    dibs_close(other);
    dibs_close(one);
}

static void restart(void)
{
    pg_kill(&world_sv);
    assert_true(pg_restart(&world_sv));
}

static void an_immediate_restart_keeps_leases(void **state)
{
    (void)state;
    hold_through(restart);
}

/* Its socket has gone, which is no mistake in the URL: it will come back. */
static void a_server_that_is_down_is_away(void **state)
{
    char url[PG_URL_MAX];
    dibs_client *one;
    dibs_lock *lock;

    (void)state;
    pg_unix_url(&world_sv, url);
    one = world_client(url, WORLD_STEP_MS);
    lock = world_lock(one, "down", NULL);
    CHECK(DIBS_OK, dibs_lock_try(lock, err));
    CHECK(DIBS_OK, dibs_lock_release(lock, err));
    pg_kill(&world_sv);
    for (int i = 0; i < 3; i++) {
        dibs_status rc = dibs_lock_try(lock, NULL);

        assert_true(rc == DIBS_UNAVAIL || (i == 0 && rc == DIBS_UNKNOWN));
    }
    assert_true(pg_restart(&world_sv));
    CHECK(DIBS_OK, dibs_ping(one, NULL, err));
    dibs_lock_free(lock);
    dibs_close(one);
}

/* The server ends all others too, and recovers as after a crash. */
static void kill_backend(void)
{
    dibsx_nsec end = dibsx_after_ms(dibsx_now(), PG_BOUND_MS);
    long long pid = pg_number(&world_sv, "SELECT pid " OURS " LIMIT 1");

    assert_true(pid > 1);
    assert_int_equal(kill((pid_t)pid, SIGKILL), 0);
    while (pg_number(&world_sv, "SELECT count(*) " OURS) != 0) {
        IN_TIME(dibsx_now() < end);
        world_sleep_ms(10);
    }
}

static void a_killed_backend_keeps_leases(void **state)
{
    (void)state;
    hold_through(kill_backend);
}

static void end_connections(void)
{
    assert_true(
        pg_tell(&world_sv, "SELECT pg_terminate_backend(pid, 5000) " OURS));
}

static void ended_connections_keep_leases(void **state)
{
    (void)state;
    hold_through(end_connections);
}

enum { WORKERS = 4, RUSH_MS = 4000 };

typedef struct rush {
    atomic_bool over;
    atomic_int inside;
    atomic_int wrong;
    atomic_int ended; /* leases that did not last until their holder left */
    atomic_int turns;
    uint64_t last_fence; /* guarded by the lock under test */
} rush;

static void take_turn(rush *all, dibs_lock *lock)
{
    if (atomic_fetch_add(&all->inside, 1) != 0 ||
        dibs_lock_fence(lock) <= all->last_fence)
        atomic_fetch_add(&all->wrong, 1);
    all->last_fence = dibs_lock_fence(lock);
    atomic_fetch_add(&all->turns, 1);
    atomic_fetch_add(&all->ended, dibs_lock_check(lock) != DIBS_OK);
    atomic_fetch_sub(&all->inside, 1);
}

static void *work(void *arg)
{
    rush *all = arg;
    char url[PG_URL_MAX];
    dibs_client *cl;
    dibs_lock *lock;

    pg_url(&world_sv, url);
    cl = NULL;
    while (dibs_open(url, DIBS_CLIENT_OPTS(.timeout_ms = WORLD_STEP_MS), &cl,
                     NULL) != DIBS_OK)
        world_sleep_ms(5);
    lock =
        world_lock(cl, "rush", DIBS_LOCK_OPTS(.ttl_ms = 2000, .wait_ms = 1000));
    while (!atomic_load(&all->over)) {
        dibsx_nsec from_at = dibsx_now();

        if (dibs_lock_acquire(lock, NULL) == DIBS_OK) {
            take_turn(all, lock);
            (void)dibs_lock_release(lock, NULL);
        }
        IN_TIME(world_ms_since(from_at) <= 2 * WORLD_STEP_MS + PG_BOUND_MS / 2);
    }
    dibs_lock_free(lock);
    dibs_close(cl);
    return NULL;
}

/* Connections are ended in the middle of whatever they do, all the time. */
static void connections_ended_in_every_step_do_no_harm(void **state)
{
    dibsx_nsec end = dibsx_after_ms(dibsx_now(), RUSH_MS);
    pthread_t threads[WORKERS];
    rush all = {.last_fence = 0};

    (void)state;
    for (int i = 0; i < WORKERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, work, &all), 0);
    while (dibsx_now() < end) {
        (void)pg_number(&world_sv,
                        "SELECT count(pg_terminate_backend(pid)) " OURS
                        " AND state = 'active'");
        (void)pg_number(&world_sv,
                        "SELECT pg_terminate_backend(pid)::integer " OURS
                        " ORDER BY random() LIMIT 1");
        world_sleep_ms(10);
    }
    atomic_store(&all.over, true);
    for (int i = 0; i < WORKERS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    print_message("%d turns\n", atomic_load(&all.turns));
    /* A holder that did not run until its lease had ended is not alone. */
    IN_TIME(atomic_load(&all.wrong) == 0 || atomic_load(&all.ended) == 0);
    assert_int_equal(atomic_load(&all.wrong), 0);
    IN_TIME(atomic_load(&all.turns) > 0);
}

/* A process of its own, with a URL and a descriptor: takes and gives back until it
 * is killed. */
static int live_until_killed(char **words)
{
    int ready_fd = (int)strtol(words[1], NULL, 10);
    dibs_client *cl = NULL;
    dibs_lock *lock = NULL;
    bool told = false;

    CHECK(DIBS_OK, dibs_open(words[0], NULL, &cl, err));
    CHECK(DIBS_OK, dibs_lock_new(cl, "mortal", DIBS_LOCK_OPTS(.ttl_ms = 1000),
                                 &lock, err));
    for (;;) {
        if (dibs_lock_try(lock, NULL) == DIBS_OK)
            (void)dibs_lock_release(lock, NULL);
        if (!told && write(ready_fd, "x", 1) == 1)
            told = true;
    }
}

static void kill_in_mid_call(const char *url, int delay_us)
{
    char ready_fd[16], byte;
    int ready[2];
    pid_t pid;

    assert_int_equal(pipe(ready), 0);
    pid = child_start("mortal", url, child_fd(ready[1], ready_fd), NULL);
    assert_true(pid > 0);
    close(ready[1]);
    IN_TIME(read(ready[0], &byte, 1) == 1);
    usleep((useconds_t)delay_us);
    kill(pid, SIGKILL);
    assert_int_equal(child_code(pid), 1000 + SIGKILL);
    close(ready[0]);
}

static void clients_killed_in_mid_call_leave_nothing_for_long(void **state)
{
    char url[PG_URL_MAX];
    uint64_t fence = 0;

    (void)state;
    pg_url(&world_sv, url);
    for (int i = 0; i < 12; i++) {
        dibs_client *cl;
        dibs_lock *lock;

        kill_in_mid_call(url, 137 * i);
        cl = world_client(url, WORLD_STEP_MS);
        lock = world_lock(cl, "mortal", NULL);
        CHECK(DIBS_OK, world_try_until(lock, 1000 + WORLD_SLACK_MS));
        assert_true(dibs_lock_fence(lock) > fence);
        fence = dibs_lock_fence(lock);
        dibs_lock_free(lock);
        dibs_close(cl);
    }
}

static void a_server_that_stands_still_holds_up_nobody_for_long(void **state)
{
    char url[PG_URL_MAX];
    dibs_client *cl;
    dibs_lock *lock;
    dibsx_nsec from_at;
    dibs_status rc;

    (void)state;
    pg_url(&world_sv, url);
    cl = world_client(url, WORLD_STEP_MS);
    lock = world_lock(cl, "still", DIBS_LOCK_OPTS(.ttl_ms = 1000));
    CHECK(DIBS_OK, dibs_lock_try(lock, err));
    CHECK(DIBS_OK, dibs_lock_release(lock, err));
    pg_pause(&world_sv);
    from_at = dibsx_now();
    rc = dibs_lock_try(lock, NULL);
    pg_resume(&world_sv);
    assert_true(rc == DIBS_UNKNOWN || rc == DIBS_UNAVAIL);
    IN_TIME(world_ms_since(from_at) <= pace_ms(WORLD_STEP_MS + WORLD_SLACK_MS));
    CHECK(DIBS_OK, world_try_until(lock, PG_BOUND_MS));
    dibs_lock_free(lock);
    dibs_close(cl);
}

static const child_part parts[] = {{"mortal", live_until_killed}, {0}};

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_immediate_restart_keeps_leases),
        cmocka_unit_test(a_server_that_is_down_is_away),
        cmocka_unit_test(a_killed_backend_keeps_leases),
        cmocka_unit_test(ended_connections_keep_leases),
        cmocka_unit_test(connections_ended_in_every_step_do_no_harm),
        cmocka_unit_test(clients_killed_in_mid_call_leave_nothing_for_long),
        cmocka_unit_test(a_server_that_stands_still_holds_up_nobody_for_long),
    };

    child_play(argc, argv, parts);
    return cmocka_run_group_tests_name("postgres faults", tests, world_begin,
                                       world_end);
}
