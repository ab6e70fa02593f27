/* test_life.c - how often threads look at the store, and how old a look may be. */
/* SPDX-License-Identifier: MIT */
#include "serve/life.h"
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pause),
        cmocka_unit_test(test_pause_after_a_change),
        cmocka_unit_test(test_fresh),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
