/* contract_permit.c - permits: never more than the capacity, none lost, in
 * order of arrival. */
/* SPDX-License-Identifier: MIT */
#include "contract.h"

static void permits_never_exceed_the_capacity(void **state)
{
    actor two = contract_permits(*state, 0, 2, 4);
    actor one = contract_permits(*state, 1, 1, 4);
    actor more = contract_permits(*state, 2, 2, 4);
    actor last = contract_permits(*state, 0, 1, 4);

    assert_status(actor_try(&two), DIBS_OK);
    assert_status(actor_try(&one), DIBS_OK);
    assert_status(actor_try(&more), DIBS_BUSY);
    assert_status(actor_try(&last), DIBS_OK);
    assert_status(actor_try(&more), DIBS_BUSY);
    assert_status(actor_release(&one), DIBS_OK);
    assert_status(actor_try(&more), DIBS_BUSY);
    assert_status(actor_release(&last), DIBS_OK);
    assert_status(actor_try(&more), DIBS_OK);
    assert_status(actor_try(&one), DIBS_BUSY);
}

static void a_repeated_ask_takes_no_further_permit(void **state)
{
    actor one = contract_permits(*state, 0, 1, 2);
    actor two = contract_permits(*state, 1, 1, 2);
    uint64_t fence;

    assert_status(actor_try(&one), DIBS_OK);
    fence = one.ans.fence;
    for (int i = 0; i < 3; i++)
        assert_status(actor_try(&one), DIBS_OK);
    assert_int_equal(one.ans.fence, fence);
    assert_status(actor_try(&two), DIBS_OK);
}

static void a_large_request_is_not_starved_by_small_ones(void **state)
{
    actor holder = contract_permits(*state, 0, 3, 4);
    actor large = contract_permits(*state, 1, 4, 4);
    actor small = contract_permits(*state, 2, 1, 4);
    actor barging = contract_permits(*state, 2, 1, 4);

    assert_status(actor_try(&holder), DIBS_OK);
    assert_status(actor_queue(&large), DIBS_BUSY);
    assert_status(actor_queue(&small), DIBS_BUSY);
    assert_int_equal(small.ans.ahead, 1);
    barging.ask.flags = DIBS__ASK_BARGE;
    assert_status(actor_try(&barging), DIBS_OK);
    assert_status(actor_release(&barging), DIBS_OK);
    assert_status(actor_queue(&small), DIBS_BUSY);
    assert_status(actor_release(&holder), DIBS_OK);
    actor_expect_claim(&large);
    assert_status(actor_release(&large), DIBS_OK);
    actor_expect_claim(&small);
}

static void freed_permits_serve_all_that_fit(void **state)
{
    actor holder = contract_permits(*state, 0, 3, 3);
    actor one = contract_permits(*state, 1, 1, 3);
    actor two = contract_permits(*state, 2, 2, 3);
    actor three = contract_permits(*state, 0, 1, 3);

    assert_status(actor_try(&holder), DIBS_OK);
    assert_status(actor_queue(&one), DIBS_BUSY);
    assert_status(actor_queue(&two), DIBS_BUSY);
    assert_status(actor_queue(&three), DIBS_BUSY);
    assert_status(actor_release(&holder), DIBS_OK);
    actor_expect_claim(&one);
    actor_expect_claim(&two);
    assert_status(actor_queue(&three), DIBS_BUSY);
    assert_int_equal(three.ans.ahead, 0);
    assert_status(actor_release(&one), DIBS_OK);
    actor_expect_claim(&three);
}

/* However large: what does not fit holds back what is behind it. */
static void permits_are_served_in_order_of_arrival(void **state)
{
    actor holder = contract_permits(*state, 0, 4, 4);
    actor three = contract_permits(*state, 1, 3, 4);
    actor two = contract_permits(*state, 2, 2, 4);
    actor one = contract_permits(*state, 0, 1, 4);

    assert_status(actor_try(&holder), DIBS_OK);
    assert_status(actor_queue(&three), DIBS_BUSY);
    assert_status(actor_queue(&two), DIBS_BUSY);
    assert_status(actor_queue(&one), DIBS_BUSY);
    assert_status(actor_release(&holder), DIBS_OK);
    actor_expect_claim(&three);
    assert_status(actor_queue(&two), DIBS_BUSY);
    assert_int_equal(two.ans.ahead, 0);
    assert_status(actor_queue(&one), DIBS_BUSY);
    assert_int_equal(one.ans.ahead, 1);
    assert_status(actor_try(&holder), DIBS_BUSY);
    assert_status(actor_release(&three), DIBS_OK);
    actor_expect_claim(&two);
    actor_expect_claim(&one);
    assert_true(one.ans.fence > two.ans.fence);
}

/* Redisson #4086, #4091: giving back a permit whose lease was over made one more
 * than there were. */
static void the_release_of_an_expired_permit_frees_nothing(void **state)
{
    contract *t = *state;
    actor dead = contract_permits(t, 0, 1, 2);
    actor other = contract_permits(t, 1, 1, 2);
    actor heir = contract_permits(t, 2, 1, 2);
    actor more = contract_permits(t, 2, 1, 2);
    contract_view view;

    dead.ask.ttl_ms = contract_brief_ms(250);
    assert_status(actor_try(&dead), DIBS_OK);
    assert_status(actor_try(&other), DIBS_OK);
    IN_TIME(actor_try(&heir) == DIBS_BUSY);
    contract_await(t, t->name, 1, &view);
    assert_status(actor_release(&dead), DIBS_LOST);
    assert_status(actor_try(&heir), DIBS_OK);
    assert_status(actor_release(&dead), DIBS_LOST);
    assert_status(actor_renew(&dead, 20000, NULL), DIBS_LOST);
    assert_status(actor_try(&more), DIBS_BUSY);
    assert_int_equal(contract_look(t, t->name, &view), 2);
}

/* Redisson #7329: more came back than there were. */
static void permits_given_back_twice_are_free_once(void **state)
{
    contract *t = *state;
    actor two = contract_permits(t, 0, 2, 3);
    actor all = contract_permits(t, 1, 3, 3);
    actor more = contract_permits(t, 2, 1, 3);

    assert_status(actor_try(&two), DIBS_OK);
    assert_status(actor_release(&two), DIBS_OK);
    assert_status(actor_release(&two), DIBS_LOST);
    assert_status(actor_leave(&two, false, 1000), DIBS_LOST);
    assert_status(actor_try(&all), DIBS_OK);
    assert_status(actor_try(&more), DIBS_BUSY);
    assert_status(actor_release(&two), DIBS_LOST);
    assert_status(actor_try(&more), DIBS_BUSY);
    assert_status(actor_release(&all), DIBS_OK);
    assert_status(actor_try(&more), DIBS_OK);
}

/* Redisson #4462: permits of the dead were never seen again. */
static void permits_of_the_dead_come_back(void **state)
{
    contract *t = *state;
    actor all = contract_permits(t, 2, 6, 6);
    dibsx_nsec began_at = dibsx_now();

    for (uint32_t i = 0; i < 3; i++) {
        actor dead = contract_permits(t, i % 2, i + 1, 6);

        dead.ask.ttl_ms = contract_brief_ms(80 * (int64_t)(i + 1));
        assert_status(actor_try(&dead), DIBS_OK);
    }
    IN_TIME(actor_queue(&all) == DIBS_BUSY);
    assert_status(actor_until(&all, CONTRACT_BOUND_MS), DIBS_OK);
    assert_true(contract_ms_since(began_at) >= 240 - CONTRACT_DRIFT_MS);
}

static void each_permit_has_a_lease_of_its_own(void **state)
{
    contract *t = *state;
    actor dead = contract_permits(t, 0, 1, 3);
    actor alive = contract_permits(t, 1, 1, 3);
    actor two = contract_permits(t, 2, 2, 3);
    actor three = contract_permits(t, 2, 3, 3);
    contract_view view;

    dead.ask.ttl_ms = alive.ask.ttl_ms = contract_brief_ms(250);
    assert_status(actor_try(&dead), DIBS_OK);
    assert_status(actor_try(&alive), DIBS_OK);
    assert_status(actor_renew(&alive, 20000, NULL), DIBS_OK);
    contract_await(t, t->name, 1, &view);
    assert_status(actor_renew(&alive, 20000, NULL), DIBS_OK);
    assert_status(actor_renew(&dead, 20000, NULL), DIBS_LOST);
    assert_status(actor_try(&three), DIBS_BUSY);
    assert_status(actor_try(&two), DIBS_OK);
}

static void kept_permits_are_not_free(void **state)
{
    contract *t = *state;
    actor a = contract_permits(t, 0, 2, 3);
    actor two = contract_permits(t, 1, 2, 3);
    actor one = contract_permits(t, 2, 1, 3);
    dibsx_nsec left_at;

    assert_status(actor_try(&a), DIBS_OK);
    left_at = dibsx_now();
    assert_status(actor_leave(&a, false, 250), DIBS_OK);
    IN_TIME(actor_try(&two) == DIBS_BUSY);
    assert_status(actor_try(&one), DIBS_OK);
    assert_status(actor_until(&two, CONTRACT_BOUND_MS), DIBS_OK);
    assert_true(contract_ms_since(left_at) >= 250 - CONTRACT_DRIFT_MS);
}

static void a_request_of_higher_priority_goes_before_a_large_one(void **state)
{
    actor holder = contract_permits(*state, 0, 3, 4);
    actor large = contract_permits(*state, 1, 2, 4);
    actor urgent = contract_permits(*state, 2, 1, 4);
    actor behind = contract_permits(*state, 2, 1, 4);

    assert_status(actor_try(&holder), DIBS_OK);
    assert_status(actor_queue(&large), DIBS_BUSY);
    assert_status(actor_try(&behind), DIBS_BUSY);
    urgent.ask.priority = 5;
    assert_status(actor_try(&urgent), DIBS_OK);
    assert_status(actor_release(&holder), DIBS_OK);
    actor_expect_claim(&large);
}

int contract_permit(void)
{
    const struct CMUnitTest tests[] = {
        CONTRACT_TEST(permits_never_exceed_the_capacity),
        CONTRACT_TEST(a_repeated_ask_takes_no_further_permit),
        CONTRACT_TEST(a_large_request_is_not_starved_by_small_ones),
        CONTRACT_TEST(freed_permits_serve_all_that_fit),
        CONTRACT_TEST(permits_are_served_in_order_of_arrival),
        CONTRACT_TEST(the_release_of_an_expired_permit_frees_nothing),
        CONTRACT_TEST(permits_given_back_twice_are_free_once),
        CONTRACT_TEST(permits_of_the_dead_come_back),
        CONTRACT_TEST(each_permit_has_a_lease_of_its_own),
        CONTRACT_TEST(kept_permits_are_not_free),
        CONTRACT_TEST(a_request_of_higher_priority_goes_before_a_large_one),
    };

    return cmocka_run_group_tests_name("permit", tests, NULL, NULL);
}
