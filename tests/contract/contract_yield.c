/* contract_yield.c - holders hear that others want what they have: asked to
 * yield, or told of each who was refused. */
/* SPDX-License-Identifier: MIT */
#include "contract.h"

static dibs_status yield(contract *t, uint64_t fence, uint32_t *asked)
{
    dibs__store *st = t->st[2];
    dibs_error err = {0};

    contract_needs(t, DIBS__CAN_RING);
    *asked = UINT32_MAX;
    return st->ops->lease->yield(st, t->name, fence, contract_soon(), asked,
                                 &err);
}

static void expect_notice(actor *a, dibs__notice_kind kind)
{
    uint64_t fence = 0;

    IN_TIME(actor_notified(a, kind, &fence));
    assert_int_equal(fence, a->ans.fence);
}

static void the_holder_is_asked_and_nothing_changes(void **state)
{
    contract *t = *state;
    actor a = contract_actor(t, 0);
    actor b = contract_actor(t, 1);
    contract_view view;
    uint32_t asked;

    assert_status(actor_try(&a), DIBS_OK);
    assert_status(actor_queue(&b), DIBS_BUSY);
    assert_status(yield(t, 0, &asked), DIBS_OK);
    assert_int_equal(asked, 1);
    expect_notice(&a, DIBS__NOTICE_YIELD);
    assert_status(yield(t, a.ans.fence, &asked), DIBS_OK);
    assert_int_equal(asked, 1);
    expect_notice(&a, DIBS__NOTICE_YIELD);
    assert_int_equal(contract_look(t, t->name, &view), 2);
    assert_string_equal(view.entries[0].owner, a.owner);
    assert_int_equal(view.entries[0].fence, a.ans.fence);
    assert_status(actor_renew(&a, 20000, NULL), DIBS_OK);
    actor_expect_quiet(&b, DIBS__NOTICE_YIELD);
    assert_status(actor_release(&a), DIBS_OK);
    actor_expect_claim(&b);
}

static void one_reader_is_asked_or_every_one(void **state)
{
    contract *t = *state;
    actor one = contract_sharer(t, 0);
    actor two = contract_sharer(t, 1);
    uint32_t asked;

    assert_status(actor_try(&one), DIBS_OK);
    assert_status(actor_try(&two), DIBS_OK);
    assert_status(yield(t, one.ans.fence, &asked), DIBS_OK);
    assert_int_equal(asked, 1);
    expect_notice(&one, DIBS__NOTICE_YIELD);
    actor_expect_quiet(&two, DIBS__NOTICE_YIELD);
    assert_status(yield(t, 0, &asked), DIBS_OK);
    assert_int_equal(asked, 2);
    expect_notice(&one, DIBS__NOTICE_YIELD);
    expect_notice(&two, DIBS__NOTICE_YIELD);
}

static void holders_of_permits_are_asked(void **state)
{
    contract *t = *state;
    actor one = contract_permits(t, 0, 2, 5);
    actor two = contract_permits(t, 1, 1, 5);
    uint32_t asked;

    assert_status(actor_try(&one), DIBS_OK);
    assert_status(actor_try(&two), DIBS_OK);
    assert_status(yield(t, 0, &asked), DIBS_OK);
    assert_int_equal(asked, 2);
    expect_notice(&one, DIBS__NOTICE_YIELD);
    expect_notice(&two, DIBS__NOTICE_YIELD);
}

static void one_with_a_claim_is_asked(void **state)
{
    contract *t = *state;
    actor a = contract_actor(t, 0);
    actor b = contract_actor(t, 1);
    uint32_t asked;

    assert_status(actor_try(&a), DIBS_OK);
    assert_status(actor_queue(&b), DIBS_BUSY);
    assert_status(actor_release(&a), DIBS_OK);
    actor_expect_claim(&b);
    assert_status(yield(t, b.ans.fence, &asked), DIBS_OK);
    assert_int_equal(asked, 1);
    expect_notice(&b, DIBS__NOTICE_YIELD);
}

static void one_without_a_doorbell_does_not_count(void **state)
{
    contract *t = *state;
    actor deaf = contract_sharer(t, 0);
    actor hearing = contract_sharer(t, 1);
    uint32_t asked;

    dibs__store_close(t->st[0]);
    t->st[0] = contract_open();
    assert_status(actor_try(&deaf), DIBS_OK);
    assert_status(yield(t, 0, &asked), DIBS_OK);
    assert_int_equal(asked, 0);
    assert_status(actor_try(&hearing), DIBS_OK);
    assert_status(yield(t, 0, &asked), DIBS_OK);
    assert_int_equal(asked, 1);
    expect_notice(&hearing, DIBS__NOTICE_YIELD);
    assert_status(yield(t, deaf.ans.fence, &asked), DIBS_OK);
    assert_int_equal(asked, 0);
}

static void nobody_or_another_fence_cannot_be_asked(void **state)
{
    contract *t = *state;
    actor a = contract_actor(t, 0);
    contract_view view;
    uint32_t asked;

    assert_status(yield(t, 0, &asked), DIBS_NOTFOUND);
    assert_status(yield(t, 77, &asked), DIBS_NOTFOUND);
    a.ask.ttl_ms = contract_brief_ms(250);
    assert_status(actor_try(&a), DIBS_OK);
    IN_TIME(yield(t, a.ans.fence - 1, &asked) == DIBS_STALE);
    IN_TIME(yield(t, a.ans.fence + 1, &asked) == DIBS_STALE);
    actor_expect_quiet(&a, DIBS__NOTICE_YIELD);
    contract_await(t, t->name, 0, &view);
    assert_status(yield(t, 0, &asked), DIBS_NOTFOUND);
    assert_status(yield(t, a.ans.fence, &asked), DIBS_NOTFOUND);
    actor_expect_quiet(&a, DIBS__NOTICE_YIELD);
}

static void a_past_deadline_asks_nobody(void **state)
{
    contract *t = *state;
    dibs__store *st = t->st[1];
    actor a = contract_actor(t, 0);
    uint32_t asked = 0;

    contract_needs(t, DIBS__CAN_RING);
    assert_status(actor_try(&a), DIBS_OK);
    assert_status(st->ops->lease->yield(st, t->name, 0, dibsx_now() - DIBSX_SEC,
                                        &asked, &a.err),
                  DIBS_UNAVAIL);
    actor_expect_quiet(&a, DIBS__NOTICE_YIELD);
}

static actor telling(actor a)
{
    a.ask.flags |= DIBS__ASK_TELL;
    return a;
}

/* Each refusal sends a notice: any of the notices may be lost. */
static void a_holder_is_told_of_each_who_is_refused(void **state)
{
    contract *t = *state;
    actor a = telling(contract_actor(t, 0));
    actor b = contract_actor(t, 1);
    actor beside = contract_actor(t, 0);
    contract_view view;

    assert_status(actor_try(&a), DIBS_OK);
    actor_expect_quiet(&a, DIBS__NOTICE_WANTED);
    assert_status(actor_try(&b), DIBS_BUSY);
    expect_notice(&a, DIBS__NOTICE_WANTED);
    assert_status(actor_queue(&b), DIBS_BUSY);
    expect_notice(&a, DIBS__NOTICE_WANTED);
    assert_status(actor_queue(&b), DIBS_BUSY);
    expect_notice(&a, DIBS__NOTICE_WANTED);
    assert_status(actor_try(&beside), DIBS_BUSY);
    expect_notice(&a, DIBS__NOTICE_WANTED);
    assert_int_equal(contract_look(t, t->name, &view), 2);
    assert_int_equal(view.entries[0].fence, a.ans.fence);
    assert_status(actor_renew(&a, 20000, NULL), DIBS_OK);
    assert_status(actor_release(&a), DIBS_OK);
    actor_expect_claim(&b);
    actor_expect_quiet(&b, DIBS__NOTICE_WANTED);
}

static void a_holder_is_not_told_of_itself(void **state)
{
    actor a = telling(contract_actor(*state, 0));

    assert_status(actor_try(&a), DIBS_OK);
    assert_status(actor_queue(&a), DIBS_OK);
    assert_status(actor_renew(&a, 20000, NULL), DIBS_OK);
    actor_expect_quiet(&a, DIBS__NOTICE_WANTED);
}

static void one_who_did_not_ask_for_it_is_told_nothing(void **state)
{
    actor a = contract_actor(*state, 0);
    actor b = contract_actor(*state, 1);

    assert_status(actor_try(&a), DIBS_OK);
    assert_status(actor_try(&b), DIBS_BUSY);
    assert_status(actor_queue(&b), DIBS_BUSY);
    actor_expect_quiet(&a, DIBS__NOTICE_WANTED);
}

static void a_later_lease_is_not_told_for_an_earlier_one(void **state)
{
    actor a = telling(contract_actor(*state, 0));
    actor b = contract_actor(*state, 0);
    actor c = contract_actor(*state, 1);

    assert_status(actor_try(&a), DIBS_OK);
    assert_status(actor_release(&a), DIBS_OK);
    assert_status(actor_try(&b), DIBS_OK);
    assert_status(actor_try(&c), DIBS_BUSY);
    actor_expect_quiet(&b, DIBS__NOTICE_WANTED);
    actor_expect_quiet(&a, DIBS__NOTICE_WANTED);
}

static void readers_are_told_of_a_writer(void **state)
{
    actor one = telling(contract_sharer(*state, 0));
    actor silent = contract_sharer(*state, 0);
    actor two = telling(contract_sharer(*state, 1));
    actor writer = contract_actor(*state, 2);
    actor reader = contract_sharer(*state, 2);

    assert_status(actor_try(&one), DIBS_OK);
    assert_status(actor_try(&silent), DIBS_OK);
    assert_status(actor_try(&two), DIBS_OK); /* refused by nobody */
    actor_expect_quiet(&one, DIBS__NOTICE_WANTED);
    assert_status(actor_queue(&writer), DIBS_BUSY);
    expect_notice(&one, DIBS__NOTICE_WANTED);
    expect_notice(&two, DIBS__NOTICE_WANTED);
    assert_status(actor_try(&reader), DIBS_BUSY); /* the writer is first */
    expect_notice(&one, DIBS__NOTICE_WANTED);
    expect_notice(&two, DIBS__NOTICE_WANTED);
    actor_expect_quiet(&silent, DIBS__NOTICE_WANTED);
}

static void readers_are_told_of_one_that_may_not_upgrade(void **state)
{
    actor one = telling(contract_sharer(*state, 0));
    actor two = telling(contract_sharer(*state, 1));
    dibs__answer ans;

    assert_status(actor_try(&one), DIBS_OK);
    assert_status(actor_try(&two), DIBS_OK);
    assert_status(actor_convert(&one, DIBS__EXCLUSIVE, NULL, 10000, &ans),
                  DIBS_BUSY);
    expect_notice(&two, DIBS__NOTICE_WANTED);
    actor_expect_quiet(&one, DIBS__NOTICE_WANTED);
}

static void holders_of_permits_are_told(void **state)
{
    actor one = telling(contract_permits(*state, 0, 2, 4));
    actor two = telling(contract_permits(*state, 1, 1, 4));
    actor large = contract_permits(*state, 2, 2, 4);

    assert_status(actor_try(&one), DIBS_OK);
    assert_status(actor_try(&two), DIBS_OK);
    actor_expect_quiet(&one, DIBS__NOTICE_WANTED);
    assert_status(actor_try(&large), DIBS_BUSY);
    expect_notice(&one, DIBS__NOTICE_WANTED);
    expect_notice(&two, DIBS__NOTICE_WANTED);
}

static void one_served_from_the_queue_is_told(void **state)
{
    actor a = contract_actor(*state, 0);
    actor b = telling(contract_actor(*state, 1));
    actor c = contract_actor(*state, 2);

    assert_status(actor_try(&a), DIBS_OK);
    assert_status(actor_queue(&b), DIBS_BUSY);
    assert_status(actor_release(&a), DIBS_OK);
    actor_expect_claim(&b);
    assert_status(actor_try(&c), DIBS_BUSY);
    expect_notice(&b, DIBS__NOTICE_WANTED);
    assert_status(actor_renew(&b, 20000, NULL), DIBS_OK);
    assert_status(actor_queue(&c), DIBS_BUSY);
    expect_notice(&b, DIBS__NOTICE_WANTED);
}

static void what_is_over_is_told_nothing(void **state)
{
    contract *t = *state;
    actor left = telling(contract_sharer(t, 0));
    actor dead = telling(contract_sharer(t, 1));
    actor alive = contract_sharer(t, 2);
    actor writer = contract_actor(t, 2);
    contract_view view;

    dead.ask.ttl_ms = contract_brief_ms(100);
    assert_status(actor_try(&left), DIBS_OK);
    assert_status(actor_try(&dead), DIBS_OK);
    assert_status(actor_try(&alive), DIBS_OK);
    assert_status(actor_leave(&left, false, 10000), DIBS_OK);
    contract_await(t, t->name, 2, &view);
    assert_status(actor_try(&writer), DIBS_BUSY);
    actor_expect_quiet(&left, DIBS__NOTICE_WANTED);
    actor_expect_quiet(&dead, DIBS__NOTICE_WANTED);
}

static void one_without_a_doorbell_refuses_all_the_same(void **state)
{
    contract *t = *state;
    actor deaf = telling(contract_actor(t, 0));
    actor b = contract_actor(t, 1);

    dibs__store_close(t->st[0]);
    t->st[0] = contract_open();
    assert_status(actor_try(&deaf), DIBS_OK);
    assert_status(actor_try(&b), DIBS_BUSY);
    assert_status(actor_queue(&b), DIBS_BUSY);
    assert_status(actor_release(&deaf), DIBS_OK);
    actor_expect_claim(&b);
}

/* A wish to be told is not part of what others see, nor of the kind. */
static void telling_changes_nothing_else(void **state)
{
    contract *t = *state;
    actor a = telling(contract_actor(t, 0));
    actor b = telling(contract_actor(t, 1));
    contract_view view;
    uint32_t broken = 0;

    a.ask.who = "host:7/me label\tkey=value";
    assert_status(actor_queue(&a), DIBS_OK);
    assert_status(actor_queue(&b), DIBS_BUSY);
    assert_int_equal(contract_look(t, t->name, &view), 2);
    assert_string_equal(view.entries[0].who, a.ask.who);
    assert_string_equal(view.entries[1].who, b.ask.who);
    assert_int_equal(view.entries[0].mode, DIBS__EXCLUSIVE);
    assert_status(t->st[2]->ops->lease->revoke(t->st[2], t->name, 0,
                                               contract_soon(), &broken,
                                               &a.err),
                  DIBS_OK);
    expect_notice(&a, DIBS__NOTICE_BROKEN);
    actor_expect_claim(&b);
    assert_status(actor_renew(&b, 20000, NULL), DIBS_OK);
    assert_status(actor_release(&b), DIBS_OK);
    assert_int_equal(contract_look(t, t->name, &view), 0);
}

int contract_yield(void)
{
    const struct CMUnitTest tests[] = {
        CONTRACT_TEST(the_holder_is_asked_and_nothing_changes),
        CONTRACT_TEST(one_reader_is_asked_or_every_one),
        CONTRACT_TEST(holders_of_permits_are_asked),
        CONTRACT_TEST(one_with_a_claim_is_asked),
        CONTRACT_TEST(one_without_a_doorbell_does_not_count),
        CONTRACT_TEST(nobody_or_another_fence_cannot_be_asked),
        CONTRACT_TEST(a_past_deadline_asks_nobody),
        CONTRACT_TEST(a_holder_is_told_of_each_who_is_refused),
        CONTRACT_TEST(a_holder_is_not_told_of_itself),
        CONTRACT_TEST(one_who_did_not_ask_for_it_is_told_nothing),
        CONTRACT_TEST(a_later_lease_is_not_told_for_an_earlier_one),
        CONTRACT_TEST(readers_are_told_of_a_writer),
        CONTRACT_TEST(readers_are_told_of_one_that_may_not_upgrade),
        CONTRACT_TEST(holders_of_permits_are_told),
        CONTRACT_TEST(one_served_from_the_queue_is_told),
        CONTRACT_TEST(what_is_over_is_told_nothing),
        CONTRACT_TEST(one_without_a_doorbell_refuses_all_the_same),
        CONTRACT_TEST(telling_changes_nothing_else),
    };

    return cmocka_run_group_tests_name("yield", tests, NULL, NULL);
}
