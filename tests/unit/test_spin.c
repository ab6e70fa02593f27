/* test_spin.c - whether to look again and again, or to sleep. */
/* SPDX-License-Identifier: MIT */
#include "base/spin.h"
#include "unit.h"

static void learn(dibsx_spin *sp, dibsx_nsec took, int times)
{
    for (int i = 0; i < times; i++)
        dibsx_spin_learn(sp, took);
}

static void quick_answers_are_looked_for(void **state)
{
    dibsx_spin sp;

    (void)state;
    dibsx_spin_init(&sp, 2);
    assert_int_equal(dibsx_spin_span(&sp), DIBSX_SPIN_MAX);
    learn(&sp, DIBSX_SPIN_MAX / 2, 1000);
    assert_int_equal(dibsx_spin_span(&sp), DIBSX_SPIN_MAX);
}

static void slow_answers_are_slept_for(void **state)
{
    dibsx_spin sp;

    (void)state;
    dibsx_spin_init(&sp, 2);
    learn(&sp, 2 * DIBSX_SPIN_MAX, 100);
    assert_int_equal(dibsx_spin_span(&sp), 0);
}

static void one_slow_answer_changes_nothing(void **state)
{
    dibsx_spin sp;

    (void)state;
    dibsx_spin_init(&sp, 2);
    learn(&sp, DIBSX_SPIN_MAX / 3, 100);
    learn(&sp, 3600 * DIBSX_SEC, 1);
    assert_int_equal(dibsx_spin_span(&sp), DIBSX_SPIN_MAX);
}

/* After a long stop, and however long it was. */
static void what_was_slow_may_become_quick(void **state)
{
    dibsx_spin sp;

    (void)state;
    dibsx_spin_init(&sp, 2);
    learn(&sp, 3600 * DIBSX_SEC, 1000);
    assert_int_equal(dibsx_spin_span(&sp), 0);
    learn(&sp, DIBSX_SPIN_MAX / 2, 20);
    assert_int_equal(dibsx_spin_span(&sp), DIBSX_SPIN_MAX);
}

/* Who is looked for could not even run. */
static void one_processor_is_left_to_others(void **state)
{
    dibsx_spin sp;

    (void)state;
    dibsx_spin_init(&sp, 1);
    assert_int_equal(dibsx_spin_span(&sp), 0);
    assert_true(dibsx_processors() >= 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quick_answers_are_looked_for),
        cmocka_unit_test(slow_answers_are_slept_for),
        cmocka_unit_test(one_slow_answer_changes_nothing),
        cmocka_unit_test(what_was_slow_may_become_quick),
        cmocka_unit_test(one_processor_is_left_to_others),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
