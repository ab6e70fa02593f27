/* test_process_tree.c - a tree is killed to its last process, whatever it forks meanwhile.
 */
/* SPDX-License-Identifier: MIT */
#include "exec/process_tree.h"
#include "pace.h"
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { TRIALS = 50, GROWN = 5, ENOUGH = 500 };

/* To copy its tables makes a fork last longer than some walks through the tree. */
enum { LOAD = 64 * 1024 * 1024, PAGE = 4096 };

/* How many successors there have been. */
static _Atomic int *steps;

static int make_steps(void **state)
{
    (void)state;
    steps = mmap(NULL, sizeof *steps, PROT_READ | PROT_WRITE,
                 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return steps == MAP_FAILED || prctl(PR_SET_CHILD_SUBREAPER, 1L, 0L, 0L, 0L);
}

/* Each starts the next, in a session of its own, and is gone half a millisecond
 * later. Whoever is not caught goes on until there were enough. */
_Noreturn static void succeed(void)
{
    struct timespec pause = {.tv_nsec = 500000};
    volatile char *load = mmap(NULL, LOAD, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (size_t i = 0; i < LOAD; i += PAGE)
        load[i] = 1;
    while (atomic_fetch_add(steps, 1) < ENOUGH) {
        nanosleep(&pause, NULL);
        if (fork() != 0)
            _exit(0);
        setsid();
    }
    _exit(0);
}

static void reap_all(void)
{
    while (waitpid(-1, NULL, 0) > 0 || errno == EINTR)
        ;
}

static void test_a_succession_is_caught(void **state)
{
    dibs__tree_means means = {.cgroup = {.parent_fd = -1, .fd = -1}};
    int went_on = 0;
    (void)state;
    means.proc_fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(means.proc_fd >= 0);
    for (int i = 0; i < TRIALS; i++) {
        atomic_store(steps, 0);
        if (fork() == 0)
            succeed();
        while (atomic_load(steps) < GROWN)
            ;
        (void)dibs__tree_kill(&means, getpid());
        reap_all();
        went_on += atomic_load(steps) >= ENOUGH;
    }
    close(means.proc_fd);
    /* It also goes on while the one that kills stands still. */
    IN_TIME(went_on == 0);
}

static void test_nothing_is_found_without_means(void **state)
{
    dibs__tree_means means = {.proc_fd = -1,
                              .cgroup = {.parent_fd = -1, .fd = -1}};
    (void)state;
    assert_false(dibs__tree_means_whole(&means));
    pid_t child = fork();
    if (child == 0) {
        pause();
        _exit(0);
    }
    dibs__tree_count count = dibs__tree_kill(&means, getpid());
    assert_int_equal(count.sent, 0);
    assert_true(count.blind);
    assert_int_equal(waitpid(child, NULL, WNOHANG), 0);
    kill(child, SIGKILL);
    reap_all();
}

/* With no descriptor left /proc cannot be opened, which is not to say that nothing
 * is there. */
static void test_not_to_see_is_not_to_find_nothing(void **state)
{
    dibs__tree_means means = {.cgroup = {.parent_fd = -1, .fd = -1}};
    struct rlimit usual, none;
    (void)state;
    means.proc_fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(means.proc_fd >= 0);
    dibs__tree_count count = dibs__tree_kill(&means, getpid());
    assert_false(count.blind);
    assert_int_equal(count.sent, 0);

    pid_t child = fork();
    if (child == 0) {
        pause();
        _exit(0);
    }
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &usual), 0);
    none = (struct rlimit){0, usual.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    count = dibs__tree_kill(&means, getpid());
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &usual), 0);
    assert_true(count.blind);
    assert_int_equal(count.sent, 0);

    count = dibs__tree_kill(&means, getpid());
    assert_false(count.blind);
    assert_int_equal(count.sent, 1);
    reap_all();
    close(means.proc_fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_succession_is_caught),
        cmocka_unit_test(test_nothing_is_found_without_means),
        cmocka_unit_test(test_not_to_see_is_not_to_find_nothing),
    };
    return cmocka_run_group_tests(tests, make_steps, NULL);
}
