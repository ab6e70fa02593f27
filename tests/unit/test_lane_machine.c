/* test_lane_machine.c - a consumer and a producer of a queue, without a store. */
/* SPDX-License-Identifier: MIT */
#include "unit.h"

#include "coord/producer_machine.h"

enum { TTL_MS = 10000 };

static dibsx_nsec at_ms(int64_t ms)
{
    return dibsx_after_ms(DIBSX_SEC, ms);
}

static dibs__lane_ask ask(dibs__consumer *c, int64_t ms)
{
    dibs__lane_ask out;

    dibs__consumer_ask(c, true, at_ms(ms), &out);
    dibs__consumer_check(c);
    return out;
}

static dibs__asked
answer(dibs__consumer *c, int64_t sent_ms, int64_t ms, dibs_status rc)
{
    dibs__asked asked =
        dibs__consumer_answered(c, at_ms(sent_ms), at_ms(ms), rc, 77);

    dibs__consumer_check(c);
    return asked;
}

static dibs__consumer opened(void)
{
    dibs__consumer c;
    dibs__lane_ask first;

    dibs__consumer_init(&c, TTL_MS);
    dibs__consumer_open(&c, 5);
    first = ask(&c, 0);
    assert_true(first.opens && first.number == 1 && first.seen == 0);
    assert_int_equal(answer(&c, 0, 1, DIBS_OK), DIBS__ASKED_DONE);
    return c;
}

static bool
take(dibs__consumer *c, dibs__lane_item *item, uint64_t id, uint64_t fence)
{
    dibs__lane_item *older;

    *item = (dibs__lane_item){.token = {.id = id, .fence = fence}};
    return dibs__consumer_take(c, item, at_ms(2), &older);
}

/* With one item in hand, taken at 2 ms. */
static dibs__consumer holding(dibs__lane_item *item)
{
    dibs__consumer c = opened();
    dibs__lane_ask second = ask(&c, 2);

    assert_true(!second.opens && second.number == 2 && second.seen == 77);
    assert_int_equal(second.span_ms, DIBS__LANE_PLACE_MS);
    assert_int_equal(answer(&c, 2, 3, DIBS_OK), DIBS__ASKED_DONE);
    assert_true(take(&c, item, 1, 10));
    return c;
}

/* What a look without a place finds has the whole ttl. */
static void a_look_without_a_place_keeps_the_ttl(void **state)
{
    dibs__consumer c = opened();
    dibs__lane_item item;
    dibs__lane_ask look;

    (void)state;
    dibs__consumer_ask(&c, false, at_ms(2), &look);
    assert_int_equal(look.span_ms, TTL_MS);
    assert_int_equal(answer(&c, 2, 3, DIBS_OK), DIBS__ASKED_DONE);
    assert_true(take(&c, &item, 1, 10));
    assert_true(dibs__consumer_believes(&c, &item, at_ms(9800)));
}

static void validity_counts_from_before_the_send(void **state)
{
    dibs__lane_item item;
    dibs__consumer c = holding(&item);

    (void)state;
    assert_true(dibs__consumer_believes(&c, &item, at_ms(2900)));
    assert_false(
        dibs__consumer_believes(&c, &item, at_ms(2 + DIBS__LANE_PLACE_MS)));
    assert_int_equal(ask(&c, 1000).span_ms, TTL_MS);
    assert_int_equal(answer(&c, 1000, 2500, DIBS_OK), DIBS__ASKED_DONE);
    assert_true(dibs__consumer_believes(&c, &item, at_ms(10800)));
    assert_false(dibs__consumer_believes(&c, &item, at_ms(11000)));
    /* Too late: what it answers is not believed, and the lane is over. */
    (void)ask(&c, 10000);
    assert_int_equal(answer(&c, 10000, 11000, DIBS_OK), DIBS__ASKED_DONE);
    assert_int_equal(c.state, DIBS__LANE_ENDED);
    assert_false(take(&c, &item, 2, 11));
}

static void belief_ends_before_the_settlement(void **state)
{
    dibs__lane_item item;
    dibs__consumer c = holding(&item);

    (void)state;
    (void)ask(&c, 100);
    dibs__consumer_settle(&c, &item);
    assert_false(dibs__consumer_believes(&c, &item, at_ms(100)));
    /* It cannot have left: as before, with the same number. */
    assert_int_equal(answer(&c, 100, 101, DIBS_UNAVAIL), DIBS__ASKED_NOT);
    assert_true(dibs__consumer_believes(&c, &item, at_ms(101)));
    assert_int_equal(ask(&c, 102).number, 3);
    dibs__consumer_settle(&c, &item);
    assert_int_equal(answer(&c, 102, 103, DIBS_UNKNOWN), DIBS__ASKED_AGAIN);
    assert_int_equal(answer(&c, 104, 105, DIBS_UNAVAIL), DIBS__ASKED_AGAIN);
    assert_false(dibs__consumer_believes(&c, &item, at_ms(105)));
    assert_int_equal(answer(&c, 106, 107, DIBS_OK), DIBS__ASKED_DONE);
    assert_int_equal(c.count, 0);
}

static void lost_means_unknown_after_a_repeat(void **state)
{
    dibs__lane_item item;
    dibs__consumer c = holding(&item);

    (void)state;
    (void)ask(&c, 100);
    assert_int_equal(answer(&c, 100, 101, DIBS_LOST), DIBS__ASKED_LOST);
    assert_false(dibs__consumer_believes(&c, &item, at_ms(101)));
    c = holding(&item);
    (void)ask(&c, 100);
    assert_int_equal(answer(&c, 100, 101, DIBS_NOMEM), DIBS__ASKED_AGAIN);
    assert_int_equal(answer(&c, 102, 103, DIBS_LOST), DIBS__ASKED_UNSURE);
    c = holding(&item);
    (void)ask(&c, 100);
    assert_int_equal(answer(&c, 100, 5000, DIBS_UNKNOWN), DIBS__ASKED_UNSURE);
}

static void of_an_item_the_later_fence_counts(void **state)
{
    dibs__lane_item item, again, older_one;
    dibs__lane_item *older;
    dibs__consumer c = holding(&item);

    (void)state;
    assert_false(take(&c, &again, 1, 10));
    assert_false(take(&c, &older_one, 1, 9));
    again = (dibs__lane_item){.token = {.id = 1, .fence = 12}};
    assert_true(dibs__consumer_take(&c, &again, at_ms(5), &older));
    assert_ptr_equal(older, &item);
    assert_int_equal(c.count, 1);
    dibs__consumer_check(&c);
}

static void a_ring_counts_above_the_highest_fence(void **state)
{
    dibs__lane_item item, rung;
    dibs__lane_item *older;
    dibs__consumer c = holding(&item);
    dibs__token heard[4];

    (void)state;
    rung = (dibs__lane_item){.token = {.id = 2, .fence = 10}};
    assert_false(dibs__consumer_rung(&c, &rung, at_ms(5), &older));
    rung.token.fence = 11;
    assert_false(dibs__consumer_rung(&c, &rung, at_ms(4000), &older));
    assert_true(dibs__consumer_rung(&c, &rung, at_ms(5), &older));
    (void)ask(&c, 10);
    assert_int_equal(dibs__consumer_heard(&c, heard, 4), 1);
    assert_int_equal(heard[0].fence, 11);
    assert_int_equal(dibs__consumer_heard(&c, heard, 4), 0);
}

static void an_old_tend_counts_no_more(void **state)
{
    dibs__lane_item item;
    dibs__consumer c = holding(&item);
    dibsx_nsec before;

    (void)state;
    assert_int_equal(dibs__consumer_tend_at(&c),
                     c.valid_until - 2000 * DIBSX_MS);
    dibs__consumer_tended(&c, at_ms(100), at_ms(200), DIBS_OK);
    assert_true(dibs__consumer_believes(&c, &item, at_ms(9900)));
    assert_int_equal(dibs__consumer_tend_at(&c), at_ms(100 + TTL_MS / 3));
    dibs__consumer_drop(&c, &item);
    assert_int_equal(dibs__consumer_tend_at(&c), DIBSX_NEVER);
    /* A number with an empty hand may shorten the lane. */
    (void)ask(&c, 1000);
    before = c.valid_until;
    assert_true(before <= at_ms(1000 + DIBS__LANE_PLACE_MS));
    dibs__consumer_tended(&c, at_ms(900), at_ms(1001), DIBS_OK);
    assert_int_equal(c.valid_until, before);
    assert_int_equal(answer(&c, 1000, 1010, DIBS_OK), DIBS__ASKED_DONE);
    dibs__consumer_tended(&c, at_ms(1005), at_ms(1020), DIBS_OK);
    assert_int_equal(c.valid_until, before);
    dibs__consumer_tended(&c, at_ms(1011), at_ms(1020), DIBS_OK);
    assert_true(c.valid_until > before);
    dibs__consumer_tended(&c, at_ms(1030), at_ms(1040), DIBS_LOST);
    assert_int_equal(c.state, DIBS__LANE_ENDED);
}

static void a_push_is_sent_again_within_its_time(void **state)
{
    dibs__producer p = {.lane = 0};

    (void)state;
    assert_true(dibs__producer_needs_lane(&p, at_ms(0)));
    dibs__producer_open(&p, 9);
    assert_false(dibs__producer_needs_lane(&p, at_ms(90000)));
    assert_int_equal(dibs__producer_ask(&p, at_ms(0)), 1);
    assert_int_equal(dibs__producer_answered(&p, at_ms(1), DIBS_UNAVAIL),
                     DIBS__ASKED_NOT);
    assert_int_equal(dibs__producer_ask(&p, at_ms(2)), 1);
    assert_int_equal(dibs__producer_answered(&p, at_ms(3), DIBS_UNKNOWN),
                     DIBS__ASKED_AGAIN);
    assert_int_equal(dibs__producer_answered(&p, at_ms(4), DIBS_UNAVAIL),
                     DIBS__ASKED_AGAIN);
    assert_int_equal(dibs__producer_answered(&p, at_ms(5), DIBS_FULL),
                     DIBS__ASKED_DONE);
    assert_int_equal(dibs__producer_ask(&p, at_ms(6)), 2);
    assert_int_equal(dibs__producer_answered(&p, at_ms(7), DIBS_UNKNOWN),
                     DIBS__ASKED_AGAIN);
    assert_int_equal(dibs__producer_answered(&p, at_ms(6 + DIBS__PUSH_AGAIN_MS),
                                             DIBS_UNKNOWN),
                     DIBS__ASKED_UNSURE);
    assert_true(dibs__producer_needs_lane(&p, at_ms(8)));
}

/* The store forgets a lane that is not used. */
static void a_producer_that_rests_draws_another_lane(void **state)
{
    dibs__producer p = {.lane = 0};

    (void)state;
    dibs__producer_open(&p, 9);
    (void)dibs__producer_ask(&p, at_ms(0));
    assert_int_equal(dibs__producer_answered(&p, at_ms(1), DIBS_OK),
                     DIBS__ASKED_DONE);
    assert_false(dibs__producer_needs_lane(&p, at_ms(1000)));
    assert_true(dibs__producer_needs_lane(&p, at_ms(DIBS__PUSH_AGAIN_MS)));
    (void)dibs__producer_ask(&p, at_ms(1000));
    assert_int_equal(dibs__producer_answered(&p, at_ms(1001), DIBS_LOST),
                     DIBS__ASKED_LOST);
    dibs__producer_open(&p, 10);
    (void)dibs__producer_ask(&p, at_ms(0));
    (void)dibs__producer_answered(&p, at_ms(1), DIBS_UNKNOWN);
    assert_int_equal(dibs__producer_answered(&p, at_ms(2), DIBS_LOST),
                     DIBS__ASKED_UNSURE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_look_without_a_place_keeps_the_ttl),
        cmocka_unit_test(validity_counts_from_before_the_send),
        cmocka_unit_test(belief_ends_before_the_settlement),
        cmocka_unit_test(lost_means_unknown_after_a_repeat),
        cmocka_unit_test(of_an_item_the_later_fence_counts),
        cmocka_unit_test(a_ring_counts_above_the_highest_fence),
        cmocka_unit_test(an_old_tend_counts_no_more),
        cmocka_unit_test(a_push_is_sent_again_within_its_time),
        cmocka_unit_test(a_producer_that_rests_draws_another_lane),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
