/* contract_place.c - places and claims run out: the dead cost little.
 *
 * The spans are fixed by the contract, so these tests take their time. */
/* SPDX-License-Identifier: MIT */
#include "contract.h"

static void the_dead_are_skipped_together(void **state)
{
    actor holder = contract_actor(*state, 0);
    actor alive = contract_actor(*state, 1);
    dibsx_nsec last_ask_at = 0;

    assert_int_equal(actor_try(&holder), DIBS_OK);
    for (size_t i = 0; i < 6; i++) {
        actor dead = contract_actor(*state, 2);

        assert_int_equal(actor_queue(&dead), DIBS_BUSY);
        last_ask_at = dibsx_now();
    }
    contract_sleep_until(dibsx_after_ms(last_ask_at, DIBS__PLACE_MS / 2));
    assert_int_equal(actor_queue(&alive), DIBS_BUSY);
    contract_sleep_until(dibsx_after_ms(last_ask_at, DIBS__PLACE_MS + 50));
    assert_int_equal(actor_release(&holder), DIBS_OK);
    actor_expect_claim(&alive);
}

/* The last one joins when the place of the first is half over, so that a place
 * that was not kept would be found behind it. */
static void places_are_kept_by_asking(void **state)
{
    actor holder = contract_actor(*state, 0);
    actor first = contract_actor(*state, 1);
    actor dead = contract_actor(*state, 2);
    actor last = contract_actor(*state, 0);
    int64_t gone_ms = 0;
    dibsx_nsec asked_at;

    assert_int_equal(actor_try(&holder), DIBS_OK);
    assert_int_equal(actor_queue(&first), DIBS_BUSY);
    asked_at = dibsx_now();
    assert_int_equal(actor_queue(&dead), DIBS_BUSY);
    while (gone_ms < DIBS__PLACE_MS + 300) {
        contract_sleep_until(dibsx_now() + 200 * DIBSX_MS);
        assert_int_equal(actor_queue(&first), DIBS_BUSY);
        assert_int_equal(first.ans.ahead, 0);
        gone_ms = contract_ms_since(asked_at);
        if (gone_ms < DIBS__PLACE_MS / 2)
            continue;
        assert_int_equal(actor_queue(&last), DIBS_BUSY);
        if (contract_ms_since(asked_at) < DIBS__PLACE_MS - CONTRACT_DRIFT_MS)
            assert_int_equal(last.ans.ahead, 2);
    }
    assert_int_equal(last.ans.ahead, 1);
    assert_int_equal(actor_queue(&dead), DIBS_BUSY);
    assert_int_equal(dead.ans.ahead, 2);
}

static void a_claim_that_nobody_takes_up_passes_on(void **state)
{
    actor holder = contract_actor(*state, 0);
    actor gone = contract_actor(*state, 1);
    actor next = contract_actor(*state, 2);
    dibsx_nsec released_at;
    uint64_t fence = 0;

    assert_int_equal(actor_try(&holder), DIBS_OK);
    assert_int_equal(actor_queue(&gone), DIBS_BUSY);
    assert_int_equal(actor_queue(&next), DIBS_BUSY);
    released_at = dibsx_now();
    assert_int_equal(actor_release(&holder), DIBS_OK);
    assert_true(actor_rung(&gone, DIBS__NEWS_GRANTED, &fence));
    assert_int_equal(actor_until(&next, DIBS__CLAIM_MS + CONTRACT_BOUND_MS),
                     DIBS_OK);
    assert_true(contract_ms_since(released_at) >=
                DIBS__CLAIM_MS - CONTRACT_DRIFT_MS);
    assert_true(next.ans.fence > fence);
    gone.ans.fence = fence;
    assert_int_equal(actor_renew(&gone, 60000, NULL), DIBS_LOST);
    assert_int_equal(actor_release(&gone), DIBS_LOST);
}

/* A renewed claim outlasts the claim; asking again does not stretch one. */
static void asking_does_not_stretch_a_claim(void **state)
{
    actor holder = contract_actor(*state, 0);
    actor b = contract_actor(*state, 1);
    dibsx_nsec claimed_at;
    uint64_t fence;

    assert_int_equal(actor_try(&holder), DIBS_OK);
    assert_int_equal(actor_queue(&b), DIBS_BUSY);
    assert_int_equal(actor_release(&holder), DIBS_OK);
    claimed_at = dibsx_now();
    actor_expect_claim(&b);
    fence = b.ans.fence;
    while (contract_ms_since(claimed_at) < DIBS__CLAIM_MS - 500) {
        contract_sleep_until(dibsx_now() + 100 * DIBSX_MS);
        assert_int_equal(actor_queue(&b), DIBS_OK);
        assert_int_equal(b.ans.fence, fence);
        assert_true(b.ans.left_ms <=
                    DIBS__CLAIM_MS - contract_ms_since(claimed_at) + 100);
    }
    assert_int_equal(actor_renew(&b, 20000, NULL), DIBS_OK);
    contract_sleep_until(dibsx_after_ms(claimed_at, DIBS__CLAIM_MS + 200));
    assert_int_equal(actor_queue(&b), DIBS_OK);
    assert_int_equal(b.ans.fence, fence);
}

int contract_place(void)
{
    const struct CMUnitTest tests[] = {
        CONTRACT_TEST(the_dead_are_skipped_together),
        CONTRACT_TEST(places_are_kept_by_asking),
        CONTRACT_TEST(a_claim_that_nobody_takes_up_passes_on),
        CONTRACT_TEST(asking_does_not_stretch_a_claim),
    };

    return cmocka_run_group_tests_name("place", tests, NULL, NULL);
}
