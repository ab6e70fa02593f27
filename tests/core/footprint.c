/* footprint.c - what a client takes of the process it is in: no descriptor is left when
 * it is closed, none is handed down to what the program runs, no signal that is for
 * the program ends up on a thread of the client, and no memory is kept of names. */
/* SPDX-License-Identifier: MIT */
#include "core.h"

#include <dirent.h>
#include <inttypes.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A client that does all that descriptors are for: it holds, has waited with a
 * doorbell, has a value, and can say by descriptor what becomes of all that. */
typedef struct life {
    const char *name;
    dibs_client *cl;
    dibs_client *rival;
    dibs_lock *held;
    dibs_lock *waits;
} life;

static void *wait_for_it(void *arg)
{
    dibs_status rc = dibs_lock_acquire(arg, NULL);

    if (pace_explains(rc))
        MISSED("an acquire is %s", dibs_status_name(rc));
    return rc == DIBS_OK ? arg : NULL;
}

static bool has_waiter(const dibs_lease_info *info, void *arg)
{
    *(size_t *)arg = info->waiter_count;
    return true;
}

/* Where there is no queue, the client alone knows. */
static bool is_awaited(void *arg)
{
    const life *lf = arg;
    dibs_stats stats = {.size = sizeof(stats)};
    size_t count = 0;

    if (strncmp(core_url, "redlock", 7) == 0) {
        dibs_stats_get(lf->cl, &stats);
        return stats.waiting > 0;
    }
    CHECK(DIBS_OK,
          dibs_lease_show(lf->rival, lf->name, has_waiter, &count, err));
    return count > 0;
}

static void live(life *lf)
{
    pthread_t thread;
    void *got = NULL;

    *lf = (life){.name = core_name(), .cl = core_open(), .rival = core_open()};
    lf->held = core_lock(lf->rival, lf->name, NULL);
    lf->waits = core_lock(lf->cl, lf->name, DIBS_LOCK_OPTS(.wait_ms = 60000));
    CHECK(DIBS_OK, dibs_lock_try(lf->held, err));
    assert_true(dibs_lock_lost_fd(lf->held) >= 0);
    assert_int_equal(pthread_create(&thread, NULL, wait_for_it, lf->waits), 0);
    core_until(is_awaited, lf);
    CHECK(DIBS_OK, dibs_lock_release(lf->held, err));
    assert_int_equal(pthread_join(thread, &got), 0);
    assert_non_null(got);
    assert_true(dibs_lock_lost_fd(lf->waits) >= 0);
    assert_true(dibs_async_fd(lf->cl) >= 0);
    CHECK(DIBS_OK, dibs_lock_renew(lf->waits, err));
    CHECK(DIBS_OK, dibs_ping(lf->rival, NULL, err));
}

static void die(life *lf)
{
    dibs_lock_free(lf->waits);
    dibs_lock_free(lf->held);
    dibs_close(lf->rival);
    dibs_close(lf->cl);
}

/* The first life may load a driver, which keeps what it likes. */
static void descriptors_of_a_client_are_closed(void **state)
{
    life lf;
    int before;

    (void)state;
    live(&lf);
    die(&lf);
    before = open_fds();
    for (int i = 0; i < 3; i++) {
        live(&lf);
        die(&lf);
    }
    assert_int_equal(open_fds(), before);
}

/* Stores of several servers may connect to one more of them meanwhile. */
static void descriptors_of_a_client_close_with_handles(void **state)
{
    enum { HANDLES = 40 };
    dibs_client *cl = core_open();
    dibs_lock *lock = core_lock(cl, core_name(), NULL);
    int before;

    (void)state;
    CHECK(DIBS_OK, dibs_lock_try(lock, err));
    CHECK(DIBS_OK, dibs_lock_release(lock, err));
    dibs_lock_free(lock);
    before = open_fds();
    for (int i = 0; i < HANDLES; i++) {
        lock = core_lock(cl, core_name(), NULL);
        if (i % 2 == 0)
            CHECK(DIBS_OK, dibs_lock_try(lock, err));
        assert_true(dibs_lock_lost_fd(lock) >= 0);
        assert_int_equal(dibs_lock_lost_fd(lock), dibs_lock_lost_fd(lock));
        dibs_lock_free(lock);
    }
    assert_in_range(open_fds(), before, before + HANDLES / 4);
    dibs_close(cl);
}

/* A process of its own: how many descriptors it was given. */
int core_count_descriptors(char **words)
{
    (void)words;
    return open_fds();
}

static int handed_down(void)
{
    pid_t child = child_start("descriptors", NULL);

    assert_true(child > 0);
    return child_code(child);
}

static void descriptors_of_a_client_are_not_handed_down(void **state)
{
    int before;
    life lf;

    (void)state;
    live(&lf);
    die(&lf);
    before = handed_down();
    assert_in_range(before, 3, 100);
    live(&lf);
    assert_int_equal(handed_down(), before);
    die(&lf);
}

/* The signals that a thread of this process would take, as bits from 1 on. */
static uint64_t takes(const char *thread)
{
    char path[64], line[256];
    uint64_t blocked = 0;
    bool found = false;
    FILE *file;

    snprintf(path, sizeof(path), "/proc/self/task/%.20s/status", thread);
    file = fopen(path, "re");
    assert_non_null(file);
    while (fgets(line, sizeof(line), file))
        found |= sscanf(line, "SigBlk: %" SCNx64, &blocked) == 1;
    fclose(file);
    assert_true(found);
    return ~blocked;
}

/* A signal is for whichever thread takes it: the program would have no say when one
 * of the client's does. */
static void threads_of_a_client_take_no_signals(void **state)
{
    static const int numbers[] = {SIGHUP,  SIGINT,  SIGTERM, SIGUSR1,
                                  SIGUSR2, SIGALRM, SIGCHLD, SIGWINCH};
    DIR *threads;
    const struct dirent *at;
    int seen = 0;
    life lf;

    (void)state;
    live(&lf);
    threads = opendir("/proc/self/task");
    assert_non_null(threads);
    while ((at = readdir(threads)) != NULL) {
        if (at->d_name[0] == '.' || strtol(at->d_name, NULL, 10) == getpid())
            continue;
        seen++;
        for (size_t i = 0; i < COUNT_OF(numbers); i++)
            assert_int_equal(takes(at->d_name) >> (numbers[i] - 1) & 1, 0);
    }
    closedir(threads);
    assert_true(seen > 0);
    die(&lf);
}

#ifndef DIBS_SANITIZED
/* Takes so many names that were not used before, one after the other. */
static void use_names(dibs_client *cl, int count)
{
    for (int i = 0; i < count; i++) {
        dibs_lock *lock = core_lock(cl, core_name(), NULL);

        CHECK(DIBS_OK, dibs_lock_try(lock, err));
        CHECK(DIBS_OK, dibs_lock_release(lock, err));
        dibs_lock_free(lock);
    }
}

/* What this thread has allocated is no more than that. */
static bool has_settled(void *arg)
{
    return mallinfo2().uordblks <= *(const size_t *)arg;
}

/* The client has statistics of the names that it used last, and for a while what
 * servers that are slow have not done yet. */
static void memory_of_a_client_does_not_grow_with_names(void **state)
{
    enum { KEPT = 1100, MORE = 1000, EACH = 16 };
    dibs_client *cl = core_open();
    size_t bound;

    (void)state;
    use_names(cl, KEPT);
    bound = mallinfo2().uordblks + MORE * EACH;
    use_names(cl, MORE);
    core_until(has_settled, &bound);
    dibs_close(cl);
}
#endif

int core_footprint_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(descriptors_of_a_client_are_closed),
        cmocka_unit_test(descriptors_of_a_client_close_with_handles),
        cmocka_unit_test(descriptors_of_a_client_are_not_handed_down),
        cmocka_unit_test(threads_of_a_client_take_no_signals),
#ifndef DIBS_SANITIZED
        cmocka_unit_test(memory_of_a_client_does_not_grow_with_names),
#endif
    };

    return cmocka_run_group_tests_name("footprint", tests, NULL, NULL);
}
