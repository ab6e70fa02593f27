/* limit.c - rate limits through the public interface. */
/* SPDX-License-Identifier: MIT */
#include "core.h"
#include "hosting.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { HOUR_MS = 3600000, THREADS = 8, CALLS = 100 };

static dibs_limit *
open_limit(dibs_client *cl, const char *name, const dibs_limit_opts *opts)
{
    dibs_limit *limit = NULL;

    CHECK(DIBS_OK, dibs_limit_new(cl, name, opts, &limit, err));
    return limit;
}

static void two_clients_share_a_limit(void **state)
{
    dibs_client *one = core_open(), *other = core_open();
    const char *name = core_name();
    const dibs_limit_opts *opts =
        DIBS_LIMIT_OPTS(.count = 1, .period_ms = HOUR_MS, .burst = 3);
    dibs_limit *a = open_limit(one, name, opts);
    dibs_limit *b = open_limit(other, name, opts);

    (void)state;
    assert_int_equal(dibs_limit_retry_ms(a), 0);
    CHECK(DIBS_OK, dibs_limit_take(a, 2, err));
    assert_int_equal(dibs_limit_remaining(a), 1);
    CHECK(DIBS_OK, dibs_limit_take(b, 1, err));
    CHECK(DIBS_BUSY, dibs_limit_take(a, 1, err));
    assert_true(dibs_limit_retry_ms(a) > HOUR_MS / 2);
    assert_true(dibs_limit_retry_ms(a) <= HOUR_MS);
    dibs_limit_free(a);
    dibs_limit_free(b);
    dibs_close(one);
    dibs_close(other);
}

static int64_t now_ms(void)
{
    struct timespec at;

    clock_gettime(CLOCK_MONOTONIC, &at);
    return at.tv_sec * 1000 + at.tv_nsec / 1000000;
}

static void a_call_waits_for_its_tokens(void **state)
{
    dibs_client *cl = core_open();
    dibs_limit *limit = open_limit(cl, core_name(),
                                   DIBS_LIMIT_OPTS(.count = 1, .period_ms = 20,
                                                   .burst = 1, .wait_ms = -1));
    int64_t begun_ms = now_ms();

    (void)state;
    for (int i = 0; i < 5; i++)
        CHECK(DIBS_OK, dibs_limit_take(limit, 1, err));
    assert_true(now_ms() - begun_ms >= 75);
    dibs_limit_free(limit);
    dibs_close(cl);
}

typedef struct taker {
    dibs_limit *limit;
    dibs_status rc;
    int granted, failed;
} taker;

static void *take_one(void *arg)
{
    taker *tk = arg;
    dibs_error err = {0};

    tk->rc = dibs_limit_take(tk->limit, 1, &err);
    return NULL;
}

static bool is_out(void *arg)
{
    return dibs_limit_remaining(arg) == 0;
}

static void closing_ends_the_sleep(void **state)
{
    dibs_client *cl = core_open();
    taker tk = {.rc = DIBS_OK};
    pthread_t thread;

    (void)state;
    tk.limit = open_limit(cl, core_name(),
                          DIBS_LIMIT_OPTS(.count = 1, .period_ms = HOUR_MS,
                                          .burst = 2, .wait_ms = -1));
    CHECK(DIBS_OK, dibs_limit_take(tk.limit, 1, err));
    assert_int_equal(dibs_limit_remaining(tk.limit), 1);
    CHECK(DIBS_OK, dibs_limit_take(tk.limit, 1, err));
    assert_int_equal(pthread_create(&thread, NULL, take_one, &tk), 0);
    core_until(is_out, tk.limit);
    dibs_close(cl);
    pthread_join(thread, NULL);
    if (tk.rc != DIBS_INVALID)
        assert_status(tk.rc, DIBS_CANCELLED);
    CHECK(DIBS_INVALID, dibs_limit_take(tk.limit, 1, err));
    dibs_limit_free(tk.limit);
}

static void *take_many(void *arg)
{
    taker *tk = arg;

    for (int i = 0; i < CALLS; i++) {
        dibs_error err = {0};
        dibs_status rc = dibs_limit_take(tk->limit, 1, &err);

        tk->granted += rc == DIBS_OK;
        if (pace_explains(rc))
            MISSED("a take is %s: %s", dibs_status_name(rc), err.message);
        tk->failed += rc != DIBS_OK && rc != DIBS_BUSY;
    }
    return NULL;
}

/* All tokens are handed out, and none twice. */
static void reservations_stay_within_the_bound(void **state)
{
    dibs_client *cl = core_open();
    const char *name = core_name();
    dibs_limit *limit =
        open_limit(cl, name,
                   DIBS_LIMIT_OPTS(.count = 1, .period_ms = HOUR_MS,
                                   .burst = 400, .chunk = 50));
    pthread_t threads[THREADS];
    taker takers[THREADS];
    int granted = 0;

    (void)state;
    for (int i = 0; i < THREADS; i++) {
        takers[i] = (taker){.limit = limit};
        assert_int_equal(pthread_create(&threads[i], NULL, take_many,
                                        &takers[i]),
                         0);
    }
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(takers[i].failed, 0);
        granted += takers[i].granted;
    }
    /* What is in the stock at the end may have grown too old. */
    assert_true(granted <= 400);
    IN_TIME(granted >= 350);
    dibs_limit_free(limit);
    dibs_close(cl);
}

/* Of a limit that gives back one token in an hour, clients take what they get one after
 * the other, while their clocks differ by thousands of hours. */
enum { SKEW_H = 1000, SKEWED_BURST = 60 };

/* A process of its own, whose clock is as far from ours as it is to be: URL, limit, our
 * seconds, hours. Answers how many tokens of the burst it got. */
int core_take_skewed(char **words)
{
    long long ahead_s = (long long)time(NULL) - strtoll(words[2], NULL, 10);
    long long skew_s = strtoll(words[3], NULL, 10) * 3600;
    dibs_client *cl = NULL;
    taker tk = {.granted = 0};

    if (llabs(ahead_s - skew_s) > SKEW_H * 3600 / 2)
        fail_msg("the clock is %lld s ahead, not %lld", ahead_s, skew_s);
    CHECK(DIBS_OK, dibs_open(words[0], NULL, &cl, err));
    tk.limit = open_limit(cl, words[1],
                          DIBS_LIMIT_OPTS(.count = 1, .period_ms = HOUR_MS,
                                          .burst = SKEWED_BURST));
    take_many(&tk);
    dibs_limit_free(tk.limit);
    dibs_close(cl);
    return tk.failed > 0 ? 100 + tk.failed : tk.granted;
}

static int take_with_clock(const char *name, int skew_h)
{
    int64_t ahead_us[2] = {skew_h * INT64_C(3600000000), 0};
    int fd = memfd_create("clock", 0);
    char path[64], ours[24], hours[16];
    pid_t child;

    assert_int_equal(write(fd, ahead_us, sizeof(ahead_us)), sizeof(ahead_us));
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    snprintf(ours, sizeof(ours), "%lld", (long long)time(NULL));
    snprintf(hours, sizeof(hours), "%d", skew_h);
    setenv("CLOCK_SHIM", path, 1);
    setenv("LD_PRELOAD", hosting_preload(CLOCK_SHIM_LIBRARY), 1);
    child = child_start("takes", core_url, name, ours, hours, NULL);
    unsetenv("LD_PRELOAD");
    unsetenv("CLOCK_SHIM");
    close(fd);
    assert_true(child > 0);
    return child_code(child);
}

/* A store that went by the time of its caller would give a token back for each hour by
 * which the clocks differ. */
static void skewed_clients_get_no_more(void **state)
{
    static const int skews_h[] = {SKEW_H, -SKEW_H, SKEW_H, 0, 2 * SKEW_H};
    const char *name = core_name();
    dibs_client *cl;
    dibs_limit *limit;

    (void)state;
#ifdef DIBS_SANITIZED
    skip(); /* sanitizers want to be loaded before the shim */
#endif
    if (strncmp(core_url, "redis", 5) != 0 &&
        strncmp(core_url, "postgres", 8) != 0)
        skip(); /* the clock of the machine is that of the store */
    cl = core_open();
    limit = open_limit(cl, name,
                       DIBS_LIMIT_OPTS(.count = 1, .period_ms = HOUR_MS,
                                       .burst = SKEWED_BURST));
    CHECK(DIBS_OK, dibs_limit_take(limit, SKEWED_BURST / 2, err));
    assert_int_equal(take_with_clock(name, -SKEW_H), SKEWED_BURST / 2);
    for (size_t i = 0; i < COUNT_OF(skews_h); i++)
        assert_int_equal(take_with_clock(name, skews_h[i]), 0);
    CHECK(DIBS_BUSY, dibs_limit_take(limit, 1, err));
    assert_true(dibs_limit_retry_ms(limit) <= HOUR_MS);
    dibs_limit_free(limit);
    dibs_close(cl);
}

static void bad_calls_are_refused(void **state)
{
    dibs_client *cl = core_open();
    dibs_limit *limit;

    (void)state;
    CHECK(DIBS_INVALID, dibs_limit_new(cl, "x", NULL, &limit, err));
    CHECK(DIBS_INVALID,
          dibs_limit_new(cl, "x", DIBS_LIMIT_OPTS(.count = 0), &limit, err));
    CHECK(DIBS_INVALID,
          dibs_limit_new(cl, "x", DIBS_LIMIT_OPTS(.count = 1, .burst = -1),
                         &limit, err));
    CHECK(DIBS_INVALID,
          dibs_limit_new(cl, "x",
                         DIBS_LIMIT_OPTS(.count = 1, .burst = INT64_MAX),
                         &limit, err));
    CHECK(DIBS_INVALID,
          dibs_limit_new(cl, "x",
                         DIBS_LIMIT_OPTS(.count = 1, .period_ms = INT64_MAX),
                         &limit, err));
    CHECK(DIBS_INVALID,
          dibs_limit_new(cl, "", DIBS_LIMIT_OPTS(.count = 1), &limit, err));
    assert_null(limit);
    limit =
        open_limit(cl, core_name(), DIBS_LIMIT_OPTS(.count = 5, .wait_ms = -1));
    CHECK(DIBS_INVALID, dibs_limit_take(limit, 0, err));
    CHECK(DIBS_INVALID, dibs_limit_take(limit, 6, err));
    CHECK(DIBS_INVALID, dibs_limit_take(NULL, 1, err));
    dibs_limit_free(limit);
    dibs_limit_free(NULL);
    dibs_close(cl);
}

static bool count_limit(const dibs_limit_info *info, void *arg)
{
    assert_int_equal(info->out, 1);
    assert_int_equal(info->period_us, INT64_C(3600000000));
    return ++*(int *)arg != 3;
}

/* More than a page of the store. */
static void limits_are_listed(void **state)
{
    enum { MANY = 501 };
    dibs_client *cl = core_open();
    char name[DIBS_NAME_MAX + 1], begins[64];
    int shown = 3;

    (void)state;
    snprintf(begins, sizeof(begins), "%.40s", core_name());
    for (int i = 0; i < MANY; i++) {
        dibs_limit *limit;

        snprintf(name, sizeof(name), "%s-%d", begins, i);
        limit = open_limit(cl, name,
                           DIBS_LIMIT_OPTS(.count = 1, .period_ms = 3600000));
        CHECK(DIBS_OK, dibs_limit_take(limit, 1, err));
        dibs_limit_free(limit);
    }
    CHECK(DIBS_OK, dibs_limit_list(cl, begins, count_limit, &shown, err));
    assert_int_equal(shown, MANY + 3);
    shown = 0;
    CHECK(DIBS_OK, dibs_limit_list(cl, begins, count_limit, &shown, err));
    assert_int_equal(shown, 3);
    snprintf(name, sizeof(name), "%s-500", begins);
    shown = 3;
    CHECK(DIBS_OK, dibs_limit_list(cl, name, count_limit, &shown, err));
    assert_int_equal(shown, 4);
    dibs_close(cl);
}

int core_limit_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_clients_share_a_limit),
        cmocka_unit_test(a_call_waits_for_its_tokens),
        cmocka_unit_test(closing_ends_the_sleep),
        cmocka_unit_test(reservations_stay_within_the_bound),
        cmocka_unit_test(skewed_clients_get_no_more),
        cmocka_unit_test(bad_calls_are_refused),
        cmocka_unit_test(limits_are_listed),
    };

    return cmocka_run_group_tests_name("limit", tests, NULL, NULL);
}
