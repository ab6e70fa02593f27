/* test_store_clock.c - the clock of a store between two answers. */
/* SPDX-License-Identifier: MIT */
#include "check.h"
#include "jobs/store_clock.h"

#define BEGIN_US INT64_C(1800000000000000)
#define AT       (100 * DIBSX_SEC)

static void test_it_counts_on_from_an_answer(void **unused)
{
    dibs__store_clock clock = {0};

    (void)unused;
    assert_int_equal(dibs__store_clock_us(&clock, AT), 0);
    dibs__store_clock_note(&clock, BEGIN_US, AT - DIBSX_MS, AT);
    assert_int_equal(dibs__store_clock_us(&clock, AT), BEGIN_US);
    assert_int_equal(dibs__store_clock_us(&clock, AT + 7 * DIBSX_MS),
                     BEGIN_US + 7000);
}

static void test_an_old_answer_says_nothing(void **unused)
{
    dibs__store_clock clock = {0};

    (void)unused;
    dibs__store_clock_note(&clock, BEGIN_US, AT, AT);
    assert_int_equal(dibs__store_clock_us(&clock, AT + DIBSX_SEC),
                     BEGIN_US + 1000000);
    assert_int_equal(dibs__store_clock_us(&clock, AT + DIBSX_SEC + 1), 0);
}

/* The store read its clock at any moment of the ten seconds. */
static void test_a_late_answer_is_not_noted(void **unused)
{
    dibs__store_clock clock = {0};

    (void)unused;
    dibs__store_clock_note(&clock, BEGIN_US, AT - 10 * DIBSX_SEC, AT);
    assert_int_equal(dibs__store_clock_us(&clock, AT), 0);
}

/* The second answer was longer under way back than the first. */
static void test_it_does_not_go_back_by_a_moment(void **unused)
{
    dibs__store_clock clock = {0};

    (void)unused;
    dibs__store_clock_note(&clock, BEGIN_US, AT, AT);
    assert_int_equal(dibs__store_clock_us(&clock, AT + 100 * DIBSX_MS),
                     BEGIN_US + 100000);
    dibs__store_clock_note(&clock, BEGIN_US + 20000, AT, AT + 100 * DIBSX_MS);
    assert_int_equal(dibs__store_clock_us(&clock, AT + 100 * DIBSX_MS),
                     BEGIN_US + 100000);
    assert_int_equal(dibs__store_clock_us(&clock, AT + 181 * DIBSX_MS),
                     BEGIN_US + 101000);
}

static void test_it_follows_a_clock_that_is_set(void **unused)
{
    const int64_t hour_us = INT64_C(3600000000);
    dibs__store_clock clock = {0};

    (void)unused;
    dibs__store_clock_note(&clock, BEGIN_US, AT, AT);
    assert_int_equal(dibs__store_clock_us(&clock, AT), BEGIN_US);
    dibs__store_clock_note(&clock, BEGIN_US - hour_us, AT, AT);
    assert_int_equal(dibs__store_clock_us(&clock, AT), BEGIN_US - hour_us);
    dibs__store_clock_note(&clock, BEGIN_US + hour_us, AT, AT);
    assert_int_equal(dibs__store_clock_us(&clock, AT), BEGIN_US + hour_us);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_it_counts_on_from_an_answer),
        cmocka_unit_test(test_an_old_answer_says_nothing),
        cmocka_unit_test(test_a_late_answer_is_not_noted),
        cmocka_unit_test(test_it_does_not_go_back_by_a_moment),
        cmocka_unit_test(test_it_follows_a_clock_that_is_set),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
