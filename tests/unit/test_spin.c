/* test_spin.c - whether to look again and again, or to sleep. */
/* SPDX-License-Identifier: MIT */
#include "base/spin.h"
#include "unit.h"

/* Waits that take so long, by the way that is chosen; how often it was to look. */
static int
wait_often(dibsx_spin *sp, dibsx_nsec looking, dibsx_nsec sleeping, int times)
{
    int looked = 0;

    for (int i = 0; i < times; i++) {
        bool looks = dibsx_spin_begin(sp);

        looked += looks;
        dibsx_spin_end(sp, looks, looks ? looking : sleeping);
    }
    return looked;
}

enum { MANY = 100 * DIBSX_SPIN_PROBE, PROBES = 100 };

/* And what is not known is tried at once. */
static void what_is_quicker_is_done(void **state)
{
    dibsx_spin sp;

    (void)state;
    dibsx_spin_init(&sp, 2);
    assert_in_range(wait_often(&sp, 20000, 30000, MANY),
                    MANY - PROBES - DIBSX_SPIN_PROBE, MANY);
    dibsx_spin_init(&sp, 2);
    assert_in_range(wait_often(&sp, 60000, 15000, MANY), PROBES, PROBES + 1);
}

/* It costs a processor. */
static void a_small_gain_is_none(void **state)
{
    dibsx_spin sp;

    (void)state;
    dibsx_spin_init(&sp, 2);
    assert_in_range(wait_often(&sp, 190000, 200000, MANY), PROBES, PROBES + 1);
}

/* As another may have left the machine, or come. */
static void what_changes_is_noticed(void **state)
{
    dibsx_spin sp;

    (void)state;
    dibsx_spin_init(&sp, 2);
    (void)wait_often(&sp, 60000, 15000, MANY);
    (void)wait_often(&sp, 20000, 30000, MANY);
    assert_int_equal(wait_often(&sp, 20000, 30000, MANY), MANY - PROBES);
    (void)wait_often(&sp, 60000, 15000, MANY);
    assert_int_equal(wait_often(&sp, 60000, 15000, MANY), PROBES);
}

static void a_long_stop_is_forgotten(void **state)
{
    dibsx_spin sp;

    (void)state;
    dibsx_spin_init(&sp, 2);
    (void)wait_often(&sp, 20000, 30000, MANY);
    dibsx_spin_end(&sp, true, 3600 * DIBSX_SEC);
    (void)wait_often(&sp, 20000, 30000, 10 * DIBSX_SPIN_PROBE);
    assert_int_equal(wait_often(&sp, 20000, 30000, MANY), MANY - PROBES);
}

/* Who is looked for could not even run. */
static void one_processor_is_left_to_others(void **state)
{
    dibsx_spin sp;

    (void)state;
    dibsx_spin_init(&sp, 1);
    assert_int_equal(wait_often(&sp, 1, 100, MANY), 0);
    assert_true(dibsx_processors() >= 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_quicker_is_done),
        cmocka_unit_test(a_small_gain_is_none),
        cmocka_unit_test(what_changes_is_noticed),
        cmocka_unit_test(a_long_stop_is_forgotten),
        cmocka_unit_test(one_processor_is_left_to_others),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
