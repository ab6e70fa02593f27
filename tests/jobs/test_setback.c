/* test_setback.c - the clock of a store beside that of a node. */
/* SPDX-License-Identifier: MIT */
#include "check.h"
#include "jobs/setback.h"

#define US     INT64_C(1000000)
#define HOUR_S INT64_C(3600)

static const int64_t begin_us = 1800000000 * US;

/* So many seconds after the beginning the clock is off by so many. */
static dibs__clock_news look(dibs__setback *b, int64_t after_s, int64_t off_s)
{
    return dibs__setback_note(b, begin_us + (after_s + off_s) * US,
                              (100 + after_s) * DIBSX_SEC);
}

static void test_a_step_back_is_news_until_it_is_made_up(void **unused)
{
    dibs__setback b = {0};

    (void)unused;
    assert_int_equal(look(&b, 0, 0), DIBS__CLOCK_GOES);
    assert_int_equal(look(&b, 10, 0), DIBS__CLOCK_GOES);
    assert_int_equal(look(&b, 20, -HOUR_S), DIBS__CLOCK_BACK);
    assert_int_equal(dibs__setback_us(&b), HOUR_S * US);
    assert_int_equal(look(&b, 30, -HOUR_S), DIBS__CLOCK_GOES);
    assert_int_equal(dibs__setback_us(&b), (HOUR_S - 10) * US);
    assert_int_equal(look(&b, 19 + HOUR_S, -HOUR_S), DIBS__CLOCK_GOES);
    assert_int_equal(look(&b, 20 + HOUR_S, -HOUR_S), DIBS__CLOCK_AGAIN);
    assert_int_equal(dibs__setback_us(&b), 0);
    assert_int_equal(look(&b, 30 + HOUR_S, -HOUR_S), DIBS__CLOCK_GOES);
}

/* Somebody sets it right again; or back once more, by less. */
static void test_further_steps(void **unused)
{
    dibs__setback b = {0};

    (void)unused;
    (void)look(&b, 0, 0);
    assert_int_equal(look(&b, 10, -HOUR_S), DIBS__CLOCK_BACK);
    assert_int_equal(look(&b, 20, 0), DIBS__CLOCK_AGAIN);
    assert_int_equal(look(&b, 30, -HOUR_S), DIBS__CLOCK_BACK);
    assert_int_equal(look(&b, 40, -HOUR_S - 100), DIBS__CLOCK_BACK);
    assert_int_equal(dibs__setback_us(&b), (HOUR_S + 90) * US);
}

/* The clock has gone on meanwhile, and shows more than at the last look. */
static void test_a_step_during_an_outage(void **unused)
{
    dibs__setback b = {0};

    (void)unused;
    (void)look(&b, 0, 0);
    assert_int_equal(look(&b, 2 * HOUR_S, -HOUR_S), DIBS__CLOCK_BACK);
    assert_int_equal(dibs__setback_us(&b), HOUR_S * US);
}

/* Small steps, steps forward, and a node that slept or could not ask for long. */
static void test_other_clocks_are_no_news(void **unused)
{
    dibs__setback b = {0};

    (void)unused;
    (void)look(&b, 0, 0);
    assert_int_equal(look(&b, 10, -DIBS__SETBACK_S), DIBS__CLOCK_GOES);
    assert_int_equal(look(&b, 20, HOUR_S), DIBS__CLOCK_GOES);
    assert_int_equal(look(&b, 100 * HOUR_S, HOUR_S), DIBS__CLOCK_GOES);
    assert_int_equal(dibs__setback_us(&b), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_step_back_is_news_until_it_is_made_up),
        cmocka_unit_test(test_further_steps),
        cmocka_unit_test(test_a_step_during_an_outage),
        cmocka_unit_test(test_other_clocks_are_no_news),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
