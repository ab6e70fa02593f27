/* contract_meter.c - meters: calls are counted once, for the version that they were
 * begun under, in a window that slides. */
/* SPDX-License-Identifier: MIT */
#include "contract.h"

#include <inttypes.h>
#include <pthread.h>

enum { THREADS = 8, CALLS = 20 };

#define DAY_MS INT64_C(86400000)

static dibs__meter report_of(const contract *t, int64_t good, int64_t bad)
{
    return (dibs__meter){.key = t->name,
                         .window_ms = DAY_MS,
                         .good = good,
                         .bad = bad};
}

static dibs_status
meter(contract *t, size_t handle, const dibs__meter *what, dibs__sums *out)
{
    dibs__store *st = t->st[handle];
    dibs_error err = {0};
    dibs_status rc =
        st->ops->meter->meter(st, what, contract_soon(), out, &err);

    if (rc != DIBS_OK && rc != DIBS_STALE && rc != DIBS_INVALID)
        print_message("meter: %s\n", err.message);
    return rc;
}

static uint64_t
put(contract *t, const char *key, const char *text, int64_t ttl_ms)
{
    const dibs__put what = {.key = key,
                            .data = text,
                            .len = strlen(text),
                            .expected = DIBS_VERSION_ANY,
                            .ttl_ms = ttl_ms};
    dibs__store *st = t->st[0];
    uint64_t version = 0;

    assert_status(st->ops->value->put(st, &what, contract_soon(), &version,
                                      NULL),
                  DIBS_OK);
    return version;
}

static void
expect_sums(const dibs__sums *got, int64_t good, int64_t bad, int64_t slow)
{
    assert_int_equal(got->good, good);
    assert_int_equal(got->bad, bad);
    assert_int_equal(got->slow, slow);
}

static void reports_of_all_clients_add_up(void **state)
{
    contract *t = *state;
    dibs__meter what = report_of(t, 5, 0);
    dibs__sums got;

    assert_status(meter(t, 0, &what, &got), DIBS_OK);
    expect_sums(&got, 5, 0, 0);
    assert_int_equal(got.reporters, 0);
    assert_int_equal(got.version, 0);
    assert_int_equal(got.expires_ms, -1);
    assert_string_equal(got.state, "");
    what = report_of(t, 1, 2);
    what.slow = 3;
    what.mark = 31;
    assert_status(meter(t, 1, &what, &got), DIBS_OK);
    expect_sums(&got, 6, 2, 3);
    assert_int_equal(got.reporters, 1);
    what = report_of(t, 0, 0);
    assert_status(meter(t, 2, &what, &got), DIBS_OK);
    expect_sums(&got, 6, 2, 3);
}

/* A mark is set by calls that were bad or slow, and two with the same are one. */
static void marks_count_reporters(void **state)
{
    static const struct {
        uint32_t mark;
        int64_t good, bad, slow;
        uint32_t reporters;
    } steps[] = {{3, 1, 0, 0, 0}, {3, 0, 1, 0, 1},  {3, 0, 1, 0, 1},
                 {0, 1, 0, 1, 2}, {31, 0, 1, 0, 3}, {16, 1, 1, 1, 4}};
    contract *t = *state;
    dibs__sums got;

    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        dibs__meter what = report_of(t, steps[i].good, steps[i].bad);

        what.slow = steps[i].slow;
        what.mark = steps[i].mark;
        assert_status(meter(t, i % CONTRACT_HANDLES, &what, &got), DIBS_OK);
        assert_int_equal(got.reporters, steps[i].reporters);
    }
}

static void late_reports_of_another_version_count_for_nothing(void **state)
{
    contract *t = *state;
    dibs__meter what = report_of(t, 0, 4), old = what;
    dibs__sums got;

    assert_status(meter(t, 0, &what, &got), DIBS_OK);
    what.version = put(t, t->name, "open", 3600000);
    assert_status(meter(t, 1, &old, &got), DIBS_STALE);
    expect_sums(&got, 0, 0, 0);
    assert_int_equal(got.version, what.version);
    assert_true(got.expires_ms > 3500000 && got.expires_ms <= 3600000);
    assert_string_equal(got.state, "open");
    assert_status(meter(t, 2, &what, &got), DIBS_OK);
    expect_sums(&got, 0, 4, 0);
    assert_int_equal(got.version, what.version);
    assert_string_equal(got.state, "open");
    old = what;
    what.version = put(t, t->name, "a value that is longer than the answer", 0);
    assert_status(meter(t, 0, &old, &got), DIBS_STALE);
    assert_int_equal(got.expires_ms, -1);
    assert_string_equal(got.state, "a value that is longer than the");
    what.bad = 0;
    assert_status(meter(t, 1, &what, &got), DIBS_OK);
    expect_sums(&got, 0, 0, 0);
}

static void a_value_that_expired_is_version_0(void **state)
{
    contract *t = *state;
    dibs__meter what = report_of(t, 0, 1);
    int64_t ttl_ms = pace_ms(20);
    dibs__sums got;

    what.version = put(t, t->name, "open", ttl_ms);
    contract_sleep_until(
        dibsx_after_ms(dibsx_now(), ttl_ms + CONTRACT_DRIFT_MS));
    assert_status(meter(t, 0, &what, &got), DIBS_STALE);
    assert_int_equal(got.version, 0);
    assert_string_equal(got.state, "");
    what.version = 0;
    assert_status(meter(t, 0, &what, &got), DIBS_OK);
    expect_sums(&got, 0, 1, 0);
}

/* All calls are in the sum while the window is not over, in whatever cells they
 * are. */
static void nothing_is_forgotten_within_the_window(void **state)
{
    contract *t = *state;
    dibs__meter what = report_of(t, 2, 1);
    dibsx_nsec begun_at = dibsx_now();
    int64_t total = 0;

    what.window_ms = pace_ms(200);
    while (contract_ms_since(begun_at) < what.window_ms / 2) {
        dibs__sums got;

        assert_status(meter(t, 0, &what, &got), DIBS_OK);
        total++;
        if (contract_ms_since(begun_at) < what.window_ms - CONTRACT_DRIFT_MS)
            expect_sums(&got, 2 * total, total, 0);
        contract_sleep_until(dibsx_after_ms(dibsx_now(), what.window_ms / 50));
    }
}

static void calls_before_the_window_are_forgotten(void **state)
{
    contract *t = *state;
    dibs__meter what = report_of(t, 1, 7);
    dibs__sums got;

    what.window_ms = pace_ms(30);
    assert_status(meter(t, 0, &what, &got), DIBS_OK);
    contract_sleep_until(
        dibsx_after_ms(dibsx_now(), what.window_ms + CONTRACT_DRIFT_MS));
    what.bad = 0;
    assert_status(meter(t, 1, &what, &got), DIBS_OK);
    expect_sums(&got, 1, 0, 0);
    assert_int_equal(got.reporters, 0);
}

static void impossible_reports_are_refused(void **state)
{
    contract *t = *state;
    dibs__meter bad[6];
    dibs__sums got;

    for (size_t i = 0; i < 6; i++)
        bad[i] = report_of(t, 1, 1);
    bad[0].window_ms = 0;
    bad[1].window_ms = DAY_MS + 1;
    bad[2].good = -1;
    bad[3].bad = DIBS__METER_CALLS_MAX + 1;
    bad[4].slow = 3;
    bad[5].mark = DIBS__METER_MARKS;
    for (size_t i = 0; i < 6; i++)
        assert_status(meter(t, 0, &bad[i], &got), DIBS_INVALID);
    bad[0] = report_of(t, 0, 0);
    assert_status(meter(t, 0, &bad[0], &got), DIBS_OK);
    expect_sums(&got, 0, 0, 0);
}

/* Whatever part of a name decides where it is, its value and its meter are together. */
static void names_have_meters_of_their_own(void **state)
{
    static const char *const ends[] = {"", "{x}y", "}z", "{}", "{", "~{x}"};
    contract *t = *state;
    char name[128];
    dibs__sums got;

    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        dibs__meter what = report_of(t, 0, 1);

        snprintf(name, sizeof(name), "%s%s", t->name, ends[i]);
        what.key = name;
        assert_status(meter(t, 0, &what, &got), DIBS_OK);
        expect_sums(&got, 0, 1, 0);
        what.version = put(t, name, "open", 60000);
        assert_status(meter(t, 1, &what, &got), DIBS_OK);
        expect_sums(&got, 0, 1, 0);
    }
}

static void a_meter_outlives_its_handle(void **state)
{
    contract *t = *state;
    dibs__meter what = report_of(t, 0, 1);
    dibs__sums got;

    assert_status(meter(t, 0, &what, &got), DIBS_OK);
    dibs__store_close(t->st[0]);
    t->st[0] = contract_open();
    assert_status(meter(t, 0, &what, &got), DIBS_OK);
    expect_sums(&got, 0, 2, 0);
}

/* The rule in C and that of the store, over versions. */
static void every_store_counts_alike(void **state)
{
    contract *t = *state;
    dibs__meter_window model = {0};
    uint64_t version = 0;
    uint32_t seed = 4711;

    for (int i = 0; i < 60; i++) {
        dibs__sums expected, got;
        dibs__meter what;

        seed = seed * 1664525 + 1013904223;
        if (i % 20 == 19)
            version = put(t, t->name, "closed", 0);
        what = report_of(t, (seed >> 8) % 5, (seed >> 12) % 3);
        what.slow = (seed >> 16) % (what.good + what.bad + 1);
        what.mark = (seed >> 20) % DIBS__METER_MARKS;
        what.version = version;
        (void)dibs__meter_add(&model, &what, dibsx_now() / DIBSX_MS, &expected);
        assert_status(meter(t, (size_t)i % CONTRACT_HANDLES, &what, &got),
                      DIBS_OK);
        expect_sums(&got, expected.good, expected.bad, expected.slow);
        assert_int_equal(got.reporters, expected.reporters);
    }
}

typedef struct crowd {
    contract *t;
    size_t handle;
    int failed;
} crowd;

static void *report_often(void *arg)
{
    crowd *c = arg;
    dibs__meter what = report_of(c->t, 1, 1);
    dibs__sums got;

    for (int i = 0; i < CALLS; i++) {
        dibs_status rc = meter(c->t, c->handle, &what, &got);

        if (pace_explains(rc))
            MISSED("a report is %s", dibs_status_name(rc));
        c->failed += rc != DIBS_OK;
    }
    return NULL;
}

static void each_report_counts_once(void **state)
{
    contract *t = *state;
    dibs__meter look = report_of(t, 0, 0);
    pthread_t threads[THREADS];
    crowd crowds[THREADS];
    dibs__sums got;

    for (size_t i = 0; i < THREADS; i++) {
        crowds[i] = (crowd){.t = t, .handle = i % CONTRACT_HANDLES};
        assert_int_equal(pthread_create(&threads[i], NULL, report_often,
                                        &crowds[i]),
                         0);
    }
    for (size_t i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(crowds[i].failed, 0);
    }
    assert_status(meter(t, 0, &look, &got), DIBS_OK);
    expect_sums(&got, THREADS * CALLS, THREADS * CALLS, 0);
}

int contract_meter(void)
{
    const struct CMUnitTest tests[] = {
        CONTRACT_TEST(reports_of_all_clients_add_up),
        CONTRACT_TEST(marks_count_reporters),
        CONTRACT_TEST(late_reports_of_another_version_count_for_nothing),
        CONTRACT_TEST(a_value_that_expired_is_version_0),
        CONTRACT_TEST(nothing_is_forgotten_within_the_window),
        CONTRACT_TEST(calls_before_the_window_are_forgotten),
        CONTRACT_TEST(impossible_reports_are_refused),
        CONTRACT_TEST(names_have_meters_of_their_own),
        CONTRACT_TEST(a_meter_outlives_its_handle),
        CONTRACT_TEST(every_store_counts_alike),
        CONTRACT_TEST(each_report_counts_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
