/* test_rate.c - the rule of rate limits: exact over hours, whatever clock and
 * parameters do. */
/* SPDX-License-Identifier: MIT */
#include "check.h"
#include "store/rate.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define SEC_US INT64_C(1000000)
#define START  (INT64_C(1700000000) * SEC_US)

static dibs__draw make_draw(int64_t count, int64_t period_us, int64_t burst)
{
    dibs__draw out, draw = {.name = "x",
                            .cost = 1,
                            .least = 1,
                            .count = count,
                            .period_us = period_us,
                            .burst = burst};

    assert_int_equal(dibs__rate_check(&draw, &out, NULL), DIBS_OK);
    return out;
}

/* As a store does: what the rule does not change is not written. */
static dibs__drawn
draw_from(dibs__rate *rate, const dibs__draw *draw, int64_t now_us)
{
    dibs__rate found = *rate;
    dibs__drawn got;

    if (dibs__rate_draw(&found, draw, now_us, &got))
        *rate = found;
    return got;
}

static bool take(dibs__rate *rate, const dibs__draw *draw, int64_t now_us)
{
    return draw_from(rate, draw, now_us).granted > 0;
}

/* Draws at each moment that a refusal names, for ten hours. */
static void rate_does_not_drift_in_hours(void **state)
{
    static const int64_t counts[] = {7, 97, 333};
    const int64_t span_us = 36000 * SEC_US;

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        dibs__draw draw = make_draw(counts[i], 10 * SEC_US, 2);
        dibs__rate rate = {0};
        int64_t now_us = START, total = 0;

        while (now_us < START + span_us) {
            dibs__drawn got;

            got = draw_from(&rate, &draw, now_us);
            total += got.granted;
            now_us += got.wait_us;
        }
        assert_in_range(total, counts[i] * 3600, counts[i] * 3600 + 2);
    }
}

/* One that waits where it must, so that no moment is rounded. */
static void reservations_do_not_drift(void **state)
{
    dibs__draw draw = make_draw(7, SEC_US, 1);
    dibs__rate rate = {0};
    dibs__drawn got = {0};

    (void)state;
    draw.wait_us = 36000 * SEC_US;
    for (int i = 0; i <= 7 * 36000; i++)
        assert_true(dibs__rate_draw(&rate, &draw, START, &got));
    assert_int_equal(got.wait_us, 36000 * SEC_US);
    assert_false(dibs__rate_draw(&rate, &draw, START, &got));
}

static void a_clock_set_back_blocks_nobody(void **state)
{
    dibs__draw draw = make_draw(1, SEC_US, 3);
    dibs__rate rate = {0};
    dibs__drawn got;

    (void)state;
    for (int i = 0; i < 3; i++)
        assert_true(take(&rate, &draw, START));
    got = draw_from(&rate, &draw, START - 3600 * SEC_US);
    assert_int_equal(got.granted, 0);
    assert_int_equal(got.wait_us, SEC_US);
    assert_true(take(&rate, &draw, START - 3599 * SEC_US));
    assert_false(take(&rate, &draw, START - 3599 * SEC_US));
}

static void a_clock_set_forward_is_worth_a_burst(void **state)
{
    dibs__draw draw = make_draw(1, SEC_US, 3);
    dibs__rate rate = {0};
    int total = 0;

    (void)state;
    for (int i = 0; i < 9; i++)
        total += take(&rate, &draw, START);
    for (int i = 0; i < 9; i++)
        total += take(&rate, &draw, START + 3600 * SEC_US);
    assert_int_equal(total, 6);
}

/* A command that was on its way for long finds the tokens of the time at which it is
 * done: it has no time of its own. */
static void late_command_refills_nothing(void **state)
{
    dibs__draw draw = make_draw(1, SEC_US, 2);
    dibs__rate rate = {0};
    dibs__drawn got;

    (void)state;
    assert_true(dibs__rate_draw(&rate, &draw, START, &got));
    assert_true(dibs__rate_draw(&rate, &draw, START, &got));
    assert_int_equal(got.remaining, 0);
    assert_false(dibs__rate_draw(&rate, &draw, START + SEC_US - 1, &got));
    assert_int_equal(got.wait_us, 1);
    assert_true(dibs__rate_draw(&rate, &draw, START + SEC_US, &got));
}

static void a_changed_rate_keeps_what_is_out(void **state)
{
    dibs__draw slow = make_draw(1, 86400 * SEC_US, 10);
    dibs__draw fast = make_draw(100, SEC_US, 20);
    dibs__rate rate = {0};
    dibs__drawn got;

    (void)state;
    slow.cost = slow.least = 10;
    assert_true(dibs__rate_draw(&rate, &slow, START, &got));
    assert_true(dibs__rate_draw(&rate, &fast, START, &got));
    assert_int_equal(got.remaining, 9);
    slow.cost = slow.least = 1;
    assert_false(dibs__rate_draw(&rate, &slow, START, &got));
    assert_int_equal(got.wait_us, 2 * 86400 * SEC_US);
}

/* The largest numbers that pass the check overflow nowhere. */
static void the_largest_limits_can_be_counted(void **state)
{
    dibs__draw draw = make_draw(999983, SEC_US, DIBS__RATE_MAX / SEC_US);
    dibs__rate rate = {0};
    dibs__drawn got;
    dibs__draw out;

    (void)state;
    draw.cost = draw.burst;
    draw.wait_us = INT64_MAX;
    assert_int_equal(dibs__rate_check(&draw, &out, NULL), DIBS_OK);
    assert_true(dibs__rate_draw(&rate, &out, START, &got));
    assert_int_equal(got.granted, draw.burst);
    assert_int_equal(got.wait_us, 0);
    out.cost = out.least = 1;
    out.wait_us = 0;
    assert_false(dibs__rate_draw(&rate, &out, START, &got));
    assert_int_equal(got.wait_us, 2); /* 1.000017, rounded up */
}

/* A token is out until the whole of it has come back. */
static void a_list_rounds_up(void **state)
{
    dibs__draw draw = make_draw(3, 10, 3); /* 3.3 us a token */
    dibs__rate rate = {0};
    dibs__rate_row row;
    dibs__drawn got;

    (void)state;
    assert_false(dibs__rate_show(&rate, START, &row));
    draw.cost = draw.least = 2;
    assert_true(dibs__rate_draw(&rate, &draw, START, &got));
    assert_true(dibs__rate_show(&rate, START, &row));
    assert_int_equal(row.out, 2);
    assert_int_equal(row.full_us, 7);
    assert_true(dibs__rate_show(&rate, START + 3, &row));
    assert_int_equal(row.out, 2);
    assert_true(dibs__rate_show(&rate, START + 4, &row));
    assert_int_equal(row.out, 1);
    assert_false(dibs__rate_show(&rate, START + 7, &row));
    /* The clock was set back: it comes back as soon as it would have. */
    assert_true(dibs__rate_show(&rate, START - SEC_US, &row));
    assert_int_equal(row.full_us, 7);
    rate.rest = rate.count;
    assert_false(dibs__rate_show(&rate, START, &row));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rate_does_not_drift_in_hours),
        cmocka_unit_test(reservations_do_not_drift),
        cmocka_unit_test(a_clock_set_back_blocks_nobody),
        cmocka_unit_test(a_clock_set_forward_is_worth_a_burst),
        cmocka_unit_test(late_command_refills_nothing),
        cmocka_unit_test(a_changed_rate_keeps_what_is_out),
        cmocka_unit_test(the_largest_limits_can_be_counted),
        cmocka_unit_test(a_list_rounds_up),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
