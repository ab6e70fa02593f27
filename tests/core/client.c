/* client.c - opening, options, statistics, log, audit, and the edges of the
 * public interface that every call shares. */
/* SPDX-License-Identifier: MIT */
#include "core.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void bad_urls_are_refused(void **state)
{
    dibs_client *cl = (dibs_client *)1;
    dibs_error why;

    (void)state;
    assert_status(dibs_open("nonsense:x", NULL, &cl, &why), DIBS_INVALID);
    assert_null(cl);
    assert_non_null(strstr(why.message, "memory"));
    CHECK(DIBS_INVALID, dibs_open("sqlite://host/x", NULL, &cl, err));
    assert_status(dibs_open("::", NULL, &cl, &why), DIBS_INVALID);
}

/* As the command would: a program and a command exclude each other. */
static void no_url_means_what_is_configured(void **state)
{
    dibs_client *cl = NULL, *other = core_open();
    const char *name = core_name();
    char full[128] = "configured:";
    dibs_lock *a, *b;
    dibs_error why;

    (void)state;
    strncat(full, name, sizeof(full) - strlen(full) - 1);
    assert_int_equal(setenv("DIBS_CONFIG", "/dev/null", 1), 0);
    assert_int_equal(setenv("DIBS_PREFIX", "configured:", 1), 0);
    assert_int_equal(setenv("DIBS_URL", "nonsense:x", 1), 0);
    assert_status(dibs_open(NULL, NULL, &cl, &why), DIBS_INVALID);
    assert_non_null(strstr(why.message, "nonsense"));
    assert_int_equal(setenv("DIBS_URL", core_url, 1), 0);
    CHECK(DIBS_OK, dibs_open("", NULL, &cl, err));
    a = core_lock(cl, name, NULL);
    b = core_lock(other, full, NULL);
    CHECK(DIBS_OK, dibs_lock_try(a, err));
    CHECK(DIBS_BUSY, dibs_lock_try(b, err));
    dibs_lock_free(a);
    dibs_lock_free(b);
    dibs_close(cl);
    dibs_close(other);
    unsetenv("DIBS_URL");
    unsetenv("DIBS_PREFIX");
    unsetenv("DIBS_CONFIG");
}

static void bad_options_are_refused(void **state)
{
    dibs_client *cl = NULL;
    dibs_client_opts no_size = {0};
    dibs_error why = {0};

    (void)state;
    CHECK(DIBS_INVALID, dibs_open(core_url, &no_size, &cl, err));
    assert_status(dibs_open(core_url,
                            DIBS_CLIENT_OPTS(.local_url = "nonsense:x",
                                             .on_unavailable = DIBS_AWAY_LOCAL),
                            &cl, &why),
                  DIBS_INVALID);
    assert_non_null(strstr(why.message, "local_url"));
    CHECK(DIBS_INVALID,
          dibs_open(core_url, DIBS_CLIENT_OPTS(.local_url = ""), &cl, err));
    CHECK(DIBS_INVALID,
          dibs_open(core_url, DIBS_CLIENT_OPTS(.ttl_ms = 1), &cl, err));
    CHECK(DIBS_INVALID,
          dibs_open(core_url, DIBS_CLIENT_OPTS(.timeout_ms = -1), &cl, err));
    CHECK(DIBS_INVALID,
          dibs_open(core_url, DIBS_CLIENT_OPTS(.timeout_ms = INT64_MAX), &cl,
                    err));
    CHECK(DIBS_INVALID,
          dibs_open(core_url, DIBS_CLIENT_OPTS(.renew_every_ms = 9), &cl, err));
    assert_null(cl);
}

static void closing_nothing_is_fine(void **state)
{
    (void)state;
    dibs_close(NULL);
    dibs_lock_free(NULL);
    dibs_lock_cancel(NULL);
    CHECK(DIBS_INVALID, dibs_ping(NULL, NULL, err));
    CHECK(DIBS_INVALID, dibs_lock_try(NULL, err));
    CHECK(DIBS_INVALID, dibs_lock_acquire(NULL, err));
}

/* The store's clock is that of this machine in these tests. */
static void clocks_are_compared(void **state)
{
    dibs_client *cl = core_open();
    int64_t ahead_us = INT64_MAX, within_us = -1;

    (void)state;
    CHECK(DIBS_OK, dibs_clock_compare(cl, &ahead_us, &within_us, err));
    assert_true(within_us > 0);
    assert_true(ahead_us <= within_us + 1000 && -ahead_us <= within_us + 1000);
    CHECK(DIBS_OK, dibs_clock_compare(cl, &ahead_us, NULL, err));
    dibs_close(cl);
    CHECK(DIBS_INVALID, dibs_clock_compare(NULL, &ahead_us, NULL, err));
}

/* Renewed at once, nearly all of a lease is left. */
static void renewals_are_counted_by_what_is_left(void **state)
{
    dibs_client *cl = core_open();
    dibs_lock *lock =
        core_lock(cl, core_name(), DIBS_LOCK_OPTS(.ttl_ms = 60000));
    dibs_stats stats = {.size = sizeof(stats)};
    uint64_t count = 0;

    (void)state;
    CHECK(DIBS_OK, dibs_lock_try(lock, err));
    CHECK(DIBS_OK, dibs_lock_renew(lock, err));
    dibs_stats_get(cl, &stats);
    for (size_t i = 0; i < DIBS_SLACK_PARTS; i++)
        count += stats.slack[i];
    IN_TIME(count == 1 && stats.renewed == 1);
    IN_TIME(stats.slack[DIBS_SLACK_PARTS - 1] == 1);
    IN_TIME(stats.slack_permille > 900 && stats.slack_permille <= 1000);
    dibs_lock_free(lock);
    dibs_close(cl);
}

static void pings(void **state)
{
    dibs_client *cl = core_open();
    int64_t took_us = -1;

    (void)state;
    CHECK(DIBS_OK, dibs_ping(cl, &took_us, err));
    assert_true(took_us >= 0);
    CHECK(DIBS_OK, dibs_ping(cl, NULL, err));
    assert_true(strlen(dibs_url(cl)) > 0);
    dibs_close(cl);
}

static void count_finding(const dibs_finding *finding, void *arg)
{
    assert_non_null(finding->subject);
    assert_non_null(finding->found);
    ++*(int *)arg;
}

static void audits(void **state)
{
    dibs_client *cl = core_open();
    int findings = 0;

    (void)state;
    CHECK(DIBS_OK, dibs_audit(cl, count_finding, &findings, err));
    assert_true(findings > 0);
    dibs_close(cl);
}

static void names_are_checked(void **state)
{
    dibs_client *cl = core_open();
    dibs_lock *lock = NULL;
    char longest[DIBS_NAME_MAX + 2];

    (void)state;
    memset(longest, 'x', sizeof(longest));
    longest[sizeof(longest) - 1] = '\0';
    CHECK(DIBS_INVALID, dibs_lock_new(cl, longest, NULL, &lock, err));
    longest[DIBS_NAME_MAX] = '\0';
    CHECK(DIBS_OK, dibs_lock_new(cl, longest, NULL, &lock, err));
    dibs_lock_free(lock);
    CHECK(DIBS_INVALID, dibs_lock_new(cl, "", NULL, &lock, err));
    CHECK(DIBS_INVALID, dibs_lock_new(cl, NULL, NULL, &lock, err));
    CHECK(DIBS_INVALID, dibs_lock_new(cl, "a\nb", NULL, &lock, err));
    CHECK(DIBS_INVALID, dibs_lock_new(cl, "a\xC2\x9B", NULL, &lock, err));
    assert_null(lock);
    dibs_close(cl);
}

static void lock_options_are_checked(void **state)
{
    static const dibs_lock_opts bad[] = {
        {.size = sizeof(dibs_lock_opts), .ttl_ms = 9},
        {.size = sizeof(dibs_lock_opts), .ttl_ms = 24 * 3600 * 1000 + 1},
        {.size = sizeof(dibs_lock_opts), .flags = 1 << 9},
        {.size = sizeof(dibs_lock_opts), .mode = (dibs_lock_mode)5},
        {.size = sizeof(dibs_lock_opts), .renew_every_ms = -1},
        {.size = sizeof(dibs_lock_opts), .renew_every_ms = 9},
        {.size = sizeof(dibs_lock_opts), .renew_every_ms = 10001},
        {.size = sizeof(dibs_lock_opts), .hold_min_ms = -1},
        {.size = sizeof(dibs_lock_opts), .hold_min_ms = 31536000001},
        {.size = sizeof(dibs_lock_opts), .hold_min_ms = 9300000000000},
        {.size = sizeof(dibs_lock_opts), .hold_min_ms = INT64_MAX},
        {.size = 0},
    };
    dibs_client *cl = core_open();
    dibs_lock *lock = NULL;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        CHECK(DIBS_INVALID, dibs_lock_new(cl, "x", &bad[i], &lock, err));
    dibs_close(cl);
}

static void *free_lock(void *arg)
{
    dibs_lock_free(arg);
    return NULL;
}

/* Whichever is last frees the client, and only one of them is. */
static void a_lock_may_be_freed_while_its_client_is_closed(void **state)
{
    (void)state;
    for (int i = 0; i < 50; i++) {
        dibs_client *cl = core_open();
        dibs_lock *lock = core_lock(cl, core_name(), NULL);
        pthread_t thread;

        if (i % 2 == 0)
            CHECK(DIBS_OK, dibs_lock_acquire(lock, err));
        assert_int_equal(pthread_create(&thread, NULL, free_lock, lock), 0);
        dibs_close(cl);
        assert_int_equal(pthread_join(thread, NULL), 0);
    }
}

/* A program built against an older library passes a smaller struct. */
static void a_smaller_option_struct_is_read(void **state)
{
    dibs_client *cl = core_open();
    dibs_lock_opts opts = {.size = offsetof(dibs_lock_opts, wait_ms),
                           .ttl_ms = 12345,
                           .retries = 4000000};
    dibs_lock *lock = core_lock(cl, core_name(), &opts);

    (void)state;
    CHECK(DIBS_OK, dibs_lock_acquire(lock, err));
    assert_in_range(dibs_lock_valid_ms(lock), 1000, 12345);
    dibs_lock_free(lock);
    dibs_close(cl);
}

static void statuses_have_names(void **state)
{
    (void)state;
    assert_string_equal(dibs_status_name(DIBS_BUSY), "BUSY");
    assert_string_equal(dibs_status_name((dibs_status)99), "?");
    assert_true(strlen(dibs_status_text(DIBS_FORKED)) > 0);
    assert_true(strlen(dibs_status_text((dibs_status)99)) > 0);
    assert_string_equal(dibs_version(), "0.1.0");
}

static void statistics_count(void **state)
{
    dibs_client *cl = core_open();
    dibs_lock *lock = core_lock(cl, core_name(), NULL);
    dibs_stats stats = {.size = sizeof(stats)};
    dibs_stats part = {.size = offsetof(dibs_stats, acquired), .acquired = 77};

    (void)state;
    CHECK(DIBS_OK, dibs_lock_try(lock, err));
    dibs_stats_get(cl, &stats);
    assert_int_equal(stats.attempts, 1);
    assert_int_equal(stats.acquired, 1);
    assert_int_equal(stats.held, 1);
    CHECK(DIBS_OK, dibs_lock_renew(lock, err));
    CHECK(DIBS_OK, dibs_lock_release(lock, err));
    dibs_stats_get(cl, &stats);
    assert_int_equal(stats.held, 0);
    assert_int_equal(stats.released, 1);
    assert_int_equal(stats.renewed, 1);
    dibs_stats_get(cl, &part);
    assert_int_equal(part.attempts, 1);
    assert_int_equal(part.acquired, 77);
    dibs_lock_free(lock);
    dibs_close(cl);
}

static void closing_gives_back_what_is_held(void **state)
{
    dibs_client *cl = core_open();
    dibs_client *other = core_open();
    const char *name = core_name();
    dibs_lock *lock = core_lock(cl, name, NULL);
    dibs_lock *next = core_lock(other, name, NULL);

    (void)state;
    CHECK(DIBS_OK, dibs_lock_try(lock, err));
    dibs_close(cl);
    CHECK(DIBS_INVALID, dibs_lock_try(lock, err));
    CHECK(DIBS_OK, dibs_lock_try(next, err));
    dibs_lock_free(lock);
    dibs_lock_free(next);
    dibs_close(other);
}

typedef struct log_line {
    int lines;
    char event[32];
} log_line;

static void keep_line(dibs_log_level level, const char *event,
                      const char *message, void *arg)
{
    log_line *line = arg;

    (void)level;
    assert_true(strlen(message) > 0);
    line->lines++;
    strncpy(line->event, event, sizeof(line->event) - 1);
}

static void what_kept_a_block_from_running_is_logged(void **state)
{
    log_line line = {0};
    dibs_client *cl = NULL;
    dibs_client *other = core_open();
    const char *name = core_name();
    dibs_lock *lock = core_lock(other, name, NULL);
    bool ran = false;

    (void)state;
    CHECK(DIBS_OK,
          dibs_open(core_url,
                    DIBS_CLIENT_OPTS(.log = keep_line, .log_arg = &line,
                                     .log_level = DIBS_LOG_INFO),
                    &cl, err));
    CHECK(DIBS_OK, dibs_lock_try(lock, err));
    DIBS_WITH_LOCK(cl, name, .ttl_ms = 1000)
    {
        ran = true;
    }
    assert_false(ran);
    assert_int_equal(line.lines, 1);
    assert_string_equal(line.event, "skipped");
    dibs_lock_free(lock);
    dibs_close(other);
    dibs_close(cl);
}

/* Runs a block under these options three times; what was printed. */
static const char *
printed_by(dibs_client *cl, const char *name, const dibs_lock_opts *opts)
{
    static char text[2048];
    int fds[2], own = dup(STDERR_FILENO);
    ssize_t len;

    assert_int_equal(pipe(fds), 0);
    fflush(stderr);
    assert_true(own >= 0 && dup2(fds[1], STDERR_FILENO) >= 0);
    for (int i = 0; i < 3; i++)
        assert_null(dibs_scope_begin(cl, name, opts));
    fflush(stderr);
    assert_true(dup2(own, STDERR_FILENO) >= 0);
    close(own);
    close(fds[1]);
    len = read(fds[0], text, sizeof(text) - 1);
    assert_true(len >= 0);
    text[len] = '\0';
    close(fds[0]);
    return text;
}

/* A program that has no log must not take a mistake for a busy lock. */
static void without_a_log_a_mistake_is_printed_once(void **state)
{
    dibs_client *cl = core_open(), *other = core_open();
    const char *name = core_name();
    dibs_lock *lock = core_lock(other, name, NULL);
    const dibs_lock_opts *wrong = DIBS_LOCK_OPTS(.ttl_ms = 1);
    log_line line = {0};
    char expected[2 * DIBS_NAME_MAX];

    (void)state;
    snprintf(expected, sizeof(expected),
             "dibs: skipped: %s: the ttl must be from 10 ms to 24 h\n", name);
    assert_string_equal(printed_by(cl, name, wrong), expected);
    assert_string_equal(printed_by(cl, name, wrong), "");
    assert_string_equal(printed_by(other, name, wrong), expected);
    CHECK(DIBS_OK, dibs_lock_try(lock, err));
    assert_string_equal(printed_by(cl, name, NULL), "");
    assert_non_null(strstr(printed_by(NULL, name, NULL), "the client is NULL"));
    dibs_lock_free(lock);
    dibs_close(other);
    dibs_close(cl);
    CHECK(DIBS_OK,
          dibs_open(core_url,
                    DIBS_CLIENT_OPTS(.log = keep_line, .log_arg = &line), &cl,
                    err));
    assert_string_equal(printed_by(cl, name, wrong), "");
    assert_string_equal(line.event, "skipped");
    dibs_close(cl);
}

/* The child must see that nothing is its own, and touch nothing. */
static int child_of_fork(dibs_client *cl, dibs_lock *held)
{
    char owner[DIBS_OWNER_SIZE];
    dibs_lock *lock = NULL;
    dibs_value value;

    if (dibs_ping(cl, NULL, NULL) != DIBS_FORKED ||
        dibs_lock_new(cl, "x", NULL, &lock, NULL) != DIBS_FORKED ||
        dibs_lock_try(held, NULL) != DIBS_FORKED ||
        dibs_lock_renew(held, NULL) != DIBS_FORKED ||
        dibs_lock_release(held, NULL) != DIBS_FORKED ||
        dibs_state_get(cl, "x", &value, NULL) != DIBS_FORKED ||
        dibs_lock_valid_ms(held) != 0 || dibs_lock_fence(held) != 0 ||
        dibs_lock_state_get(held) != DIBS_LOCK_FREE ||
        dibs_lock_lost_fd(held) != -1)
        return 1;
    dibs_lock_owner(held, owner);
    dibs_lock_cancel(held);
    dibs_lock_leave(held);
    dibs_lock_free(held);
    dibs_close(cl);
    return owner[0] == '\0' ? 0 : 2;
}

static void after_a_fork_the_parent_goes_on(void **state)
{
    dibs_client *cl = core_open();
    dibs_lock *lock = core_lock(cl, core_name(), NULL);
    int status = -1;
    pid_t pid;

    (void)state;
    CHECK(DIBS_OK, dibs_lock_try(lock, err));
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        _exit(child_of_fork(cl, lock));
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    assert_true(dibs_lock_valid_ms(lock) > 0);
    CHECK(DIBS_OK, dibs_lock_renew(lock, err));
    CHECK(DIBS_OK, dibs_lock_release(lock, err));
    dibs_lock_free(lock);
    dibs_close(cl);
}

int core_client_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_urls_are_refused),
        cmocka_unit_test(no_url_means_what_is_configured),
        cmocka_unit_test(bad_options_are_refused),
        cmocka_unit_test(closing_nothing_is_fine),
        cmocka_unit_test(pings),
        cmocka_unit_test(clocks_are_compared),
        cmocka_unit_test(renewals_are_counted_by_what_is_left),
        cmocka_unit_test(audits),
        cmocka_unit_test(names_are_checked),
        cmocka_unit_test(lock_options_are_checked),
        cmocka_unit_test(a_lock_may_be_freed_while_its_client_is_closed),
        cmocka_unit_test(a_smaller_option_struct_is_read),
        cmocka_unit_test(statuses_have_names),
        cmocka_unit_test(statistics_count),
        cmocka_unit_test(closing_gives_back_what_is_held),
        cmocka_unit_test(what_kept_a_block_from_running_is_logged),
        cmocka_unit_test(without_a_log_a_mistake_is_printed_once),
        cmocka_unit_test(after_a_fork_the_parent_goes_on),
    };

    return cmocka_run_group_tests_name("client", tests, NULL, NULL);
}
