/* contract_wait.c - the queue: order, hand-off in the step that frees. */
/* SPDX-License-Identifier: MIT */
#include "contract.h"

static void a_queued_answer_has_watermark_place_and_time(void **state)
{
    contract *t = *state;
    actor a = contract_actor(t, 0);
    actor b = contract_actor(t, 1);
    actor c = contract_actor(t, 2);
    actor d = contract_actor(t, 0);
    char other[sizeof(t->name) + 8];

    assert_status(actor_try(&a), DIBS_OK);
    assert_status(actor_queue(&b), DIBS_BUSY);
    assert_true(b.ans.queued);
    assert_int_equal(b.ans.ahead, 0);
    assert_true(b.ans.fence >= a.ans.fence);
    assert_true(b.ans.left_ms > 0 && b.ans.left_ms <= a.ask.ttl_ms);
    /* A cluster has a watermark for each slot, which the braces make the same. */
    snprintf(other, sizeof(other), "{%s}other", t->name);
    d.ask.name = other;
    assert_status(actor_try(&d), DIBS_OK);
    assert_status(actor_queue(&c), DIBS_BUSY);
    assert_int_equal(c.ans.ahead, 1);
    assert_true(c.ans.fence >= d.ans.fence);
}

static void queueing_for_a_free_name_grants_the_whole_lease(void **state)
{
    actor a = contract_actor(*state, 0);

    a.ask.ttl_ms = 60000;
    assert_status(actor_queue(&a), DIBS_OK);
    assert_false(a.ans.claim);
    assert_true(a.ans.left_ms > DIBS__CLAIM_MS);
}

static void release_hands_off_in_the_same_step(void **state)
{
    actor a = contract_actor(*state, 0);
    actor b = contract_actor(*state, 1);
    actor c = contract_actor(*state, 2);
    contract_view view;

    assert_status(actor_try(&a), DIBS_OK);
    assert_status(actor_queue(&b), DIBS_BUSY);
    assert_status(actor_release(&a), DIBS_OK);
    assert_int_equal(contract_look(*state, a.ask.name, &view), 1);
    assert_string_equal(view.entries[0].owner, b.owner);
    assert_true(view.entries[0].holder);
    assert_true(view.entries[0].claim);
    assert_status(actor_try(&c), DIBS_BUSY);
    actor_expect_claim(&b);
    assert_true(b.ans.fence > a.ans.fence);
    assert_int_equal(view.entries[0].fence, b.ans.fence);
}

static void a_claim_is_renewed_into_a_whole_lease(void **state)
{
    actor a = contract_actor(*state, 0);
    actor b = contract_actor(*state, 1);
    contract_view view;
    int64_t left_ms = 0;

    b.ask.ttl_ms = 30000;
    assert_status(actor_try(&a), DIBS_OK);
    assert_status(actor_queue(&b), DIBS_BUSY);
    assert_status(actor_release(&a), DIBS_OK);
    actor_expect_claim(&b);
    assert_status(actor_renew(&b, 30000, &left_ms), DIBS_OK);
    assert_true(left_ms > DIBS__CLAIM_MS);
    assert_int_equal(contract_look(*state, b.ask.name, &view), 1);
    assert_false(view.entries[0].claim);
    assert_status(actor_queue(&b), DIBS_OK);
    assert_false(b.ans.claim);
    assert_true(b.ans.left_ms > DIBS__CLAIM_MS);
}

/* A client may count on the whole claim already, so a short ttl must not end it
 * sooner. */
static void a_claim_is_not_shortened_by_renewal(void **state)
{
    actor a = contract_actor(*state, 0);
    actor b = contract_actor(*state, 1);
    dibsx_nsec released_at;
    int64_t left_ms = 0;

    b.ask.ttl_ms = contract_brief_ms(100);
    assert_status(actor_try(&a), DIBS_OK);
    assert_status(actor_queue(&b), DIBS_BUSY);
    released_at = dibsx_now();
    assert_status(actor_release(&a), DIBS_OK);
    actor_expect_claim(&b);
    assert_status(actor_renew(&b, 100, &left_ms), DIBS_OK);
    assert_true(left_ms >= DIBS__CLAIM_MS - contract_ms_since(released_at) -
                               CONTRACT_DRIFT_MS);
}

/* The fence of the notice is enough to renew: no further ask is needed. */
static void a_notice_is_enough_to_renew(void **state)
{
    actor a = contract_actor(*state, 0);
    actor b = contract_actor(*state, 1);
    uint64_t fence = 0;

    assert_status(actor_try(&a), DIBS_OK);
    assert_status(actor_queue(&b), DIBS_BUSY);
    assert_status(actor_release(&a), DIBS_OK);
    IN_TIME(actor_notified(&b, DIBS__NOTICE_GRANTED, &fence));
    b.ans.fence = fence;
    assert_status(actor_renew(&b, 20000, NULL), DIBS_OK);
    assert_status(actor_release(&b), DIBS_OK);
}

static void asking_again_keeps_the_place(void **state)
{
    actor a = contract_actor(*state, 0);
    actor b = contract_actor(*state, 1);
    actor c = contract_actor(*state, 2);
    contract_view view;

    assert_status(actor_try(&a), DIBS_OK);
    assert_status(actor_queue(&b), DIBS_BUSY);
    assert_status(actor_queue(&c), DIBS_BUSY);
    for (int i = 0; i < 5; i++) {
        assert_status(actor_queue(&c), DIBS_BUSY);
        assert_int_equal(c.ans.ahead, 1);
        assert_status(actor_queue(&b), DIBS_BUSY);
        assert_int_equal(b.ans.ahead, 0);
    }
    assert_int_equal(contract_look(*state, a.ask.name, &view), 3);
}

enum { LINE = 20 };

static void twenty_waiters_are_served_in_order_of_arrival(void **state)
{
    actor holder = contract_actor(*state, 0);
    actor line[LINE];

    assert_status(actor_try(&holder), DIBS_OK);
    for (size_t i = 0; i < LINE; i++) {
        line[i] = contract_actor(*state, i % CONTRACT_HANDLES);
        assert_status(actor_queue(&line[i]), DIBS_BUSY);
        assert_int_equal(line[i].ans.ahead, i);
    }
    for (size_t i = 0; i < LINE; i++) {
        actor *before = i == 0 ? &holder : &line[i - 1];

        assert_status(actor_release(before), DIBS_OK);
        actor_expect_claim(&line[i]);
        assert_true(line[i].ans.fence > before->ans.fence);
        for (size_t k = i + 1; k < LINE; k++) {
            assert_status(actor_queue(&line[k]), DIBS_BUSY);
            if (line[k].ans.ahead != k - i - 1)
                contract_check_pace();
            assert_int_equal(line[k].ans.ahead, k - i - 1);
        }
    }
    assert_status(actor_release(&line[LINE - 1]), DIBS_OK);
}

static void higher_priority_goes_first_and_equals_by_arrival(void **state)
{
    actor holder = contract_actor(*state, 0);
    const int32_t priority[] = {0, 5, -3, 5, 0, 100};
    const size_t order[] = {5, 1, 3, 0, 4, 2};
    actor line[6];

    assert_status(actor_try(&holder), DIBS_OK);
    for (size_t i = 0; i < 6; i++) {
        line[i] = contract_actor(*state, i % CONTRACT_HANDLES);
        line[i].ask.priority = priority[i];
        assert_status(actor_queue(&line[i]), DIBS_BUSY);
    }
    assert_int_equal(line[5].ans.ahead, 0);
    for (size_t i = 0; i < 6; i++) {
        assert_status(actor_queue(&line[order[i]]), DIBS_BUSY);
        assert_int_equal(line[order[i]].ans.ahead, i);
    }
    assert_status(actor_release(&holder), DIBS_OK);
    for (size_t i = 0; i < 6; i++) {
        actor_expect_claim(&line[order[i]]);
        assert_status(actor_release(&line[order[i]]), DIBS_OK);
    }
}

/* The holder died; whoever asks first after its time serves the rightful
 * head, which need not be itself. */
static void anyone_hands_off_for_a_dead_holder(void **state)
{
    actor dead = contract_actor(*state, 0);
    actor head = contract_actor(*state, 1);
    actor third = contract_actor(*state, 2);
    dibsx_nsec end = dibsx_after_ms(dibsx_now(), CONTRACT_BOUND_MS);
    contract_view view;

    dead.ask.ttl_ms = contract_brief_ms(200);
    assert_status(actor_try(&dead), DIBS_OK);
    IN_TIME(actor_queue(&head) == DIBS_BUSY);
    do {
        contract_sleep_until(dibsx_now() + 5 * DIBSX_MS);
        assert_status(actor_try(&third), DIBS_BUSY);
        IN_TIME(contract_look(*state, dead.ask.name, &view) > 0);
        IN_TIME(dibsx_now() < end);
    } while (!view.entries[0].claim);
    actor_expect_claim(&head);
    assert_status(actor_renew(&dead, 60000, NULL), DIBS_LOST);
}

static void the_head_serves_itself_after_a_dead_holder(void **state)
{
    actor dead = contract_actor(*state, 0);
    actor head = contract_actor(*state, 1);
    dibsx_nsec sent_at = dibsx_now();

    dead.ask.ttl_ms = contract_brief_ms(200);
    assert_status(actor_try(&dead), DIBS_OK);
    IN_TIME(actor_queue(&head) == DIBS_BUSY);
    assert_status(actor_until(&head, CONTRACT_BOUND_MS), DIBS_OK);
    assert_true(contract_ms_since(sent_at) >= 200 - CONTRACT_DRIFT_MS);
    assert_false(head.ans.claim);
    assert_true(head.ans.left_ms > DIBS__CLAIM_MS);
}

/* Another's release and another's renewal do not touch the queue. */
static void only_the_holder_hands_off(void **state)
{
    actor a = contract_actor(*state, 0);
    actor b = contract_actor(*state, 1);
    actor stranger = contract_actor(*state, 2);

    assert_status(actor_try(&a), DIBS_OK);
    assert_status(actor_queue(&b), DIBS_BUSY);
    assert_status(actor_release(&stranger), DIBS_LOST);
    assert_status(actor_renew(&stranger, 60000, NULL), DIBS_LOST);
    assert_status(actor_renew(&a, 20000, NULL), DIBS_OK);
    assert_status(actor_queue(&b), DIBS_BUSY);
    assert_false(actor_hears(&b, DIBS__NOTICE_GRANTED));
}

static void a_waiter_that_leaves_lets_the_next_fit(void **state)
{
    actor reader = contract_actor(*state, 0);
    actor writer = contract_actor(*state, 1);
    actor second = contract_actor(*state, 2);

    reader.ask.mode = second.ask.mode = DIBS__SHARED;
    assert_status(actor_try(&reader), DIBS_OK);
    assert_status(actor_queue(&writer), DIBS_BUSY);
    assert_status(actor_queue(&second), DIBS_BUSY);
    assert_status(actor_release(&writer), DIBS_LOST);
    actor_expect_claim(&second);
}

/* The queue is served by whoever comes first after the holder's death; one who
 * gave up meanwhile must not get it, for nobody would give it back. */
static void one_who_gave_up_is_passed_over_when_the_holder_dies(void **state)
{
    actor dead = contract_actor(*state, 0);
    actor gone = contract_actor(*state, 1);
    actor next = contract_actor(*state, 2);

    dead.ask.ttl_ms = contract_brief_ms(250);
    assert_status(actor_try(&dead), DIBS_OK);
    IN_TIME(actor_queue(&gone) == DIBS_BUSY);
    IN_TIME(actor_queue(&next) == DIBS_BUSY);
    IN_TIME(actor_release(&gone) == DIBS_LOST);
    assert_status(actor_until(&next, CONTRACT_BOUND_MS), DIBS_OK);
    assert_status(actor_release(&next), DIBS_OK);
    assert_status(actor_try(&dead), DIBS_OK);
    actor_expect_quiet(&gone, DIBS__NOTICE_GRANTED);
}

static void one_who_comes_back_waits_at_the_end(void **state)
{
    actor holder = contract_actor(*state, 0);
    actor one = contract_actor(*state, 1);
    actor two = contract_actor(*state, 2);

    assert_status(actor_try(&holder), DIBS_OK);
    assert_status(actor_queue(&one), DIBS_BUSY);
    assert_status(actor_queue(&two), DIBS_BUSY);
    assert_status(actor_release(&one), DIBS_LOST);
    assert_status(actor_queue(&one), DIBS_BUSY);
    assert_int_equal(one.ans.ahead, 1);
    assert_status(actor_try(&two), DIBS_BUSY); /* gives up its place */
    assert_status(actor_queue(&one), DIBS_BUSY);
    assert_int_equal(one.ans.ahead, 0);
    assert_status(actor_release(&holder), DIBS_OK);
    actor_expect_claim(&one);
    actor_expect_quiet(&two, DIBS__NOTICE_GRANTED);
}

static void the_least_and_the_greatest_priority_are_in_order(void **state)
{
    actor holder = contract_actor(*state, 0);
    const int32_t priority[] = {INT32_MIN, 0, INT32_MAX, INT32_MIN + 1,
                                INT32_MAX - 1};
    const size_t order[] = {2, 4, 1, 3, 0};
    actor line[5];

    assert_status(actor_try(&holder), DIBS_OK);
    for (size_t i = 0; i < 5; i++) {
        line[i] = contract_actor(*state, i % CONTRACT_HANDLES);
        line[i].ask.priority = priority[i];
        assert_status(actor_queue(&line[i]), DIBS_BUSY);
    }
    assert_status(actor_release(&holder), DIBS_OK);
    for (size_t i = 0; i < 5; i++) {
        actor_expect_claim(&line[order[i]]);
        assert_status(actor_release(&line[order[i]]), DIBS_OK);
    }
}

/* Barging goes past who waits, never past who holds, by hand-off or not. */
static void barging_takes_only_what_is_free(void **state)
{
    actor holder = contract_actor(*state, 0);
    actor waiter = contract_actor(*state, 1);
    actor barging = contract_actor(*state, 2);

    barging.ask.flags = DIBS__ASK_BARGE;
    assert_status(actor_try(&holder), DIBS_OK);
    assert_status(actor_queue(&waiter), DIBS_BUSY);
    assert_status(actor_try(&barging), DIBS_BUSY);
    assert_status(actor_release(&holder), DIBS_OK);
    assert_status(actor_try(&barging), DIBS_BUSY);
    actor_expect_claim(&waiter);
    assert_status(actor_release(&waiter), DIBS_OK);
    assert_status(actor_try(&barging), DIBS_OK);
}

static void one_who_barges_and_is_refused_waits_like_others(void **state)
{
    actor holder = contract_actor(*state, 0);
    actor waiter = contract_actor(*state, 1);
    actor barging = contract_actor(*state, 2);

    barging.ask.flags = DIBS__ASK_BARGE;
    assert_status(actor_try(&holder), DIBS_OK);
    assert_status(actor_queue(&waiter), DIBS_BUSY);
    assert_status(actor_queue(&barging), DIBS_BUSY);
    assert_int_equal(barging.ans.ahead, 1);
    assert_status(actor_release(&holder), DIBS_OK);
    actor_expect_claim(&waiter);
    assert_status(actor_release(&waiter), DIBS_OK);
    actor_expect_claim(&barging);
}

static void one_who_is_passed_by_barging_keeps_its_place(void **state)
{
    contract *t = *state;
    actor dead = contract_actor(t, 0);
    actor waiter = contract_actor(t, 1);
    actor barging = contract_actor(t, 2);
    contract_view view;

    dead.ask.ttl_ms = contract_brief_ms(200);
    barging.ask.flags = DIBS__ASK_BARGE;
    assert_status(actor_try(&dead), DIBS_OK);
    IN_TIME(actor_queue(&waiter) == DIBS_BUSY);
    contract_await(t, t->name, 1, &view);
    assert_status(actor_try(&barging), DIBS_OK);
    assert_status(actor_queue(&waiter), DIBS_BUSY);
    assert_int_equal(waiter.ans.ahead, 0);
    assert_status(actor_release(&barging), DIBS_OK);
    actor_expect_claim(&waiter);
}

int contract_wait(void)
{
    const struct CMUnitTest tests[] = {
        CONTRACT_TEST(a_queued_answer_has_watermark_place_and_time),
        CONTRACT_TEST(queueing_for_a_free_name_grants_the_whole_lease),
        CONTRACT_TEST(release_hands_off_in_the_same_step),
        CONTRACT_TEST(a_claim_is_renewed_into_a_whole_lease),
        CONTRACT_TEST(a_claim_is_not_shortened_by_renewal),
        CONTRACT_TEST(a_notice_is_enough_to_renew),
        CONTRACT_TEST(asking_again_keeps_the_place),
        CONTRACT_TEST(twenty_waiters_are_served_in_order_of_arrival),
        CONTRACT_TEST(higher_priority_goes_first_and_equals_by_arrival),
        CONTRACT_TEST(anyone_hands_off_for_a_dead_holder),
        CONTRACT_TEST(the_head_serves_itself_after_a_dead_holder),
        CONTRACT_TEST(only_the_holder_hands_off),
        CONTRACT_TEST(a_waiter_that_leaves_lets_the_next_fit),
        CONTRACT_TEST(one_who_gave_up_is_passed_over_when_the_holder_dies),
        CONTRACT_TEST(one_who_comes_back_waits_at_the_end),
        CONTRACT_TEST(the_least_and_the_greatest_priority_are_in_order),
        CONTRACT_TEST(barging_takes_only_what_is_free),
        CONTRACT_TEST(one_who_barges_and_is_refused_waits_like_others),
        CONTRACT_TEST(one_who_is_passed_by_barging_keeps_its_place),
    };

    return cmocka_run_group_tests_name("wait", tests, NULL, NULL);
}
