/* test_series.c - numbers over time, in two rings. */
/* SPDX-License-Identifier: MIT */
#include "serve/series.h"
#include "unit.h"
#include <stdio.h>
#include <string.h>

static dibs__series series;
static dibsx_buf out;

static int begin(void **state)
{
    (void)state;
    dibsx_buf_init(&out, 4 * 1024 * 1024);
    return dibs__series_init(&series, NULL) == DIBS_OK ? 0 : -1;
}

static int end(void **state)
{
    (void)state;
    dibs__series_fini(&series);
    dibsx_buf_fini(&out);
    return 0;
}

static const dibs__series_point *
add(int64_t wall_s, int64_t held, int64_t granted)
{
    dibs__series_sample sample = {.wait_count = 0};

    for (size_t i = 0; i < DIBS__SERIES_SAMPLED; i++)
        sample.values[i] = -1;
    sample.values[DIBS__SERIES_HELD] = held;
    sample.values[DIBS__SERIES_GRANTED] = granted;
    return dibs__series_add(&series, wall_s, &sample);
}

static const char *shown(int64_t step_s, int64_t wall_s, const char *names)
{
    uint32_t set;
    dibsx_json js;

    assert_true(dibs__series_names(names, &set));
    dibsx_buf_reset(&out);
    dibsx_json_init(&js, &out);
    dibs__series_json(&series, step_s, wall_s, set, &js);
    return dibsx_buf_text(&out);
}

static void test_gauges_are_the_highest_and_counts_the_sum(void **state)
{
    const dibs__series_point *closed;

    (void)state;
    assert_null(add(1000, 3, 1));
    assert_null(add(1002, 7, 2));
    assert_null(add(1004, 5, -1));
    assert_string_equal(shown(5, 1004, "held,granted"),
                        "\"step_s\":5,\"items\":[],\"now\":{\"at_s\":1000,"
                        "\"held\":7,\"granted\":3}");
    closed = add(1009, 1, 0);
    assert_non_null(closed);
    assert_int_equal(closed->at_s, 1000);
    assert_string_equal(shown(5, 1009, "held,granted"),
                        "\"step_s\":5,\"items\":[{\"at_s\":1000,\"held\":7,"
                        "\"granted\":3}],\"now\":{\"at_s\":1005,\"held\":1,"
                        "\"granted\":0}");
    /* A minute began at 960. */
    assert_string_equal(shown(60, 1009, "granted"),
                        "\"step_s\":60,\"items\":[],\"now\":{\"at_s\":960,"
                        "\"granted\":3}");
}

static void test_what_is_not_known_is_null(void **state)
{
    (void)state;
    (void)add(1000, -1, -1);
    assert_string_equal(shown(5, 1000, "held,wait_p99_ms"),
                        "\"step_s\":5,\"items\":[],\"now\":{\"at_s\":1000,"
                        "\"held\":null,\"wait_p99_ms\":null}");
}

static void test_quantiles_of_waits(void **state)
{
    int64_t waits_ms[2 * DIBS__SERIES_WAITS_MAX];
    dibs__series_sample sample = {.waits_ms = waits_ms, .wait_count = 100};

    (void)state;
    for (int i = 0; i < 100; i++)
        waits_ms[i] = 99 - i;
    (void)dibs__series_add(&series, 1000, &sample);
    assert_non_null(
        strstr(shown(5, 1000, "wait_p50_ms,wait_p95_ms,wait_p99_ms"),
               "\"wait_p50_ms\":50,\"wait_p95_ms\":95,"
               "\"wait_p99_ms\":99"));
    /* More than a point has room for, and then a point of its own. */
    sample.wait_count = 2 * DIBS__SERIES_WAITS_MAX;
    for (int i = 0; i < 2 * DIBS__SERIES_WAITS_MAX; i++)
        waits_ms[i] = 7;
    (void)dibs__series_add(&series, 1001, &sample);
    assert_non_null(strstr(shown(5, 1001, "wait_p50_ms"), ":7}"));
    (void)add(1005, 1, 1);
    assert_non_null(
        strstr(shown(5, 1005, "wait_p50_ms"), "\"wait_p50_ms\":null}"));
}

static void test_an_hour_and_a_day_are_kept(void **state)
{
    const int64_t end_s = 100000 * 60;
    size_t points = 0;

    (void)state;
    for (int64_t at = 0; at <= end_s; at += 1000)
        (void)add(at, 1, 1);
    for (int64_t at = end_s - 2 * 86400; at <= end_s; at += 5)
        (void)add(at, 1, 1);
    assert_int_equal(series.fine.next - series.fine.first, DIBS__SERIES_STEPS);
    assert_int_equal(series.coarse.next - series.coarse.first,
                     DIBS__SERIES_LONG_STEPS);
    /* Old points of a time in which nobody looked are not shown. */
    (void)add(end_s + 3600, 1, 1);
    for (const char *at = shown(5, end_s + 3600, "held");
         (at = strstr(at, "at_s")); at++)
        points++;
    assert_int_equal(points, 2);
}

static void test_a_clock_that_is_set_back(void **state)
{
    (void)state;
    for (int64_t at = 1000; at <= 1100; at += 5)
        (void)add(at, 1, 1);
    (void)add(1050, 2, 2);
    (void)add(1055, 3, 3);
    assert_int_equal(
        series.fine.points[(series.fine.next - 1) % DIBS__SERIES_STEPS].at_s,
        1050);
    for (uint64_t i = series.fine.first + 1; i < series.fine.next; i++)
        assert_true(series.fine.points[i].at_s >
                    series.fine.points[i - 1].at_s);
}

static void test_names(void **state)
{
    uint32_t set;

    (void)state;
    assert_true(dibs__series_names(NULL, &set) && set == UINT32_MAX);
    assert_true(dibs__series_names("", &set) && set == UINT32_MAX);
    assert_true(dibs__series_names("held", &set));
    assert_int_equal(set, 1u << DIBS__SERIES_HELD);
    assert_false(dibs__series_names("hel", &set));
    assert_false(dibs__series_names("held,heldx", &set));
    assert_false(dibs__series_names(",held", &set));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            test_gauges_are_the_highest_and_counts_the_sum, begin, end),
        cmocka_unit_test_setup_teardown(test_what_is_not_known_is_null, begin,
                                        end),
        cmocka_unit_test_setup_teardown(test_quantiles_of_waits, begin, end),
        cmocka_unit_test_setup_teardown(test_an_hour_and_a_day_are_kept, begin,
                                        end),
        cmocka_unit_test_setup_teardown(test_a_clock_that_is_set_back, begin,
                                        end),
        cmocka_unit_test_setup_teardown(test_names, begin, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
