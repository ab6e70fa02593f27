/* contract_kind.c - exclusive, shared and permits; one kind per name. */
/* SPDX-License-Identifier: MIT */
#include "contract.h"

static actor shared_actor(contract *t, size_t handle)
{
    actor a = contract_actor(t, handle);

    a.ask.mode = DIBS__SHARED;
    return a;
}

static actor
permits_actor(contract *t, size_t handle, uint32_t permits, uint32_t capacity)
{
    actor a = contract_actor(t, handle);

    a.ask.mode = DIBS__PERMITS;
    a.ask.permits = permits;
    a.ask.capacity = capacity;
    return a;
}

static void readers_share_and_exclude_writers(void **state)
{
    actor one = shared_actor(*state, 0);
    actor two = shared_actor(*state, 1);
    actor writer = contract_actor(*state, 2);

    assert_int_equal(actor_try(&one), DIBS_OK);
    assert_int_equal(actor_try(&two), DIBS_OK);
    assert_int_not_equal(one.ans.fence, two.ans.fence);
    assert_int_equal(actor_try(&writer), DIBS_BUSY);
    assert_int_equal(actor_release(&one), DIBS_OK);
    assert_int_equal(actor_try(&writer), DIBS_BUSY);
    assert_int_equal(actor_release(&two), DIBS_OK);
    assert_int_equal(actor_try(&writer), DIBS_OK);
    assert_int_equal(actor_try(&one), DIBS_BUSY);
}

static void each_reader_expires_alone(void **state)
{
    actor brief = shared_actor(*state, 0);
    actor longer = shared_actor(*state, 1);
    actor writer = contract_actor(*state, 2);
    dibsx_nsec sent_at = dibsx_now();

    brief.ask.ttl_ms = 100;
    longer.ask.ttl_ms = 500;
    assert_int_equal(actor_try(&brief), DIBS_OK);
    assert_int_equal(actor_try(&longer), DIBS_OK);
    assert_int_equal(actor_until(&writer, CONTRACT_BOUND_MS), DIBS_OK);
    assert_true(contract_ms_since(sent_at) >= 500 - 5 - CONTRACT_DRIFT_MS);
    assert_int_equal(actor_renew(&longer, 60000, NULL), DIBS_LOST);
}

static void a_refused_writer_is_told_when_the_first_could_end(void **state)
{
    actor brief = shared_actor(*state, 0);
    actor longer = shared_actor(*state, 1);
    actor writer = contract_actor(*state, 2);

    brief.ask.ttl_ms = 5000;
    longer.ask.ttl_ms = 60000;
    assert_int_equal(actor_try(&brief), DIBS_OK);
    assert_int_equal(actor_try(&longer), DIBS_OK);
    assert_int_equal(actor_try(&writer), DIBS_BUSY);
    assert_true(writer.ans.left_ms > 0 && writer.ans.left_ms <= 5000);
    assert_int_equal(actor_release(&brief), DIBS_OK);
    assert_int_equal(actor_try(&writer), DIBS_BUSY);
    assert_true(writer.ans.left_ms > 5000 && writer.ans.left_ms <= 60000);
}

static void a_waiting_writer_holds_back_new_readers(void **state)
{
    actor one = shared_actor(*state, 0);
    actor writer = contract_actor(*state, 1);
    actor two = shared_actor(*state, 2);
    actor three = shared_actor(*state, 0);

    assert_int_equal(actor_try(&one), DIBS_OK);
    assert_int_equal(actor_queue(&writer), DIBS_BUSY);
    assert_int_equal(actor_try(&two), DIBS_BUSY);
    assert_int_equal(actor_queue(&two), DIBS_BUSY);
    assert_int_equal(two.ans.ahead, 1);
    assert_int_equal(actor_queue(&three), DIBS_BUSY);
    assert_int_equal(three.ans.ahead, 2);
    assert_int_equal(actor_release(&one), DIBS_OK);
    actor_expect_claim(&writer);
    assert_int_equal(actor_queue(&two), DIBS_BUSY);
    assert_int_equal(actor_release(&writer), DIBS_OK);
    actor_expect_claim(&two);
    actor_expect_claim(&three);
    assert_true(three.ans.fence > two.ans.fence); /* granted in one step */
}

static void a_barging_reader_goes_past_a_waiting_writer(void **state)
{
    actor one = shared_actor(*state, 0);
    actor writer = contract_actor(*state, 1);
    actor two = shared_actor(*state, 2);
    actor rival = contract_actor(*state, 2);

    assert_int_equal(actor_try(&one), DIBS_OK);
    assert_int_equal(actor_queue(&writer), DIBS_BUSY);
    two.ask.flags = rival.ask.flags = DIBS__ASK_BARGE;
    assert_int_equal(actor_try(&two), DIBS_OK);
    assert_int_equal(actor_try(&rival), DIBS_BUSY);
    assert_int_equal(actor_release(&one), DIBS_OK);
    assert_int_equal(actor_release(&two), DIBS_OK);
    actor_expect_claim(&writer);
}

static void permits_never_exceed_the_capacity(void **state)
{
    actor two = permits_actor(*state, 0, 2, 4);
    actor one = permits_actor(*state, 1, 1, 4);
    actor more = permits_actor(*state, 2, 2, 4);
    actor last = permits_actor(*state, 0, 1, 4);

    assert_int_equal(actor_try(&two), DIBS_OK);
    assert_int_equal(actor_try(&one), DIBS_OK);
    assert_int_equal(actor_try(&more), DIBS_BUSY);
    assert_int_equal(actor_try(&last), DIBS_OK);
    assert_int_equal(actor_try(&more), DIBS_BUSY);
    assert_int_equal(actor_release(&one), DIBS_OK);
    assert_int_equal(actor_try(&more), DIBS_BUSY);
    assert_int_equal(actor_release(&last), DIBS_OK);
    assert_int_equal(actor_try(&more), DIBS_OK);
    assert_int_equal(actor_try(&one), DIBS_BUSY);
}

static void a_repeated_ask_takes_no_further_permit(void **state)
{
    actor one = permits_actor(*state, 0, 1, 2);
    actor two = permits_actor(*state, 1, 1, 2);
    uint64_t fence;

    assert_int_equal(actor_try(&one), DIBS_OK);
    fence = one.ans.fence;
    for (int i = 0; i < 3; i++)
        assert_int_equal(actor_try(&one), DIBS_OK);
    assert_int_equal(one.ans.fence, fence);
    assert_int_equal(actor_try(&two), DIBS_OK);
}

static void a_large_request_is_not_starved_by_small_ones(void **state)
{
    actor holder = permits_actor(*state, 0, 3, 4);
    actor large = permits_actor(*state, 1, 4, 4);
    actor small = permits_actor(*state, 2, 1, 4);
    actor barging = permits_actor(*state, 2, 1, 4);

    assert_int_equal(actor_try(&holder), DIBS_OK);
    assert_int_equal(actor_queue(&large), DIBS_BUSY);
    assert_int_equal(actor_queue(&small), DIBS_BUSY);
    assert_int_equal(small.ans.ahead, 1);
    barging.ask.flags = DIBS__ASK_BARGE;
    assert_int_equal(actor_try(&barging), DIBS_OK);
    assert_int_equal(actor_release(&barging), DIBS_OK);
    assert_int_equal(actor_queue(&small), DIBS_BUSY);
    assert_int_equal(actor_release(&holder), DIBS_OK);
    actor_expect_claim(&large);
    assert_int_equal(actor_release(&large), DIBS_OK);
    actor_expect_claim(&small);
}

static void freed_permits_serve_all_that_fit(void **state)
{
    actor holder = permits_actor(*state, 0, 3, 3);
    actor one = permits_actor(*state, 1, 1, 3);
    actor two = permits_actor(*state, 2, 2, 3);
    actor three = permits_actor(*state, 0, 1, 3);

    assert_int_equal(actor_try(&holder), DIBS_OK);
    assert_int_equal(actor_queue(&one), DIBS_BUSY);
    assert_int_equal(actor_queue(&two), DIBS_BUSY);
    assert_int_equal(actor_queue(&three), DIBS_BUSY);
    assert_int_equal(actor_release(&holder), DIBS_OK);
    actor_expect_claim(&one);
    actor_expect_claim(&two);
    assert_int_equal(actor_queue(&three), DIBS_BUSY);
    assert_int_equal(three.ans.ahead, 0);
    assert_int_equal(actor_release(&one), DIBS_OK);
    actor_expect_claim(&three);
}

static void a_name_has_one_kind_while_it_lives(void **state)
{
    actor lock = contract_actor(*state, 0);
    actor permits = permits_actor(*state, 1, 1, 3);
    actor wider = permits_actor(*state, 2, 1, 4);
    actor reader = shared_actor(*state, 2);
    contract_view view;

    assert_int_equal(actor_try(&lock), DIBS_OK);
    assert_int_equal(actor_queue(&permits), DIBS_MISMATCH);
    assert_int_equal(permits.err.status, DIBS_MISMATCH);
    assert_true(strlen(permits.err.message) > 0);
    assert_int_equal(contract_look(*state, lock.ask.name, &view), 1);
    assert_int_equal(actor_release(&lock), DIBS_OK);

    assert_int_equal(actor_try(&permits), DIBS_OK);
    assert_int_equal(actor_queue(&lock), DIBS_MISMATCH);
    assert_int_equal(actor_queue(&reader), DIBS_MISMATCH);
    assert_int_equal(actor_queue(&wider), DIBS_MISMATCH);
    assert_int_equal(contract_look(*state, lock.ask.name, &view), 1);
    assert_int_equal(actor_release(&permits), DIBS_OK);
    assert_int_equal(actor_try(&wider), DIBS_OK);
}

static void an_expired_kind_does_not_bind(void **state)
{
    actor lock = contract_actor(*state, 0);
    actor permits = permits_actor(*state, 1, 1, 3);
    dibsx_nsec end = dibsx_after_ms(dibsx_now(), CONTRACT_BOUND_MS);
    dibs_status rc;

    lock.ask.ttl_ms = 100;
    assert_int_equal(actor_try(&lock), DIBS_OK);
    while ((rc = actor_try(&permits)) == DIBS_MISMATCH && dibsx_now() < end)
        contract_sleep_until(dibsx_now() + 5 * DIBSX_MS);
    assert_int_equal(rc, DIBS_OK);
}

static void a_kept_name_keeps_its_kind(void **state)
{
    actor lock = contract_actor(*state, 0);
    actor permits = permits_actor(*state, 1, 1, 3);

    assert_int_equal(actor_try(&lock), DIBS_OK);
    assert_int_equal(actor_leave(&lock, false, 5000), DIBS_OK);
    assert_int_equal(actor_try(&permits), DIBS_MISMATCH);
}

int contract_kind(void)
{
    const struct CMUnitTest tests[] = {
        CONTRACT_TEST(readers_share_and_exclude_writers),
        CONTRACT_TEST(each_reader_expires_alone),
        CONTRACT_TEST(a_refused_writer_is_told_when_the_first_could_end),
        CONTRACT_TEST(a_waiting_writer_holds_back_new_readers),
        CONTRACT_TEST(a_barging_reader_goes_past_a_waiting_writer),
        CONTRACT_TEST(permits_never_exceed_the_capacity),
        CONTRACT_TEST(a_repeated_ask_takes_no_further_permit),
        CONTRACT_TEST(a_large_request_is_not_starved_by_small_ones),
        CONTRACT_TEST(freed_permits_serve_all_that_fit),
        CONTRACT_TEST(a_name_has_one_kind_while_it_lives),
        CONTRACT_TEST(an_expired_kind_does_not_bind),
        CONTRACT_TEST(a_kept_name_keeps_its_kind),
    };

    return cmocka_run_group_tests_name("kind", tests, NULL, NULL);
}
