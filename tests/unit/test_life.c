/* test_life.c - how often threads look at the store, how old a look may be, and when a
 * thread stands still. */
/* SPDX-License-Identifier: MIT */
#include "base/lag.h"
#include "serve/life.h"
#include "serve/vital.h"
#include "unit.h"

enum { EVERY_MS = 1000, SEC_US = 1000000 };

static void test_pause(void **state)
{
    (void)state;
    assert_int_equal(dibs__life_pause_ms(EVERY_MS, DIBS_OK, 0), EVERY_MS);
    assert_int_equal(dibs__life_pause_ms(EVERY_MS, DIBS_OK, 50 * 1000),
                     EVERY_MS);
    assert_int_equal(dibs__life_pause_ms(EVERY_MS, DIBS_OK, 51 * 1000), 1020);
    assert_int_equal(dibs__life_pause_ms(EVERY_MS, DIBS_OK, 5 * SEC_US),
                     100 * 1000);
    /* A store that did not answer for 5 s is asked again at once. */
    assert_int_equal(dibs__life_pause_ms(EVERY_MS, DIBS_UNAVAIL, 5 * SEC_US),
                     EVERY_MS);
}

static void test_pause_after_a_change(void **state)
{
    (void)state;
    assert_int_equal(dibs__life_soon_ms(EVERY_MS, DIBS_OK, 250 * 1000),
                     EVERY_MS);
    assert_int_equal(dibs__life_soon_ms(EVERY_MS, DIBS_OK, SEC_US), 4 * 1000);
    assert_int_equal(dibs__life_soon_ms(EVERY_MS, DIBS_UNAVAIL, 5 * SEC_US),
                     EVERY_MS);
}

static bool is_fresh(dibs_status rc, int64_t took_ms, int64_t age_ms)
{
    const dibsx_nsec seen_at = 1000 * DIBSX_SEC;

    return dibs__life_fresh(EVERY_MS, rc, took_ms * 1000, seen_at,
                            dibsx_after_ms(seen_at, age_ms));
}

static void test_fresh(void **state)
{
    (void)state;
    assert_true(is_fresh(DIBS_OK, 0, 0));
    assert_true(is_fresh(DIBS_OK, 0, 1499));
    assert_false(is_fresh(DIBS_OK, 0, 1500));
    /* The next look of a slow store comes late. */
    assert_true(is_fresh(DIBS_OK, 1000, 20 * 1000));
    assert_true(is_fresh(DIBS_OK, 1000, 30 * 1000));
    assert_false(is_fresh(DIBS_OK, 1000, 31 * 1000));
    /* Its failure is news when it comes, and is not for long. */
    assert_true(is_fresh(DIBS_UNAVAIL, 5000, 5000));
    assert_false(is_fresh(DIBS_UNAVAIL, 5000, 6500));
}

static void test_lag(void **state)
{
    dibsx_lag lag = {0};

    (void)state;
    assert_int_equal(dibsx_lag_ask(&lag, 5), 0);
    assert_int_equal(dibsx_lag_ask(&lag, 7), 2);
    /* The question that is open counts, not the latest. */
    assert_int_equal(dibsx_lag_ask(&lag, 9), 4);
    dibsx_lag_answer(&lag);
    assert_int_equal(dibsx_lag_ask(&lag, 20), 0);
}

static const char *stuck(int64_t loop_ms, int64_t look_ms, int64_t keeper_ms)
{
    const dibs__serve_vitals vitals = {loop_ms, look_ms, keeper_ms};
    const char *part = dibs__vital_stuck(&vitals, 5000);

    return part ? part : "none";
}

static void test_stuck(void **state)
{
    (void)state;
    assert_string_equal(stuck(0, 0, 0), "none");
    assert_string_equal(stuck(9999, 14999, 9999), "none");
    assert_string_equal(stuck(10000, 0, 0), "loop");
    assert_string_equal(stuck(0, 0, 10000), "keeper");
    /* One step of the store may be part of it. */
    assert_string_equal(stuck(0, 15000, 0), "look");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pause),
        cmocka_unit_test(test_pause_after_a_change),
        cmocka_unit_test(test_fresh),
        cmocka_unit_test(test_lag),
        cmocka_unit_test(test_stuck),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
