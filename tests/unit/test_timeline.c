/* test_timeline.c - which records the timeline of a board reads, and how many. */
/* SPDX-License-Identifier: MIT */
#include "base/alloc.h"
#include "serve/timeline.h"
#include "unit.h"

#include <stdio.h>

enum { MANY = 30000, READS = 100 };

static char ids_of_a[][3] = {"a1", "a2", "a3", "a4"},
            ids_of_b[][3] = {"b1", "b2"};
static dibs__board_run_id few[] = {{.id = ids_of_a[0], .at_us = 10},
                                   {.id = ids_of_a[1], .at_us = 20},
                                   {.id = ids_of_a[2], .at_us = 30},
                                   {.id = ids_of_a[3], .at_us = 40}};
static dibs__board_run_id more[] = {{.id = ids_of_b[0], .at_us = 25},
                                    {.id = ids_of_b[1], .at_us = 35}};
static dibs__board_row rows[] = {{.runs = few, .run_count = 4},
                                 {.run_count = 0},
                                 {.runs = more, .run_count = 2}};

/* The ids that a span of these rows reads, in order. */
static void expect_ids(int64_t from_us, int64_t to_us, size_t max,
                       const char *text, bool complete)
{
    const dibs__board_picture picture = {.rows = rows, .count = 3};
    dibs__timeline_ids ids;
    char got[64] = "";
    size_t len = 0;

    assert_true(dibs__timeline_pick(&picture, from_us, to_us, max, &ids));
    for (size_t i = 0; i < ids.count; i++)
        len += (size_t)snprintf(got + len, sizeof(got) - len, "%s%s",
                                i ? " " : "", ids.at[i]->id);
    assert_string_equal(got, text);
    assert_int_equal(ids.complete, complete);
    dibsx_free(ids.at);
}

static void test_runs_of_the_span_come_first(void **state)
{
    (void)state;
    expect_ids(0, 100, 10, "a4 b2 a3 b1 a2 a1", true);
    expect_ids(20, 30, 10, "a3 b1 a2 b2 a4", true);
    expect_ids(41, 50, 10, "", true);
    expect_ids(0, 5, 10, "a1 a2 b1 a3 b2 a4", true);
}

static void test_what_is_left_out_is_said(void **state)
{
    (void)state;
    expect_ids(20, 30, 5, "a3 b1 a2 b2 a4", true);
    expect_ids(20, 30, 4, "a3 b1 a2 b2", false);
    expect_ids(0, 100, 2, "a4 b2", false);
}

/* An old span of a job that has run often since then. */
static void test_reads_have_a_bound(void **state)
{
    dibs__board_run_id *runs = dibsx_zalloc_n(MANY, sizeof(*runs));
    dibs__board_row row = {.runs = runs, .run_count = MANY};
    const dibs__board_picture picture = {.rows = &row, .count = 1};
    dibs__timeline_ids ids;

    (void)state;
    assert_non_null(runs);
    for (size_t i = 0; i < MANY; i++)
        runs[i] = (dibs__board_run_id){.id = ids_of_a[0], .at_us = (int64_t)i};
    assert_true(dibs__timeline_pick(&picture, 10, 19, READS, &ids));
    assert_int_equal(ids.count, READS);
    assert_false(ids.complete);
    assert_int_equal(ids.at[0]->at_us, 19);
    assert_int_equal(ids.at[9]->at_us, 10);
    assert_int_equal(ids.at[READS - 1]->at_us, READS + 9);
    dibsx_free(ids.at);
    dibsx_free(runs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_runs_of_the_span_come_first),
        cmocka_unit_test(test_what_is_left_out_is_said),
        cmocka_unit_test(test_reads_have_a_bound),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
