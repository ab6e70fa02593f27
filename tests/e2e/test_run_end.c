/* test_run_end.c - `dibs run` when those who watch over the command cannot: it ends
 * all the same, after the machine has slept and with all three of them.
 *
 * For suspend, the clock of what is started is that of clock_shim. */
/* SPDX-License-Identifier: MIT */
#include "check.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* Longer than the lease lasts, and no test waits so long for what does not come. */
enum { SLEEP_S = 700, LOST = 122 };
#define BOUND_MS ((int)pace_ms(20000))

typedef struct scene {
    pid_t dibs;
    pid_t guard;
    pid_t backstop; /* the parent of the guard */
    int command;    /* a descriptor of the process */
    int clock;
    _Atomic(int64_t) *ahead_us; /* the wall clock, and the boot clock */
} scene;

static void become_dibs(const scene *sc, int out)
{
    char clock[64];

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    snprintf(clock, sizeof(clock), "/proc/%ld/fd/%d", (long)getppid(),
             sc->clock);
    setenv("DIBS_CONFIG", "/dev/null", 1);
#ifdef CLOCK_SHIM_LIBRARY
    setenv("CLOCK_SHIM", clock, 1);
    setenv("LD_PRELOAD", CLOCK_SHIM_LIBRARY, 1);
#endif
    dup2(out, STDOUT_FILENO);
    execl(DIBS_PROGRAM, "dibs", "run", "--url=memory:", "--ttl=10m", "k", "--",
          "sh", "-c", "echo $$ $PPID; exec sleep 1000", (char *)NULL);
    _exit(127);
}

static pid_t parent_of(pid_t pid)
{
    char path[64], line[128];
    long parent = 0;
    FILE *status;

    snprintf(path, sizeof(path), "/proc/%ld/status", (long)pid);
    status = fopen(path, "r");
    assert_non_null(status);
    while (fgets(line, sizeof(line), status))
        (void)sscanf(line, "PPid: %ld", &parent);
    fclose(status);
    assert_true(parent > 1);
    return (pid_t)parent;
}

static int setup(void **state)
{
    static scene sc;
    long command, guard;
    int out[2];
    FILE *said;

    sc.clock = memfd_create("clock", MFD_CLOEXEC);
    assert_int_equal(ftruncate(sc.clock, 2 * sizeof(*sc.ahead_us)), 0);
    sc.ahead_us = mmap(NULL, 2 * sizeof(*sc.ahead_us), PROT_READ | PROT_WRITE,
                       MAP_SHARED, sc.clock, 0);
    assert_true(sc.ahead_us != MAP_FAILED);
    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    sc.dibs = fork();
    if (sc.dibs == 0)
        become_dibs(&sc, out[1]);
    close(out[1]);
    said = fdopen(out[0], "r");
    assert_non_null(said);
    assert_int_equal(fscanf(said, "%ld %ld", &command, &guard), 2);
    fclose(said);
    sc.guard = (pid_t)guard;
    sc.backstop = parent_of(sc.guard);
    sc.command = (int)syscall(SYS_pidfd_open, (pid_t)command, 0);
    assert_true(sc.command >= 0);
    *state = &sc;
    return 0;
}

static bool has_ended(const scene *sc, int bound_ms)
{
    struct pollfd at = {.fd = sc->command, .events = POLLIN};

    return poll(&at, 1, bound_ms) == 1;
}

static int teardown(void **state)
{
    scene *sc = *state;

    (void)syscall(SYS_pidfd_send_signal, sc->command, SIGKILL, NULL, 0);
    if (sc->dibs > 0) {
        kill(sc->dibs, SIGKILL);
        waitpid(sc->dibs, NULL, 0);
    }
    munmap((void *)sc->ahead_us, 2 * sizeof(*sc->ahead_us));
    close(sc->command);
    close(sc->clock);
    return 0;
}

/* Its exit code. */
static int end_of_dibs(scene *sc)
{
    int status = 0;

    assert_int_equal(waitpid(sc->dibs, &status, 0), sc->dibs);
    sc->dibs = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

static void stop(pid_t pid)
{
    kill(pid, SIGSTOP);
}

static void await_stopped(pid_t pid)
{
    siginfo_t info;

    assert_int_equal(waitid(P_PID, (id_t)pid, &info, WSTOPPED), 0);
}

#ifdef CLOCK_SHIM_LIBRARY
static void suspend(scene *sc)
{
    atomic_fetch_add(&sc->ahead_us[1], SLEEP_S * INT64_C(1000000));
}

static void after_a_suspend_the_command_is_ended(void **state)
{
    scene *sc = *state;

    assert_false(has_ended(sc, 0));
    suspend(sc);
    assert_true(has_ended(sc, BOUND_MS));
    assert_int_equal(end_of_dibs(sc), LOST);
}

/* The guard alone is there to see it. */
static void after_a_suspend_the_guard_ends_it(void **state)
{
    scene *sc = *state;

    stop(sc->dibs);
    await_stopped(sc->dibs);
    assert_false(has_ended(sc, 0));
    suspend(sc);
    assert_true(has_ended(sc, BOUND_MS));
    kill(sc->dibs, SIGCONT);
    assert_int_equal(end_of_dibs(sc), LOST);
}

/* Unlike the guard it never wakes up to measure, so its timer alone can tell it. */
static void after_a_suspend_the_backstop_ends_it(void **state)
{
    scene *sc = *state;

    stop(sc->guard);
    stop(sc->dibs);
    await_stopped(sc->dibs);
    assert_false(has_ended(sc, 0));
    suspend(sc);
    assert_true(has_ended(sc, BOUND_MS));
    kill(sc->dibs, SIGCONT);
    assert_int_equal(end_of_dibs(sc), LOST);
}
#endif

/* None has a moment to see to the command when another ends. */
static void the_command_ends_with_all_who_watch(void **state)
{
    scene *sc = *state;

    stop(sc->backstop);
    stop(sc->guard);
    stop(sc->dibs);
    await_stopped(sc->dibs);
    kill(sc->backstop, SIGKILL);
    kill(sc->guard, SIGKILL);
    kill(sc->dibs, SIGKILL);
    assert_true(has_ended(sc, BOUND_MS));
    assert_int_equal(end_of_dibs(sc), 1000 + SIGKILL);
}

#define SCENE_TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
#ifdef CLOCK_SHIM_LIBRARY
        SCENE_TEST(after_a_suspend_the_command_is_ended),
        SCENE_TEST(after_a_suspend_the_guard_ends_it),
        SCENE_TEST(after_a_suspend_the_backstop_ends_it),
#endif
        SCENE_TEST(the_command_ends_with_all_who_watch),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
