/* contract_leave.c - giving up: release, cancel, tombstones, keeping out. */
/* SPDX-License-Identifier: MIT */
#include "contract.h"

static void release_frees_the_name(void **state)
{
    actor a = contract_actor(*state, 0);
    actor b = contract_actor(*state, 1);

    assert_status(actor_try(&a), DIBS_OK);
    assert_status(actor_release(&a), DIBS_OK);
    assert_status(actor_try(&b), DIBS_OK);
}

static void a_repeated_release_finds_nothing(void **state)
{
    actor a = contract_actor(*state, 0);
    actor b = contract_actor(*state, 1);

    assert_status(actor_try(&a), DIBS_OK);
    assert_status(actor_release(&a), DIBS_OK);
    assert_status(actor_release(&a), DIBS_LOST);
    assert_status(actor_try(&b), DIBS_OK);
    assert_status(actor_release(&a), DIBS_LOST);
    assert_status(actor_try(&a), DIBS_BUSY);
}

static void release_by_another_changes_nothing(void **state)
{
    actor a = contract_actor(*state, 0);
    actor b = contract_actor(*state, 1);
    actor c = contract_actor(*state, 2);
    uint64_t fence;

    assert_status(actor_release(&b), DIBS_LOST);
    assert_status(actor_try(&a), DIBS_OK);
    fence = a.ans.fence;
    assert_status(actor_release(&b), DIBS_LOST);
    assert_status(actor_leave(&b, true, 5000), DIBS_LOST);
    assert_status(actor_try(&c), DIBS_BUSY);
    assert_status(actor_try(&a), DIBS_OK);
    assert_int_equal(a.ans.fence, fence);
    assert_status(actor_release(&a), DIBS_OK);
    assert_status(actor_try(&c), DIBS_OK);
}

static void a_late_acquire_after_release_is_granted_nothing(void **state)
{
    actor a = contract_actor(*state, 0);
    actor b = contract_actor(*state, 1);
    contract_view view;

    assert_status(actor_try(&a), DIBS_OK);
    assert_status(actor_leave(&a, true, 0), DIBS_OK);
    a.handle = 2;
    assert_status(actor_try(&a), DIBS_LOST);
    assert_status(actor_queue(&a), DIBS_LOST);
    assert_int_equal(contract_look(*state, a.ask.name, &view), 0);
    assert_status(actor_try(&b), DIBS_OK);
    assert_status(actor_queue(&a), DIBS_LOST);
    assert_status(actor_release(&b), DIBS_OK);
    assert_status(actor_try(&a), DIBS_LOST);
}

/* The ask was given up before it reached the store. */
static void a_tombstone_stands_before_its_owner_ever_asked(void **state)
{
    actor a = contract_actor(*state, 0);
    actor b = contract_actor(*state, 1);

    assert_status(actor_leave(&a, true, 0), DIBS_LOST);
    assert_status(actor_try(&a), DIBS_LOST);
    assert_status(actor_queue(&a), DIBS_LOST);
    assert_status(actor_try(&b), DIBS_OK);
    assert_status(actor_release(&b), DIBS_OK);
}

static void a_late_renewal_under_a_tombstone_is_lost(void **state)
{
    actor a = contract_actor(*state, 0);
    contract_view view;

    assert_status(actor_try(&a), DIBS_OK);
    assert_status(actor_leave(&a, true, 0), DIBS_OK);
    assert_status(actor_renew(&a, 60000, NULL), DIBS_LOST);
    assert_int_equal(contract_look(*state, a.ask.name, &view), 0);
}

static void a_tombstone_concerns_its_owner_and_name_only(void **state)
{
    contract *t = *state;
    actor a = contract_actor(t, 0);
    actor b = contract_actor(t, 0);
    char other[64];

    contract_name(other, sizeof(other), "other");
    assert_status(actor_leave(&a, true, 0), DIBS_LOST);
    assert_status(actor_try(&b), DIBS_OK);
    a.ask.name = other;
    assert_status(actor_try(&a), DIBS_OK);
}

static void a_cancelled_waiter_is_gone_from_the_queue(void **state)
{
    actor a = contract_actor(*state, 0);
    actor b = contract_actor(*state, 1);
    actor c = contract_actor(*state, 2);

    assert_status(actor_try(&a), DIBS_OK);
    assert_status(actor_queue(&b), DIBS_BUSY);
    assert_status(actor_queue(&c), DIBS_BUSY);
    assert_int_equal(c.ans.ahead, 1);
    assert_status(actor_leave(&b, true, 0), DIBS_LOST);
    assert_status(actor_queue(&c), DIBS_BUSY);
    assert_int_equal(c.ans.ahead, 0);
    assert_status(actor_release(&a), DIBS_OK);
    actor_expect_claim(&c);
    assert_status(actor_queue(&b), DIBS_LOST);
    assert_false(actor_hears(&b, DIBS__NOTICE_GRANTED));
}

static void cancel_of_one_granted_meanwhile_is_a_release(void **state)
{
    actor a = contract_actor(*state, 0);
    actor b = contract_actor(*state, 1);
    actor c = contract_actor(*state, 2);

    assert_status(actor_try(&a), DIBS_OK);
    assert_status(actor_queue(&b), DIBS_BUSY);
    assert_status(actor_queue(&c), DIBS_BUSY);
    assert_status(actor_release(&a), DIBS_OK);
    assert_status(actor_leave(&b, true, 0), DIBS_OK);
    actor_expect_claim(&c);
    assert_status(actor_queue(&b), DIBS_LOST);
}

static dibs_status leave_alone(actor *a)
{
    dibs__store *st = a->t->st[a->handle];
    dibs__leave leave = {.name = a->ask.name, .owner = a->owner, .alone = true};

    return st->ops->lease->release(st, &leave, contract_soon(), &a->err);
}

/* It is a hint, and may be wrong. */
static void the_hint_to_be_alone_changes_nothing(void **state)
{
    actor a = contract_actor(*state, 0);
    actor b = contract_actor(*state, 1);
    actor c = contract_actor(*state, 2);

    assert_status(leave_alone(&a), DIBS_LOST);
    assert_status(actor_try(&a), DIBS_OK);
    assert_status(leave_alone(&b), DIBS_LOST);
    assert_status(actor_try(&b), DIBS_BUSY);
    assert_status(leave_alone(&a), DIBS_OK);
    assert_status(leave_alone(&a), DIBS_LOST);
    assert_status(actor_try(&a), DIBS_OK);
    assert_status(actor_queue(&b), DIBS_BUSY);
    assert_status(actor_queue(&c), DIBS_BUSY);
    assert_status(leave_alone(&a), DIBS_OK);
    actor_expect_claim(&b);
    assert_status(leave_alone(&b), DIBS_OK);
    actor_expect_claim(&c);
    assert_status(actor_renew(&c, 20000, NULL), DIBS_OK);
    assert_status(leave_alone(&c), DIBS_OK);
    assert_status(actor_try(&b), DIBS_OK);
}

/* Nor where the lease has become another meanwhile. */
static void
the_hint_to_be_alone_serves_who_waits_for_a_converted_lease(void **state)
{
    actor a = contract_sharer(*state, 0);
    actor heir = contract_actor(*state, 1);
    actor writer = contract_actor(*state, 2);
    actor reader = contract_sharer(*state, 2);
    dibs__answer ans;

    assert_status(actor_try(&a), DIBS_OK);
    assert_status(actor_queue(&writer), DIBS_BUSY);
    assert_status(actor_convert(&a, DIBS__EXCLUSIVE, NULL, 10000, &ans),
                  DIBS_OK);
    a.ans = ans;
    assert_status(actor_convert(&a, DIBS__EXCLUSIVE, &heir, 10000, &heir.ans),
                  DIBS_OK);
    assert_status(leave_alone(&a), DIBS_LOST);
    assert_status(actor_queue(&writer), DIBS_BUSY);
    assert_status(actor_renew(&heir, 20000, NULL), DIBS_OK);
    assert_status(leave_alone(&heir), DIBS_OK);
    actor_expect_claim(&writer);
    assert_status(actor_convert(&writer, DIBS__SHARED, NULL, 10000, &ans),
                  DIBS_OK);
    assert_status(actor_try(&reader), DIBS_OK);
    assert_status(actor_queue(&heir), DIBS_BUSY);
    assert_status(leave_alone(&reader), DIBS_OK);
    assert_status(leave_alone(&writer), DIBS_OK);
    actor_expect_claim(&heir);
}

static void keeping_lasts_its_time_and_no_longer(void **state)
{
    actor a = contract_actor(*state, 0);
    actor b = contract_actor(*state, 1);
    dibsx_nsec left_at;

    assert_status(actor_try(&a), DIBS_OK);
    left_at = dibsx_now();
    assert_status(actor_leave(&a, false, 300), DIBS_OK);
    /* A minority of a quorum may hear of it a moment later. */
    do
        IN_TIME(actor_try(&b) == DIBS_BUSY);
    while (b.ans.left_ms > 300);
    assert_status(actor_until(&b, CONTRACT_BOUND_MS), DIBS_OK);
    assert_true(contract_ms_since(left_at) >= 300 - CONTRACT_DRIFT_MS);
    IN_TIME(contract_ms_since(left_at) < pace_ms(3000));
}

static void one_who_left_has_nothing_while_others_are_kept_out(void **state)
{
    actor a = contract_actor(*state, 0);
    actor b = contract_actor(*state, 1);
    contract_view view;
    dibs_status rc;

    assert_status(actor_try(&a), DIBS_OK);
    assert_status(actor_leave(&a, false, 5000), DIBS_OK);
    rc = actor_leave(&a, false, 0); /* the answer was lost, say */
    assert_true(rc == DIBS_OK || rc == DIBS_LOST);
    assert_status(actor_renew(&a, 60000, NULL), DIBS_LOST);
    assert_status(actor_try(&b), DIBS_BUSY);
    assert_int_equal(contract_look(*state, a.ask.name, &view), 1);
    assert_true(view.entries[0].left);
    assert_true(view.entries[0].left_ms > 0);
    assert_true(view.entries[0].left_ms <= 5000);
}

static void keeping_needs_a_lease(void **state)
{
    actor a = contract_actor(*state, 0);
    actor b = contract_actor(*state, 1);

    assert_status(actor_leave(&a, false, 5000), DIBS_LOST);
    assert_status(actor_try(&b), DIBS_OK);
}

/* Keeping may go beyond the time that the lease had left. */
static void keeping_outlasts_the_lease(void **state)
{
    actor a = contract_actor(*state, 0);
    actor b = contract_actor(*state, 1);
    dibsx_nsec left_at;

    a.ask.ttl_ms = contract_brief_ms(150);
    assert_status(actor_try(&a), DIBS_OK);
    left_at = dibsx_now();
    assert_status(actor_leave(&a, false, 400), DIBS_OK);
    assert_status(actor_until(&b, CONTRACT_BOUND_MS), DIBS_OK);
    assert_true(contract_ms_since(left_at) >= 400 - CONTRACT_DRIFT_MS);
}

/* A tombstone keeps its owner out, not the others. */
static void keeping_is_not_as_long_as_a_tombstone(void **state)
{
    actor a = contract_actor(*state, 0);
    actor b = contract_actor(*state, 1);
    dibsx_nsec left_at;

    assert_status(actor_try(&a), DIBS_OK);
    left_at = dibsx_now();
    assert_status(actor_leave(&a, true, 300), DIBS_OK);
    assert_status(actor_queue(&a), DIBS_LOST);
    assert_status(actor_until(&b, CONTRACT_BOUND_MS), DIBS_OK);
    assert_true(contract_ms_since(left_at) >= 300 - CONTRACT_DRIFT_MS);
    assert_status(actor_queue(&a), DIBS_LOST);
}

static void a_waiter_is_served_when_keeping_ends(void **state)
{
    actor a = contract_actor(*state, 0);
    actor b = contract_actor(*state, 1);
    actor c = contract_actor(*state, 2);
    dibsx_nsec left_at;

    assert_status(actor_try(&a), DIBS_OK);
    assert_status(actor_queue(&b), DIBS_BUSY);
    assert_status(actor_queue(&c), DIBS_BUSY);
    left_at = dibsx_now();
    assert_status(actor_leave(&a, false, 300), DIBS_OK);
    IN_TIME(actor_queue(&b) == DIBS_BUSY);
    assert_true(b.ans.queued);
    assert_status(actor_until(&b, CONTRACT_BOUND_MS), DIBS_OK);
    assert_true(contract_ms_since(left_at) >= 300 - CONTRACT_DRIFT_MS);
    assert_status(actor_queue(&c), DIBS_BUSY);
    assert_int_equal(c.ans.ahead, 0);
}

int contract_leave(void)
{
    const struct CMUnitTest tests[] = {
        CONTRACT_TEST(release_frees_the_name),
        CONTRACT_TEST(a_repeated_release_finds_nothing),
        CONTRACT_TEST(release_by_another_changes_nothing),
        CONTRACT_TEST(a_late_acquire_after_release_is_granted_nothing),
        CONTRACT_TEST(a_tombstone_stands_before_its_owner_ever_asked),
        CONTRACT_TEST(a_late_renewal_under_a_tombstone_is_lost),
        CONTRACT_TEST(a_tombstone_concerns_its_owner_and_name_only),
        CONTRACT_TEST(a_cancelled_waiter_is_gone_from_the_queue),
        CONTRACT_TEST(cancel_of_one_granted_meanwhile_is_a_release),
        CONTRACT_TEST(the_hint_to_be_alone_changes_nothing),
        CONTRACT_TEST(
            the_hint_to_be_alone_serves_who_waits_for_a_converted_lease),
        CONTRACT_TEST(keeping_lasts_its_time_and_no_longer),
        CONTRACT_TEST(one_who_left_has_nothing_while_others_are_kept_out),
        CONTRACT_TEST(keeping_needs_a_lease),
        CONTRACT_TEST(keeping_outlasts_the_lease),
        CONTRACT_TEST(keeping_is_not_as_long_as_a_tombstone),
        CONTRACT_TEST(a_waiter_is_served_when_keeping_ends),
    };

    return cmocka_run_group_tests_name("leave", tests, NULL, NULL);
}
