/* test_attempt.c - commands of a program with threads: how they start, what they are
 * given, what is known of their end. */
/* SPDX-License-Identifier: MIT */
#include "attempt_world.h"
#include "base/clock.h"
#include "child.h"
#include "exec/executor_main.h"
#include "exec/executor_wire.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static void test_an_end_is_told(void **state)
{
    world *w = *state;
    dibs__attempt *at = world_shell(w, "echo out; echo err >&2; exit 3");
    dibs__attempt_end end = world_await(w, at);
    assert_int_equal(end.reason, DIBS__ATTEMPT_FAILED);
    assert_int_equal(end.exit_code, 3);
    assert_non_null(strstr(world_text(w, at), "out\n"));
    assert_non_null(strstr(world_text(w, at), "err\n"));
    dibs__attempt_free(at);

    at = world_shell(w, "exit 0");
    assert_int_equal(world_await(w, at).reason, DIBS__ATTEMPT_OK);
    dibs__attempt_free(at);

    at = world_shell(w, "kill -USR1 $$");
    end = world_await(w, at);
    assert_int_equal(end.reason, DIBS__ATTEMPT_FAILED);
    assert_int_equal(end.exit_code, -1);
    assert_int_equal(end.exit_signal, SIGUSR1);
    dibs__attempt_free(at);
    assert_int_equal(dibs__executor_running(w->ex), 0);
}

static void write_file(const char *path, const char *text, int mode)
{
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(chmod(path, (mode_t)mode), 0);
}

static void test_all_that_was_asked_for_is_given(void **state)
{
    world *w = *state;
    char dir[] = "/tmp/dibs-attempt-XXXXXX", path[128], command[128];
    char own_path[160];
    assert_non_null(mkdtemp(dir));
    (void)snprintf(path, sizeof path, "%s/env", dir);
    (void)snprintf(command, sizeof command, "%s/show", dir);
    (void)snprintf(own_path, sizeof own_path, "PATH=%s:/usr/bin:/bin", dir);
    write_file(path,
               "# none\n\nA=from file\nexport B=\"two words\"\nC='1'\nC=2\n",
               0600);
    write_file(command, "#!/bin/sh\npwd; cat; echo \"args=$*\"; env | sort\n",
               0755);
    char *const env[] = {own_path, (char *)(size_t) "A=given",
                         (char *)(size_t) "D=4", NULL};
    char *const argv[] = {(char *)(size_t) "show", (char *)(size_t) "a b",
                          (char *)(size_t) "$D", NULL};
    dibs__attempt_spec spec = world_spec(NULL);
    spec.argv = argv;
    spec.env = env;
    spec.env_file = path;
    spec.dir = dir;
    spec.input = "line of input\n";
    spec.input_len = strlen(spec.input);
    dibs__attempt *at = world_start(w, &spec);
    dibs__attempt_end end = world_await(w, at);
    assert_string_equal(end.message, "");
    assert_int_equal(end.reason, DIBS__ATTEMPT_OK);
    char wanted[512];
    /* The shell adds PWD, and dash nothing else. */
    (void)snprintf(wanted, sizeof wanted,
                   "%s\nline of input\nargs=a b $D\nA=from file\nB=two "
                   "words\nC=2\nD=4\n%s\nPWD=%s\n",
                   dir, own_path, dir);
    assert_string_equal(world_text(w, at), wanted);
    dibs__attempt_free(at);
    (void)unlink(path);
    (void)unlink(command);
    (void)rmdir(dir);
}

/* What the node has open, blocks or ignores is none of the command's. */
static void test_nothing_is_inherited(void **state)
{
    world *w = *state;
    int plant = open("/dev/null", O_RDONLY); /* without CLOEXEC */
    struct sigaction ignore = {.sa_handler = SIG_IGN}, old;
    sigset_t mask, old_mask;
    sigemptyset(&mask);
    sigaddset(&mask, SIGUSR2);
    sigaction(SIGPIPE, &ignore, &old);
    pthread_sigmask(SIG_BLOCK, &mask, &old_mask);
    dibs__attempt *at = world_shell(
        w, "ls /proc/self/fd; grep SigBlk /proc/self/status; grep SigIgn "
           "/proc/self/status; cat; ls -l /proc/$$/fd/0");
    assert_int_equal(world_await(w, at).reason, DIBS__ATTEMPT_OK);
    const char *text = world_text(w, at);
    /* The last one is of ls itself. */
    const char *ignored = "0\n1\n2\n3\nSigBlk:\t0000000000000000\nSigIgn:\t";
    assert_int_equal(strncmp(text, ignored, strlen(ignored)), 0);
    /* Above are signals of the C library, which nobody sets. */
    assert_int_equal(strtoull(text + strlen(ignored), NULL, 16) & INT32_MAX, 0);
    assert_non_null(strstr(world_text(w, at), "/dev/null"));
    dibs__attempt_free(at);
    pthread_sigmask(SIG_SETMASK, &old_mask, NULL);
    sigaction(SIGPIPE, &old, NULL);
    close(plant);
}

static void expect_not_started(world *w, const dibs__attempt_spec *spec,
                               const char *message)
{
    dibs__attempt *at = world_start(w, spec);
    dibs__attempt_end end = world_await(w, at);
    assert_int_equal(end.reason, DIBS__ATTEMPT_NOT_STARTED);
    assert_string_equal(end.message, message);
    dibs__attempt_free(at);
}

static void test_a_start_that_fails_says_why(void **state)
{
    world *w = *state;
    char *const argv[] = {(char *)(size_t) "/no/such/command", NULL};
    dibs__attempt_spec spec = world_spec(NULL);
    spec.argv = argv;
    expect_not_started(w, &spec,
                       "cannot run /no/such/command: No such file or "
                       "directory");
    spec = world_spec("true");
    spec.dir = "/no/such/folder";
    expect_not_started(w, &spec,
                       "cannot change to the folder /no/such/folder: No such "
                       "file or directory");
    spec = world_spec("true");
    spec.user = "no-such-user";
    expect_not_started(w, &spec,
                       "cannot run as user no-such-user: there is no such "
                       "user");

    dibs__attempt *at = NULL;
    spec = world_spec("true");
    spec.env_file = "/no/such/env";
    CHECK(DIBS_INVALID, dibs__attempt_start(w->ex, &spec, w, &at, err));
    spec = world_spec(NULL);
    CHECK(DIBS_INVALID, dibs__attempt_start(w->ex, &spec, w, &at, err));
    assert_null(at);
}

static void test_a_user_is_become(void **state)
{
    world *w = *state;
    dibs__attempt_spec spec = world_spec("id -u; id -G; id -ru");
    if (geteuid() != 0) {
        spec.user = "root";
        expect_not_started(w, &spec,
                           "cannot run as user root: the node does not run as "
                           "root");
        return;
    }
    gid_t own[64];
    int count = getgroups(64, own);
    const gid_t planted[] = {0, 4242};
    assert_true(count >= 0);
    assert_int_equal(setgroups(2, planted), 0);
    spec.user = "nobody";
    dibs__attempt *at = world_start(w, &spec);
    assert_int_equal(setgroups((size_t)count, own), 0);
    assert_int_equal(world_await(w, at).reason, DIBS__ATTEMPT_OK);
    assert_string_equal(world_text(w, at), "65534\n65534\n65534\n");
    dibs__attempt_free(at);
    spec.user = "65534";
    at = world_start(w, &spec);
    assert_int_equal(world_await(w, at).reason, DIBS__ATTEMPT_OK);
    dibs__attempt_free(at);
}

static void test_slots_are_bounded(void **state)
{
    world *w = *state;
    dibs__attempt *ats[WORLD_SLOTS], *more = NULL;
    dibs__attempt_spec spec = world_spec("read line; echo \"$line\"");
    spec.input = "x\n";
    spec.input_len = 2;
    for (size_t i = 0; i < WORLD_SLOTS; i++)
        ats[i] = world_start(w, &spec);
    CHECK(DIBS_BUSY, dibs__attempt_start(w->ex, &spec, w, &more, err));
    for (size_t i = 0; i < WORLD_SLOTS; i++) {
        assert_int_equal(world_await(w, ats[i]).reason, DIBS__ATTEMPT_OK);
        assert_string_equal(world_text(w, ats[i]), "x\n");
    }
    for (size_t i = 0; i < WORLD_SLOTS; i++)
        dibs__attempt_free(ats[i]);
    more = world_start(w, &spec);
    assert_int_equal(world_await(w, more).reason, DIBS__ATTEMPT_OK);
    dibs__attempt_free(more);
}

/* Of all that a command writes a bounded part is kept, and it never waits for long. */
static void test_output_is_bounded(void **state)
{
    world *w = *state;
    const char *mb = getenv("DIBS_OUTPUT_MB");
    long size_mb = mb ? strtol(mb, NULL, 10) : 8;
    char shell[256];
    struct rusage before, after;
    (void)snprintf(shell, sizeof shell,
                   "echo begin; head -c %ldM /dev/zero; head -c %ldM "
                   "/dev/zero >&2; sleep 0.01; echo end",
                   size_mb, size_mb);
    getrusage(RUSAGE_SELF, &before);
    dibs__attempt *at = world_shell(w, shell);
    assert_int_equal(world_await(w, at).reason, DIBS__ATTEMPT_OK);
    getrusage(RUSAGE_SELF, &after);
    dibsx_buf head, tail;
    dibsx_buf_init(&head, WORLD_TEXT);
    dibsx_buf_init(&tail, WORLD_TEXT);
    uint64_t left_out = dibs__attempt_output(at, &head, &tail);
    assert_int_equal(head.len, 16 * 1024);
    assert_int_equal(tail.len, 48 * 1024);
    assert_memory_equal(head.data, "begin\n", 6);
    assert_memory_equal(tail.data + tail.len - 4, "end\n", 4);
    assert_int_equal(left_out, (uint64_t)size_mb * 2 * 1024 * 1024 + 10 -
                                   head.len - tail.len);
    assert_true(after.ru_maxrss - before.ru_maxrss < 4 * 1024);
    dibsx_buf_fini(&head);
    dibsx_buf_fini(&tail);
    dibs__attempt_free(at);
}

/* A snapshot while the command runs. */
static void test_output_is_seen_at_once(void **state)
{
    world *w = *state;
    dibs__attempt *at = world_shell(w, "echo first 1; sleep 1000");
    assert_int_equal(world_number(w, at, "first "), 1);
    assert_int_equal(dibs__attempt_output(at, NULL, NULL), 0);
    dibs__attempt_stop(at, DIBS__ATTEMPT_CANCELLED, false);
    assert_int_equal(world_await(w, at).reason, DIBS__ATTEMPT_CANCELLED);
    dibs__attempt_free(at);
}

/* Orphans are reaped by the guard, children of this process by this process. */
static void test_zombies_are_reaped_once(void **state)
{
    world *w = *state;
    const char *orphans = getenv("DIBS_ORPHANS");
    char shell[256];
    (void)snprintf(shell, sizeof shell,
                   "i=0; while [ $i -lt %s ]; do (: &); i=$((i+1)); done; "
                   "echo guard $PPID; sleep 1000",
                   orphans ? orphans : "100");
    pid_t child = child_start("seven", NULL);
    dibs__attempt *at = world_shell(w, shell);
    pid_t guard = world_number(w, at, "guard ");
    assert_true(is_alive(guard));
    assert_int_equal(child_code(child), 7);

    /* Those of the guard: the command alone is left. */
    dibs__attempt_spec look = world_spec(NULL);
    char count[256];
    (void)
        snprintf(count, sizeof count,
                 "until [ \"$(cat /proc/%d/task/%d/children | wc -w)\" = 1 ]; "
                 "do :; done",
                 (int)guard, (int)guard);
    look.shell = count;
    dibs__attempt *other = world_start(w, &look);
    assert_int_equal(world_await(w, other).reason, DIBS__ATTEMPT_OK);
    dibs__attempt_free(other);
    dibs__attempt_stop(at, DIBS__ATTEMPT_CANCELLED, true);
    assert_int_equal(world_await(w, at).reason, DIBS__ATTEMPT_CANCELLED);
    dibs__attempt_free(at);
}

enum { THREADS = 8, EACH = 6 };

typedef struct worker {
    world *w;
    int number;
    int bad;
} worker;

static void *start_some(void *arg)
{
    worker *own = arg;
    for (int i = 0; i < EACH; i++) {
        dibs__attempt *at = NULL;
        dibs__attempt_spec spec =
            world_spec(i % 3 == 2 ? "sleep 1000" : "echo hello; exit 5");
        dibs_status rc = dibs__attempt_start(own->w->ex, &spec, own, &at, NULL);
        if (pace_explains(rc))
            MISSED("a start is %s", dibs_status_name(rc));
        if (rc != DIBS_OK)
            own->bad++;
        else if (i % 3 == 2)
            dibs__attempt_stop(at, DIBS__ATTEMPT_CANCELLED, i % 2 == 0);
        dibs__executor_process(own->w->ex);
        dibs__executor_believe(own->w->ex, dibsx_now() + 3600 * DIBSX_SEC,
                               30000);
    }
    return NULL;
}

static void test_eight_threads(void **state)
{
    world *w = *state;
    pthread_t threads[THREADS];
    worker workers[THREADS];
    int failed = 0, cancelled = 0, bad = 0;
    for (int i = 0; i < THREADS; i++) {
        workers[i] = (worker){.w = w, .number = i};
        assert_int_equal(pthread_create(&threads[i], NULL, start_some,
                                        &workers[i]),
                         0);
    }
    while (failed + cancelled < THREADS * EACH) {
        struct pollfd fd = {dibs__executor_fd(w->ex), POLLIN, 0};
        (void)poll(&fd, 1, 1000);
        dibs__executor_process(w->ex);
        dibs__attempt *at;
        while ((at = dibs__executor_ended(w->ex))) {
            dibs__attempt_end end = dibs__attempt_result(at);
            failed += end.reason == DIBS__ATTEMPT_FAILED;
            cancelled += end.reason == DIBS__ATTEMPT_CANCELLED;
            bad += end.reason == DIBS__ATTEMPT_FAILED &&
                   strcmp(world_text(w, at), "hello\n") != 0;
            dibs__attempt_free(at);
        }
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        bad += workers[i].bad;
    }
    assert_int_equal(bad, 0);
    assert_int_equal(cancelled, THREADS * EACH / 3);
    assert_int_equal(dibs__executor_running(w->ex), 0);
}

static int play_seven(char **words)
{
    (void)words;
    return 7;
}

int main(int argc, char **argv)
{
    static const child_part parts[] = {{"seven", play_seven}, {NULL, NULL}};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_an_end_is_told, world_make,
                                        world_drop),
        cmocka_unit_test_setup_teardown(test_all_that_was_asked_for_is_given,
                                        world_make, world_drop),
        cmocka_unit_test_setup_teardown(test_nothing_is_inherited, world_make,
                                        world_drop),
        cmocka_unit_test_setup_teardown(test_a_start_that_fails_says_why,
                                        world_make, world_drop),
        cmocka_unit_test_setup_teardown(test_a_user_is_become, world_make,
                                        world_drop),
        cmocka_unit_test_setup_teardown(test_slots_are_bounded, world_make,
                                        world_drop),
        cmocka_unit_test_setup_teardown(test_output_is_bounded, world_make,
                                        world_drop),
        cmocka_unit_test_setup_teardown(test_output_is_seen_at_once, world_make,
                                        world_drop),
        cmocka_unit_test_setup_teardown(test_zombies_are_reaped_once,
                                        world_make, world_drop),
        cmocka_unit_test_setup_teardown(test_eight_threads, world_make,
                                        world_drop),
    };
    dibs__executor_play(argc, argv);
    child_play(argc, argv, parts);
    return cmocka_run_group_tests_name("attempt", tests, NULL, NULL);
}
