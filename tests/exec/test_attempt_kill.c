/* test_attempt_kill.c - commands of a node end with all they have started: when their
 * time is up, when the lease ends, whoever of those that watch over them dies. */
/* SPDX-License-Identifier: MIT */
#include "attempt_world.h"
#include "base/clock.h"
#include "child.h"
#include "exec/executor_main.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* A tree that ignores TERM, of which a part has left the session; each of them says
 * its number when TERM is ignored. */
static const char stubborn[] =
    "trap '' TERM; setsid sh -c 'trap \"\" TERM; echo far $$; while :; do "
    "sleep 1000; done' & echo near $$; echo guard $PPID; wait; sleep 1000";

typedef struct tree {
    dibs__attempt *at;
    pid_t near, far, guard, backstop;
} tree;

static tree grow(world *w, const dibs__attempt_spec *spec)
{
    tree t = {.at = world_start(w, spec)};
    t.near = world_number(w, t.at, "near ");
    t.guard = world_number(w, t.at, "guard ");
    t.far = world_number(w, t.at, "far ");
    t.backstop = parent_of(t.guard);
    assert_true(is_alive(t.near) && is_alive(t.far));
    return t;
}

static tree grow_stubborn(world *w)
{
    dibs__attempt_spec spec = world_spec(stubborn);
    return grow(w, &spec);
}

/* When an end is told nothing is left. */
static dibs__attempt_end fell(world *w, tree *t)
{
    dibs__attempt_end end = world_await(w, t->at);
    assert_false(is_alive(t->near));
    assert_false(is_alive(t->far));
    dibs__attempt_free(t->at);
    return end;
}

static void test_timeout_kills_the_tree(void **state)
{
    world *w = *state;
    dibs__attempt_spec spec = world_spec(stubborn);
    spec.timeout_ms = pace_ms(300);
    spec.kill_after_ms = 100;
    dibsx_nsec began_at = dibsx_now();
    tree t = {.at = world_start(w, &spec)};
    t.near = world_number(w, t.at, "near ");
    t.far = world_number(w, t.at, "far ");
    assert_int_equal(fell(w, &t).reason, DIBS__ATTEMPT_TIMEOUT);
    dibsx_nsec took = dibsx_now() - began_at;
    assert_true(took >= 300 * DIBSX_MS);
    IN_TIME(took < (spec.timeout_ms + pace_ms(1100)) * DIBSX_MS);
}

/* A command that ends when asked to is timed out too. */
static void test_the_signal_comes_first(void **state)
{
    world *w = *state;
    dibs__attempt_spec spec =
        world_spec("trap 'echo asked; exit 0' USR1; echo near $$; while :; do "
                   "sleep 0.01; done");
    spec.signal = SIGUSR1;
    spec.kill_after_ms = 3600 * 1000;
    spec.timeout_ms = 1;
    dibs__attempt *at;
    /* With a trap, or too early for one: then the signal has killed it. */
    do {
        at = world_start(w, &spec);
        dibs__attempt_end end = world_await(w, at);
        assert_int_equal(end.reason, DIBS__ATTEMPT_TIMEOUT);
        if (end.exit_code == 0)
            break;
        assert_int_equal(end.exit_signal, SIGUSR1);
        dibs__attempt_free(at);
        spec.timeout_ms *= 2;
    } while (true);
    assert_non_null(strstr(world_text(w, at), "asked\n"));
    dibs__attempt_free(at);
}

/* What a command leaves running ends with it, and does not change how it ended. */
static void test_nothing_is_left_behind(void **state)
{
    world *w = *state;
    dibs__attempt *at = world_shell(
        w, "x=$(setsid sh -c 'trap \"\" TERM; echo $$; exec sleep 1000 "
           ">/dev/null' &); echo far $x; exit 4");
    dibs__attempt_end end = world_await(w, at);
    assert_int_equal(end.reason, DIBS__ATTEMPT_FAILED);
    assert_int_equal(end.exit_code, 4);
    pid_t far = world_number(w, at, "far ");
    assert_true(far > 0);
    assert_false(is_alive(far));
    dibs__attempt_free(at);
}

/* A pipe that somebody else has open, outside of the tree, is not waited for. */
static void test_pipe_held_open(void **state)
{
    world *w = *state;
    char path[64];
    dibs__attempt *at =
        world_shell(w, "echo more; echo near $$; exec sleep 1000");
    pid_t near = world_number(w, at, "near ");
    (void)snprintf(path, sizeof path, "/proc/%d/fd/1", (int)near);
    int held = open(path, O_WRONLY | O_CLOEXEC);
    assert_true(held >= 0);
    dibs__attempt_stop(at, DIBS__ATTEMPT_CANCELLED, false);
    assert_int_equal(world_await(w, at).reason, DIBS__ATTEMPT_CANCELLED);
    assert_non_null(strstr(world_text(w, at), "more\n"));
    dibs__attempt_free(at);
    close(held);
}

/* A node that stops renews its lease until the last tree is dead. */
static void test_stop_waits_for_the_tree(void **state)
{
    world *w = *state;
    dibs__attempt_spec spec = world_spec(stubborn);
    spec.kill_after_ms = 400;
    tree t = grow(w, &spec);
    dibsx_nsec began_at = dibsx_now();
    dibs__attempt_stop(t.at, DIBS__ATTEMPT_STOPPED, false);
    while (dibs__executor_running(w->ex) > 0) {
        bool alive = is_alive(t.near) && is_alive(t.far);
        dibs__executor_believe(w->ex, dibsx_now() + 3600 * DIBSX_SEC, 30000);
        struct pollfd fd = {dibs__executor_fd(w->ex), POLLIN, 0};
        (void)poll(&fd, 1, 10);
        dibs__executor_process(w->ex);
        assert_true(alive || dibsx_now() - began_at >= 400 * DIBSX_MS);
    }
    assert_int_equal(fell(w, &t).reason, DIBS__ATTEMPT_STOPPED);
    assert_true(dibsx_now() - began_at >= 400 * DIBSX_MS);
}

static void test_a_second_stop_is_at_once(void **state)
{
    world *w = *state;
    dibs__attempt_spec spec = world_spec(stubborn);
    spec.kill_after_ms = 3600 * 1000;
    tree t = grow(w, &spec);
    dibs__attempt_stop(t.at, DIBS__ATTEMPT_STOPPED, false);
    dibs__attempt_stop(t.at, DIBS__ATTEMPT_CANCELLED, true);
    assert_int_equal(fell(w, &t).reason, DIBS__ATTEMPT_STOPPED);
}

/* All trees of a node end before its lease does, but for one that may go on. Nothing
 * is started after it. */
static void test_the_lease_ends(void **state)
{
    world *w = *state;
    dibs__attempt_spec spec = world_spec(stubborn);
    tree first = grow_stubborn(w), second = grow_stubborn(w);
    spec.outlives_belief = true;
    tree third = grow(w, &spec);
    dibs__executor_believe(w->ex, dibsx_now() + 3600 * DIBSX_SEC, 30000);
    dibsx_nsec until = dibsx_after_ms(dibsx_now(), pace_ms(700));
    /* The rest of a lease of 10 s: killing begins 200 ms before its end. */
    dibs__executor_believe(w->ex, until, pace_ms(10000));
    dibs__attempt_end end = fell(w, &first);
    assert_int_equal(end.reason, DIBS__ATTEMPT_LOST);
    assert_string_equal(end.message,
                        "the node's lease ended before the command did");
    assert_int_equal(fell(w, &second).reason, DIBS__ATTEMPT_LOST);
    IN_TIME(dibsx_now() < until);
    assert_true(is_alive(third.near) && is_alive(third.far));

    while (dibsx_now() < until)
        (void)poll(NULL, 0, 1);
    dibs__attempt *late = world_shell(w, "echo started");
    assert_int_equal(world_await(w, late).reason, DIBS__ATTEMPT_LOST);
    assert_string_equal(world_text(w, late), "");
    dibs__attempt_free(late);
    assert_true(is_alive(third.near));
    dibs__attempt_stop(third.at, DIBS__ATTEMPT_CANCELLED, true);
    assert_int_equal(fell(w, &third).reason, DIBS__ATTEMPT_CANCELLED);
}

/* A renewal that comes late does not turn a tree that was killed into a failure. */
static void test_killed_is_lost(void **state)
{
    world *w = *state;
    tree t = grow_stubborn(w);
    dibs__executor_believe(w->ex, dibsx_now(), 1000);
    await_death(t.near);
    dibs__executor_believe(w->ex, dibsx_now() + 3600 * DIBSX_SEC, 30000);
    assert_int_equal(fell(w, &t).reason, DIBS__ATTEMPT_LOST);
}

static void test_guards_die(void **state)
{
    world *w = *state;
    tree other = grow_stubborn(w);
    for (int which = 1; which <= 3; which++) {
        tree t = grow_stubborn(w);
        /* Both are stopped first: neither sees the other die. */
        kill(t.guard, SIGSTOP);
        kill(t.backstop, SIGSTOP);
        if (which & 1)
            kill(t.guard, SIGKILL);
        if (which & 2)
            kill(t.backstop, SIGKILL);
        kill(t.guard, SIGCONT);
        kill(t.backstop, SIGCONT);
        dibs__attempt_end end = fell(w, &t);
        assert_int_equal(end.reason, DIBS__ATTEMPT_LOST);
        assert_string_equal(end.message, "the guard of the command died");
        assert_true(is_alive(other.near) && is_alive(other.far));
    }
    dibs__attempt_stop(other.at, DIBS__ATTEMPT_CANCELLED, true);
    assert_int_equal(fell(w, &other).reason, DIBS__ATTEMPT_CANCELLED);
}

static void test_the_executor_dies(void **state)
{
    world *w = *state;
    tree first = grow_stubborn(w), second = grow_stubborn(w);
    kill(executor_pid(), SIGKILL);
    assert_int_equal(fell(w, &first).reason, DIBS__ATTEMPT_LOST);
    assert_int_equal(fell(w, &second).reason, DIBS__ATTEMPT_LOST);
    assert_int_equal(dibs__executor_running(w->ex), 0);
    tree again = grow_stubborn(w);
    dibs__attempt_stop(again.at, DIBS__ATTEMPT_CANCELLED, true);
    assert_int_equal(fell(w, &again).reason, DIBS__ATTEMPT_CANCELLED);
}

/* When a tree was dead; DIBSX_NEVER: it is not. Fails no test, so that those who stand
 * still are let go first: they would outlive it, with its output open. */
static dibsx_nsec deaths(const tree *t)
{
    dibsx_nsec give_up_at = dibsx_after_ms(dibsx_now(), pace_ms(20000));
    while (is_alive(t->near) || is_alive(t->far)) {
        if (dibsx_now() >= give_up_at)
            return DIBSX_NEVER;
        (void)poll(NULL, 0, 1);
    }
    return dibsx_now();
}

/* Executor and guard stand still: the backstop is in time. */
static void test_stopped_at_the_end_of_the_lease(void **state)
{
    world *w = *state;
    tree t = grow_stubborn(w);
    pid_t executor = executor_pid();
    dibsx_nsec until = dibsx_after_ms(dibsx_now(), pace_ms(600));
    dibs__executor_believe(w->ex, until, pace_ms(600));
    /* The guard knows: it counts what it was asked. */
    (void)poll(NULL, 0, 50);
    kill(executor, SIGSTOP);
    kill(t.guard, SIGSTOP);
    dibsx_nsec dead_at = deaths(&t);
    kill(t.guard, SIGCONT);
    kill(executor, SIGCONT);
    IN_TIME(dead_at < until);
    assert_int_equal(fell(w, &t).reason, DIBS__ATTEMPT_LOST);
}

enum { LEASE_MS = 800 };

/* Starts a tree, says its numbers, and stands still. */
static int play_node(char **words)
{
    world w = {.ex = NULL};
    int out = (int)strtol(words[0], NULL, 10);
    CHECK(DIBS_OK, dibs__executor_open(4, NULL, &w.ex, err));
    dibs__attempt_spec spec = world_spec(stubborn);
    tree t = grow(&w, &spec);
    int64_t until = dibsx_after_ms(dibsx_now(), pace_ms(LEASE_MS));
    dibs__executor_believe(w.ex, until, pace_ms(LEASE_MS));
    int64_t numbers[] = {t.near, t.far, executor_pid(), until};
    if (write(out, numbers, sizeof numbers) != (ssize_t)sizeof numbers)
        return 1;
    for (;;)
        pause();
}

/* With the executor standing still the page alone decides. */
static void kill_node(bool stop_executor)
{
    int pair[2];
    char fd[16];
    int64_t numbers[4];
    assert_int_equal(pipe2(pair, 0), 0);
    pid_t node = child_start("node", child_fd(pair[1], fd), NULL);
    close(pair[1]);
    if (read(pair[0], numbers, sizeof numbers) != (ssize_t)sizeof numbers)
        fail_msg("the node has ended with %d", child_code(node));
    close(pair[0]);
    if (stop_executor)
        kill((pid_t)numbers[2], SIGSTOP);
    kill(node, SIGKILL);
    assert_int_equal(child_code(node), 1000 + SIGKILL);
    dibsx_nsec dead_at =
        deaths(&(tree){.near = (pid_t)numbers[0], .far = (pid_t)numbers[1]});
    kill((pid_t)numbers[2], SIGCONT);
    IN_TIME(dead_at < numbers[3]);
    await_death((pid_t)numbers[2]);
}

static void test_the_node_is_killed(void **state)
{
    (void)state;
    kill_node(false);
    kill_node(true);
}

int main(int argc, char **argv)
{
    static const child_part parts[] = {{"node", play_node}, {NULL, NULL}};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_timeout_kills_the_tree, world_make,
                                        world_drop),
        cmocka_unit_test_setup_teardown(test_the_signal_comes_first, world_make,
                                        world_drop),
        cmocka_unit_test_setup_teardown(test_nothing_is_left_behind, world_make,
                                        world_drop),
        cmocka_unit_test_setup_teardown(test_pipe_held_open, world_make,
                                        world_drop),
        cmocka_unit_test_setup_teardown(test_stop_waits_for_the_tree,
                                        world_make, world_drop),
        cmocka_unit_test_setup_teardown(test_a_second_stop_is_at_once,
                                        world_make, world_drop),
        cmocka_unit_test_setup_teardown(test_the_lease_ends, world_make,
                                        world_drop),
        cmocka_unit_test_setup_teardown(test_killed_is_lost, world_make,
                                        world_drop),
        cmocka_unit_test_setup_teardown(test_guards_die, world_make,
                                        world_drop),
        cmocka_unit_test_setup_teardown(test_the_executor_dies, world_make,
                                        world_drop),
        cmocka_unit_test_setup_teardown(test_stopped_at_the_end_of_the_lease,
                                        world_make, world_drop),
        cmocka_unit_test(test_the_node_is_killed),
    };
    dibs__executor_play(argc, argv);
    child_play(argc, argv, parts);
    return cmocka_run_group_tests_name("attempt_kill", tests, NULL, NULL);
}
