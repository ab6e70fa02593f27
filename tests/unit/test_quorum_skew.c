/* test_quorum_skew.c - which clocks of nodes are relied on. */
/* SPDX-License-Identifier: MIT */
#include "unit.h"

#include "store/quorum/skew.h"

enum { NODES = 5, BAN_MS = 60000 };

/* The true wall clock when the boot clock is at 0. */
#define WALL_US INT64_C(1790000000000000)

typedef struct world {
    dibs__skew sk;
    dibsx_nsec now;
} world;

/* The node answers after `took_ms`, half way; its clock is ahead by so much. */
static int64_t hear(world *w, size_t node, int64_t ahead_ms, int64_t took_ms)
{
    dibsx_nsec sent_at = w->now;
    int64_t wall_us =
        WALL_US + ahead_ms * 1000 + (w->now + took_ms * DIBSX_MS / 2) / 1000;

    w->now += took_ms * DIBSX_MS;
    return dibs__skew_seen(&w->sk, node, wall_us, sent_at, w->now, BAN_MS);
}

static world meet_all(void)
{
    world w = {.sk = {.count = NODES}, .now = 1000 * DIBSX_SEC};

    for (size_t i = 0; i < NODES; i++)
        assert_int_equal(hear(&w, i, 0, 1), 0);
    return w;
}

static void nodes_that_agree_are_trusted(void **state)
{
    world w = meet_all();

    (void)state;
    for (size_t i = 0; i < NODES; i++)
        assert_true(dibs__skew_trusts(&w.sk, i, w.now));
    assert_in_range(dibs__skew_wall_us(&w.sk, w.now),
                    WALL_US + w.now / 1000 - 2000,
                    WALL_US + w.now / 1000 + 2000);
}

static void a_node_not_heard_of_is_not(void **state)
{
    world w = {.sk = {.count = NODES}};

    (void)state;
    assert_false(dibs__skew_trusts(&w.sk, 0, 0));
    assert_int_equal(dibs__skew_wall_us(&w.sk, 0), 0);
}

static void a_jump_either_way_bans_for_a_while(void **state)
{
    static const int64_t jumps_ms[] = {60000, 700, -700, -3600000};

    (void)state;
    for (size_t k = 0; k < COUNT_OF(jumps_ms); k++) {
        world w = meet_all();
        int64_t seen_ms = hear(&w, 2, jumps_ms[k], 1);

        assert_in_range(seen_ms - jumps_ms[k] + 10, 0, 20);
        assert_false(dibs__skew_trusts(&w.sk, 2, w.now));
        assert_true(dibs__skew_trusts(&w.sk, 1, w.now));
        (void)hear(&w, 2, 0, 1); /* set right again, which is a jump too */
        w.now += (BAN_MS - 1) * DIBSX_MS;
        assert_false(dibs__skew_trusts(&w.sk, 2, w.now));
        w.now += 2 * DIBSX_MS;
        assert_true(dibs__skew_trusts(&w.sk, 2, w.now));
    }
}

/* Who comes later has not seen the jump, but sees that the clock is wrong. */
static void a_clock_far_from_the_others_is_not_trusted(void **state)
{
    world w = {.sk = {.count = NODES}, .now = 1000 * DIBSX_SEC};

    (void)state;
    for (size_t i = 0; i < NODES; i++)
        assert_int_equal(hear(&w, i, i == 3 ? 5000 : 0, 1), 0);
    assert_false(dibs__skew_trusts(&w.sk, 3, w.now));
    assert_in_range(dibs__skew_off_ms(&w.sk, 3), 4990, 5010);
    assert_true(dibs__skew_trusts(&w.sk, 4, w.now));
    assert_in_range(dibs__skew_wall_us(&w.sk, w.now),
                    WALL_US + w.now / 1000 - 2000,
                    WALL_US + w.now / 1000 + 2000);
}

/* An answer that took long says less of the clock, and that is no jump. */
static void a_slow_answer_is_no_jump(void **state)
{
    world w = meet_all();

    (void)state;
    assert_int_equal(hear(&w, 0, -2000, 5000), 0);
    assert_true(dibs__skew_trusts(&w.sk, 0, w.now));
    assert_int_equal(hear(&w, 0, 0, 1), 0);
    assert_true(dibs__skew_trusts(&w.sk, 0, w.now));
}

static void a_clock_that_is_slewed_is_no_jump(void **state)
{
    world w = meet_all();
    int64_t ahead_ms = 0;

    (void)state;
    for (int i = 0; i < 100; i++) {
        w.now += 10 * DIBSX_SEC;
        ahead_ms += 5; /* 500 parts of a million */
        for (size_t k = 0; k < NODES; k++)
            assert_int_equal(hear(&w, k, k == 0 ? ahead_ms : 0, 1), 0);
    }
    assert_true(dibs__skew_trusts(&w.sk, 0, w.now));
    assert_in_range(dibs__skew_off_ms(&w.sk, 0), 495, 505);
}

/* With two clocks there is no telling which is right: neither votes. */
static void two_clocks_apart_are_both_doubted(void **state)
{
    world w = {.sk = {.count = 3}, .now = 1000 * DIBSX_SEC};

    (void)state;
    (void)hear(&w, 0, 0, 1);
    (void)hear(&w, 1, 60000, 1);
    assert_false(dibs__skew_trusts(&w.sk, 0, w.now));
    assert_false(dibs__skew_trusts(&w.sk, 1, w.now));
    (void)hear(&w, 2, 0, 1);
    assert_true(dibs__skew_trusts(&w.sk, 0, w.now));
    assert_false(dibs__skew_trusts(&w.sk, 1, w.now));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nodes_that_agree_are_trusted),
        cmocka_unit_test(a_node_not_heard_of_is_not),
        cmocka_unit_test(a_jump_either_way_bans_for_a_while),
        cmocka_unit_test(a_clock_far_from_the_others_is_not_trusted),
        cmocka_unit_test(a_slow_answer_is_no_jump),
        cmocka_unit_test(a_clock_that_is_slewed_is_no_jump),
        cmocka_unit_test(two_clocks_apart_are_both_doubted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
