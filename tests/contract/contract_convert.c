/* contract_convert.c - a held lease becomes another: upgrade, downgrade, transfer. */
/* SPDX-License-Identifier: MIT */
#include "contract.h"

enum { LONG_MS = 10000 };

/* Turns it and goes on with what came of it. */
static dibs_status turn(actor *a, dibs__mode mode)
{
    dibs__answer ans;
    dibs_status rc = actor_convert(a, mode, NULL, LONG_MS, &ans);

    if (rc == DIBS_OK)
        a->ans = ans;
    return rc;
}

static dibs_status transfer(actor *a, actor *to)
{
    return actor_convert(a, a->ask.mode, to, LONG_MS, &to->ans);
}

static dibs_status yield(contract *t, uint32_t *asked)
{
    dibs_error err = {0};

    contract_needs(t, DIBS__CAN_RING);
    return t->st[2]->ops->lease->yield(t->st[2], t->name, 0, contract_soon(),
                                       asked, &err);
}

static void the_only_reader_becomes_the_writer(void **state)
{
    actor a = contract_sharer(*state, 0);
    actor reader = contract_sharer(*state, 1);
    contract_view view;
    uint64_t fence;

    assert_status(actor_try(&a), DIBS_OK);
    fence = a.ans.fence;
    assert_status(turn(&a, DIBS__EXCLUSIVE), DIBS_OK);
    assert_true(a.ans.fence > fence);
    assert_true(a.ans.left_ms > 0 && a.ans.left_ms <= LONG_MS);
    assert_int_equal(contract_look(*state, a.ask.name, &view), 1);
    assert_string_equal(view.entries[0].owner, a.owner);
    assert_int_equal(view.entries[0].mode, DIBS__EXCLUSIVE);
    assert_int_equal(view.entries[0].fence, a.ans.fence);
    assert_string_equal(view.entries[0].who, a.ask.who);
    assert_status(actor_try(&reader), DIBS_BUSY);
    assert_true(reader.ans.fence >= a.ans.fence);
    assert_status(actor_renew(&a, 20000, NULL), DIBS_OK);
    assert_status(actor_release(&a), DIBS_OK);
    assert_status(actor_try(&reader), DIBS_OK);
}

/* Who acted as a reader before must not pass for the writer. */
static void the_fence_before_an_upgrade_renews_nothing(void **state)
{
    actor a = contract_sharer(*state, 0);
    actor before;

    assert_status(actor_try(&a), DIBS_OK);
    before = a;
    assert_status(turn(&a, DIBS__EXCLUSIVE), DIBS_OK);
    assert_status(actor_renew(&before, 60000, NULL), DIBS_LOST);
    assert_status(actor_renew(&a, 20000, NULL), DIBS_OK);
}

static void an_upgrade_is_refused_while_others_share(void **state)
{
    actor a = contract_sharer(*state, 0);
    actor b = contract_sharer(*state, 1);
    actor c = contract_sharer(*state, 2);
    contract_view view;

    assert_status(actor_try(&a), DIBS_OK);
    assert_status(actor_try(&b), DIBS_OK);
    assert_status(turn(&a, DIBS__EXCLUSIVE), DIBS_BUSY);
    assert_status(a.err.status, DIBS_BUSY);
    assert_status(turn(&b, DIBS__EXCLUSIVE), DIBS_BUSY);
    assert_int_equal(contract_look(*state, a.ask.name, &view), 2);
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(view.entries[i].mode, DIBS__SHARED);
    assert_status(actor_try(&c), DIBS_OK); /* nothing waits meanwhile */
    assert_status(actor_release(&c), DIBS_OK);
    assert_status(actor_renew(&a, 20000, NULL), DIBS_OK);
    assert_status(actor_release(&b), DIBS_OK);
    assert_status(turn(&a, DIBS__EXCLUSIVE), DIBS_OK);
}

static void an_upgrade_waits_for_the_dead_and_for_those_who_left(void **state)
{
    actor a = contract_sharer(*state, 0);
    actor dead = contract_sharer(*state, 1);
    actor left = contract_sharer(*state, 2);
    dibsx_nsec began_at = dibsx_now();
    dibsx_nsec end = dibsx_after_ms(began_at, CONTRACT_BOUND_MS);
    dibs_status rc;

    dead.ask.ttl_ms = contract_brief_ms(100);
    assert_status(actor_try(&a), DIBS_OK);
    assert_status(actor_try(&dead), DIBS_OK);
    assert_status(actor_try(&left), DIBS_OK);
    assert_status(actor_leave(&left, false, 200), DIBS_OK);
    while ((rc = turn(&a, DIBS__EXCLUSIVE)) == DIBS_BUSY && dibsx_now() < end)
        contract_sleep_until(dibsx_now() + 5 * DIBSX_MS);
    IN_TIME(rc != DIBS_BUSY);
    assert_status(rc, DIBS_OK);
    assert_true(contract_ms_since(began_at) >= 200 - CONTRACT_DRIFT_MS);
    assert_status(actor_renew(&dead, 60000, NULL), DIBS_LOST);
}

static void the_queue_does_not_come_between_an_upgrade(void **state)
{
    actor a = contract_sharer(*state, 0);
    actor writer = contract_actor(*state, 1);
    actor reader = contract_sharer(*state, 2);

    assert_status(actor_try(&a), DIBS_OK);
    assert_status(actor_queue(&writer), DIBS_BUSY);
    assert_status(actor_queue(&reader), DIBS_BUSY);
    assert_status(turn(&a, DIBS__EXCLUSIVE), DIBS_OK);
    assert_status(actor_queue(&writer), DIBS_BUSY);
    assert_int_equal(writer.ans.ahead, 0);
    assert_status(actor_queue(&reader), DIBS_BUSY);
    assert_int_equal(reader.ans.ahead, 1);
    assert_status(actor_release(&a), DIBS_OK);
    actor_expect_claim(&writer);
    assert_status(actor_release(&writer), DIBS_OK);
    actor_expect_claim(&reader);
}

static void a_downgrade_keeps_the_fence_and_lets_readers_in(void **state)
{
    actor a = contract_actor(*state, 0);
    actor one = contract_sharer(*state, 1);
    actor two = contract_sharer(*state, 2);
    actor late = contract_sharer(*state, 2);
    actor writer = contract_actor(*state, 1);
    uint64_t fence;

    assert_status(actor_try(&a), DIBS_OK);
    fence = a.ans.fence;
    assert_status(actor_queue(&one), DIBS_BUSY);
    assert_status(actor_queue(&two), DIBS_BUSY);
    assert_status(turn(&a, DIBS__SHARED), DIBS_OK);
    assert_int_equal(a.ans.fence, fence);
    actor_expect_claim(&one);
    actor_expect_claim(&two);
    assert_status(actor_try(&late), DIBS_OK);
    assert_status(actor_try(&writer), DIBS_BUSY);
    assert_status(actor_renew(&a, 20000, NULL), DIBS_OK);
    assert_status(actor_release(&a), DIBS_OK);
    assert_status(actor_try(&writer), DIBS_BUSY);
}

static void a_downgrade_does_not_go_past_a_waiting_writer(void **state)
{
    actor a = contract_actor(*state, 0);
    actor first = contract_sharer(*state, 1);
    actor writer = contract_actor(*state, 2);
    actor second = contract_sharer(*state, 0);
    contract_view view;

    assert_status(actor_try(&a), DIBS_OK);
    assert_status(actor_queue(&first), DIBS_BUSY);
    assert_status(actor_queue(&writer), DIBS_BUSY);
    assert_status(actor_queue(&second), DIBS_BUSY);
    assert_status(turn(&a, DIBS__SHARED), DIBS_OK);
    actor_expect_claim(&first);
    assert_status(actor_queue(&second), DIBS_BUSY);
    assert_int_equal(second.ans.ahead, 1);
    assert_int_equal(contract_look(*state, a.ask.name, &view), 4);
    assert_status(turn(&a, DIBS__EXCLUSIVE), DIBS_BUSY);
    assert_status(actor_release(&a), DIBS_OK);
    assert_status(actor_release(&first), DIBS_OK);
    actor_expect_claim(&writer);
}

static void a_lease_converted_to_and_fro_stays_held(void **state)
{
    actor a = contract_actor(*state, 0);
    actor reader = contract_sharer(*state, 1);
    uint64_t fence = 0;

    assert_status(actor_try(&a), DIBS_OK);
    for (int i = 0; i < 5; i++) {
        assert_true(a.ans.fence > fence);
        fence = a.ans.fence;
        assert_status(turn(&a, DIBS__SHARED), DIBS_OK);
        assert_int_equal(a.ans.fence, fence);
        assert_status(actor_try(&reader), DIBS_OK);
        assert_status(turn(&a, DIBS__EXCLUSIVE), DIBS_BUSY);
        assert_status(actor_release(&reader), DIBS_OK);
        assert_status(turn(&a, DIBS__EXCLUSIVE), DIBS_OK);
        assert_status(actor_try(&reader), DIBS_BUSY);
    }
    assert_status(actor_release(&a), DIBS_OK);
    assert_status(actor_try(&reader), DIBS_OK);
}

static void a_transfer_gives_it_to_another_under_a_new_fence(void **state)
{
    actor a = contract_actor(*state, 0);
    actor b = contract_actor(*state, 1);
    actor c = contract_actor(*state, 2);
    contract_view view;
    uint64_t fence;

    assert_status(actor_try(&a), DIBS_OK);
    assert_status(transfer(&a, &b), DIBS_OK);
    fence = b.ans.fence;
    assert_true(fence > a.ans.fence);
    assert_true(b.ans.left_ms > 0);
    assert_status(actor_renew(&a, 60000, NULL), DIBS_LOST);
    assert_status(actor_release(&a), DIBS_LOST);
    assert_int_equal(contract_look(*state, a.ask.name, &view), 1);
    assert_string_equal(view.entries[0].owner, b.owner);
    assert_true(view.entries[0].holder && !view.entries[0].claim);
    assert_int_equal(view.entries[0].fence, fence);
    assert_true(view.entries[0].left_ms <= LONG_MS);
    assert_status(actor_try(&c), DIBS_BUSY);
    assert_status(actor_try(&b), DIBS_OK);
    assert_int_equal(b.ans.fence, fence);
    assert_status(actor_renew(&b, 20000, NULL), DIBS_OK);
    assert_status(actor_release(&b), DIBS_OK);
    assert_status(actor_try(&c), DIBS_OK);
}

static void the_queue_does_not_come_between_a_transfer(void **state)
{
    actor a = contract_actor(*state, 0);
    actor b = contract_actor(*state, 1);
    actor waiter = contract_actor(*state, 2);

    assert_status(actor_try(&a), DIBS_OK);
    assert_status(actor_queue(&waiter), DIBS_BUSY);
    assert_status(transfer(&a, &b), DIBS_OK);
    assert_status(actor_release(&a), DIBS_LOST);
    assert_status(actor_queue(&waiter), DIBS_BUSY);
    assert_int_equal(waiter.ans.ahead, 0);
    assert_true(waiter.ans.fence >= b.ans.fence);
    assert_status(actor_release(&b), DIBS_OK);
    actor_expect_claim(&waiter);
}

/* The old owner's bell is not the new one's; who renews can be notified. */
static void a_transferred_lease_has_the_doorbell_of_who_renews_it(void **state)
{
    contract *t = *state;
    actor a = contract_actor(t, 0);
    actor b = contract_actor(t, 1);
    uint64_t fence = 0;
    uint32_t count = 7;

    assert_status(actor_try(&a), DIBS_OK);
    assert_status(yield(t, &count), DIBS_OK);
    assert_int_equal(count, 1);
    assert_status(transfer(&a, &b), DIBS_OK);
    assert_status(yield(t, &count), DIBS_OK);
    assert_int_equal(count, 0);
    assert_status(actor_renew(&b, 20000, NULL), DIBS_OK);
    assert_status(yield(t, &count), DIBS_OK);
    assert_int_equal(count, 1);
    IN_TIME(actor_notified(&b, DIBS__NOTICE_YIELD, &fence));
    assert_int_equal(fence, b.ans.fence);
    assert_status(t->st[2]->ops->lease->revoke(t->st[2], t->name, 0,
                                               contract_soon(), &count, &b.err),
                  DIBS_OK);
    IN_TIME(actor_notified(&b, DIBS__NOTICE_BROKEN, &fence));
    assert_int_equal(fence, b.ans.fence);
    b.handle = 0;
    actor_expect_quiet(&b, DIBS__NOTICE_YIELD);
}

static void a_reader_hands_on_its_share_beside_others(void **state)
{
    actor a = contract_sharer(*state, 0);
    actor other = contract_sharer(*state, 1);
    actor b = contract_sharer(*state, 2);
    actor writer = contract_actor(*state, 2);

    assert_status(actor_try(&a), DIBS_OK);
    assert_status(actor_try(&other), DIBS_OK);
    assert_status(transfer(&a, &b), DIBS_OK);
    assert_true(b.ans.fence > other.ans.fence);
    assert_status(actor_release(&a), DIBS_LOST);
    assert_status(actor_renew(&other, 20000, NULL), DIBS_OK);
    assert_status(actor_release(&other), DIBS_OK);
    assert_status(actor_try(&writer), DIBS_BUSY);
    assert_status(actor_release(&b), DIBS_OK);
    assert_status(actor_try(&writer), DIBS_OK);
}

static void mode_and_owner_may_change_in_one_step(void **state)
{
    actor a = contract_sharer(*state, 0);
    actor other = contract_sharer(*state, 1);
    actor b = contract_actor(*state, 2);
    contract_view view;

    assert_status(actor_try(&a), DIBS_OK);
    assert_status(actor_try(&other), DIBS_OK);
    assert_status(actor_convert(&a, DIBS__EXCLUSIVE, &b, LONG_MS, &b.ans),
                  DIBS_BUSY);
    assert_status(actor_renew(&a, LONG_MS, NULL), DIBS_OK);
    assert_status(actor_release(&other), DIBS_OK);
    assert_status(actor_convert(&a, DIBS__EXCLUSIVE, &b, LONG_MS, &b.ans),
                  DIBS_OK);
    assert_true(b.ans.fence > a.ans.fence);
    assert_status(actor_renew(&a, LONG_MS, NULL), DIBS_LOST);
    assert_int_equal(contract_look(*state, a.ask.name, &view), 1);
    assert_string_equal(view.entries[0].owner, b.owner);
    assert_int_equal(view.entries[0].mode, DIBS__EXCLUSIVE);
    assert_status(actor_release(&b), DIBS_OK);
}

/* The answer was lost and the step is sent again, perhaps by another way. */
static void a_repeated_conversion_answers_the_stored_fence(void **state)
{
    actor a = contract_sharer(*state, 0);
    actor b = contract_actor(*state, 2);
    dibs__answer first, again;

    assert_status(actor_try(&a), DIBS_OK);
    assert_status(actor_convert(&a, DIBS__EXCLUSIVE, NULL, LONG_MS, &first),
                  DIBS_OK);
    a.handle = 1;
    assert_status(actor_convert(&a, DIBS__EXCLUSIVE, NULL, LONG_MS, &again),
                  DIBS_OK);
    assert_int_equal(again.fence, first.fence);
    a.ans = first;
    assert_status(actor_convert(&a, DIBS__EXCLUSIVE, &b, LONG_MS, &first),
                  DIBS_OK);
    a.handle = 0;
    assert_status(actor_convert(&a, DIBS__EXCLUSIVE, &b, LONG_MS, &again),
                  DIBS_OK);
    assert_int_equal(again.fence, first.fence);
    b.ans = first;
    for (int i = 0; i < 2; i++) {
        assert_status(turn(&b, DIBS__SHARED), DIBS_OK);
        assert_int_equal(b.ans.fence, first.fence);
    }
    assert_status(actor_release(&b), DIBS_OK);
}

static void
a_repeated_transfer_does_not_bring_back_what_was_released(void **state)
{
    actor a = contract_actor(*state, 0);
    actor b = contract_actor(*state, 1);
    actor c = contract_actor(*state, 2);
    contract_view view;

    assert_status(actor_try(&a), DIBS_OK);
    assert_status(transfer(&a, &b), DIBS_OK);
    assert_status(actor_release(&b), DIBS_OK);
    assert_status(transfer(&a, &b), DIBS_LOST);
    assert_int_equal(contract_look(*state, a.ask.name, &view), 0);
    assert_status(actor_try(&c), DIBS_OK);
    assert_status(transfer(&a, &b), DIBS_LOST);
    assert_status(actor_renew(&c, 20000, NULL), DIBS_OK);
}

static void a_claim_that_is_converted_is_whole(void **state)
{
    contract *t = *state;
    const dibs__mode modes[] = {DIBS__SHARED, DIBS__EXCLUSIVE};
    actor heir = contract_actor(t, 0);
    char name[64];

    for (size_t i = 0; i < 2; i++) {
        actor a = contract_actor(t, 0);
        actor b = contract_actor(t, 1);
        contract_view view;
        dibs__answer ans;

        contract_name(name, sizeof(name), "claim");
        a.ask.name = b.ask.name = name;
        assert_status(actor_try(&a), DIBS_OK);
        assert_status(actor_queue(&b), DIBS_BUSY);
        assert_status(actor_release(&a), DIBS_OK);
        actor_expect_claim(&b);
        assert_status(actor_convert(&b, modes[i], i == 1 ? &heir : NULL,
                                    LONG_MS, &ans),
                      DIBS_OK);
        assert_false(ans.claim);
        assert_true(ans.left_ms > DIBS__CLAIM_MS);
        assert_int_equal(contract_look(t, name, &view), 1);
        assert_false(view.entries[0].claim);
        assert_true(view.entries[0].left_ms > DIBS__CLAIM_MS);
    }
}

static void permits_change_their_owner_only(void **state)
{
    actor a = contract_permits(*state, 0, 2, 3);
    actor b = contract_permits(*state, 1, 2, 3);
    actor two = contract_permits(*state, 2, 2, 3);
    actor one = contract_permits(*state, 2, 1, 3);

    assert_status(actor_try(&a), DIBS_OK);
    assert_status(turn(&a, DIBS__EXCLUSIVE), DIBS_INVALID);
    assert_status(a.err.status, DIBS_INVALID);
    assert_status(turn(&a, DIBS__SHARED), DIBS_INVALID);
    assert_status(actor_renew(&a, LONG_MS, NULL), DIBS_OK);
    assert_status(transfer(&a, &b), DIBS_OK);
    assert_true(b.ans.fence > a.ans.fence);
    assert_status(actor_release(&a), DIBS_LOST);
    assert_status(actor_try(&two), DIBS_BUSY);
    assert_status(actor_try(&one), DIBS_OK);
    assert_status(actor_release(&b), DIBS_OK);
    assert_status(actor_try(&two), DIBS_OK);
    assert_status(actor_try(&b), DIBS_BUSY);
}

static void a_lock_does_not_become_permits(void **state)
{
    contract *t = *state;
    const dibs__mode modes[] = {DIBS__EXCLUSIVE, DIBS__SHARED};

    for (size_t i = 0; i < 2; i++) {
        actor a = contract_actor(t, 0);
        contract_view view;

        a.ask.mode = modes[i];
        assert_status(actor_try(&a), DIBS_OK);
        assert_status(turn(&a, DIBS__PERMITS), DIBS_INVALID);
        assert_int_equal(contract_look(t, t->name, &view), 1);
        assert_int_equal(view.entries[0].mode, modes[i]);
        assert_int_equal(view.entries[0].fence, a.ans.fence);
        assert_status(actor_release(&a), DIBS_OK);
    }
}

static void no_conversion_shortens_a_lease(void **state)
{
    contract *t = *state;
    const dibs__mode modes[] = {DIBS__SHARED, DIBS__EXCLUSIVE, DIBS__EXCLUSIVE};
    actor a = contract_actor(t, 0);
    actor heir = contract_actor(t, 1);
    dibsx_nsec asked_at = dibsx_now();

    assert_status(actor_try(&a), DIBS_OK);
    for (size_t i = 0; i < 3; i++) {
        contract_view view;
        dibs__answer ans;
        int64_t least_ms;

        assert_status(actor_convert(&a, modes[i], i == 2 ? &heir : NULL, 50,
                                    &ans),
                      DIBS_OK);
        least_ms = LONG_MS - contract_ms_since(asked_at) - CONTRACT_DRIFT_MS;
        assert_true(ans.left_ms >= least_ms && ans.left_ms <= LONG_MS);
        assert_int_equal(contract_look(t, t->name, &view), 1);
        least_ms = LONG_MS - contract_ms_since(asked_at) - CONTRACT_DRIFT_MS;
        assert_true(view.entries[0].left_ms >= least_ms);
        a.ans = ans;
    }
}

static void a_conversion_lengthens_what_has_less_left(void **state)
{
    contract *t = *state;
    actor a = contract_sharer(t, 0);
    contract_view view;
    dibs__answer ans;

    a.ask.ttl_ms = contract_brief_ms(500);
    assert_status(actor_try(&a), DIBS_OK);
    assert_status(actor_convert(&a, DIBS__EXCLUSIVE, NULL, 20000, &ans),
                  DIBS_OK);
    assert_true(ans.left_ms > LONG_MS && ans.left_ms <= 20000);
    a.ans = ans;
    assert_status(actor_convert(&a, DIBS__SHARED, NULL, 40000, &ans), DIBS_OK);
    assert_true(ans.left_ms > 20000 && ans.left_ms <= 40000);
    assert_int_equal(contract_look(t, t->name, &view), 1);
    assert_true(view.entries[0].left_ms > 20000);
    assert_true(view.entries[0].left_ms <= 40000);
}

/* In whatever way it was turned, and however long it was to last before. */
static void a_converted_lease_ends_like_any_other(void **state)
{
    contract *t = *state;
    actor a = contract_sharer(t, 0), heir = contract_actor(t, 1);
    actor next = contract_actor(t, 2);
    dibsx_nsec began_at = dibsx_now();
    dibs__answer ans;

    a.ask.ttl_ms = contract_brief_ms(100);
    assert_status(actor_try(&a), DIBS_OK);
    for (int i = 0; i < 3; i++) {
        assert_status(actor_convert(&a, i % 2 ? DIBS__SHARED : DIBS__EXCLUSIVE,
                                    NULL, contract_brief_ms(150 + 50 * i),
                                    &ans),
                      DIBS_OK);
        a.ans = ans;
    }
    assert_status(actor_convert(&a, DIBS__EXCLUSIVE, &heir,
                                contract_brief_ms(300), &heir.ans),
                  DIBS_OK);
    assert_true(heir.ans.left_ms <= contract_brief_ms(300));
    IN_TIME(actor_queue(&next) == DIBS_BUSY);
    assert_true(next.ans.left_ms > 0 &&
                next.ans.left_ms <= contract_brief_ms(300));
    assert_status(actor_until(&next, CONTRACT_BOUND_MS), DIBS_OK);
    assert_true(contract_ms_since(began_at) >= 300 - CONTRACT_DRIFT_MS);
    assert_status(actor_renew(&heir, 60000, NULL), DIBS_LOST);
}

static void a_lease_that_is_not_held_cannot_be_converted(void **state)
{
    actor a = contract_sharer(*state, 0);
    actor writer = contract_actor(*state, 1);
    actor heir = contract_actor(*state, 2);
    contract_view view;
    uint64_t fence;

    a.ans.fence = 1;
    assert_status(turn(&a, DIBS__EXCLUSIVE), DIBS_LOST);
    assert_status(a.err.status, DIBS_LOST);
    assert_status(actor_try(&a), DIBS_OK);
    fence = a.ans.fence;
    a.ans.fence = fence + 1;
    assert_status(turn(&a, DIBS__EXCLUSIVE), DIBS_LOST);
    assert_status(turn(&a, DIBS__SHARED), DIBS_LOST);
    assert_status(transfer(&a, &heir), DIBS_LOST);
    a.ans.fence = fence - 1;
    assert_status(turn(&a, DIBS__EXCLUSIVE), DIBS_LOST);
    assert_status(transfer(&a, &heir), DIBS_LOST);
    assert_int_equal(contract_look(*state, a.ask.name, &view), 1);
    assert_int_equal(view.entries[0].mode, DIBS__SHARED);
    assert_int_equal(view.entries[0].fence, fence);
    assert_status(actor_queue(&writer), DIBS_BUSY);
    writer.ans.fence = fence;
    assert_status(turn(&writer, DIBS__SHARED), DIBS_LOST);
    assert_status(transfer(&writer, &heir), DIBS_LOST);
    a.ans.fence = fence;
    assert_status(actor_release(&a), DIBS_OK);
    assert_status(turn(&a, DIBS__EXCLUSIVE), DIBS_LOST);
    assert_status(transfer(&a, &heir), DIBS_LOST);
}

static void an_expired_lease_cannot_be_converted(void **state)
{
    actor a = contract_actor(*state, 0);
    actor heir = contract_actor(*state, 1);
    contract_view view;

    a.ask.ttl_ms = contract_brief_ms(100);
    assert_status(actor_try(&a), DIBS_OK);
    contract_await(*state, a.ask.name, 0, &view);
    assert_status(turn(&a, DIBS__SHARED), DIBS_LOST);
    assert_status(transfer(&a, &heir), DIBS_LOST);
    assert_int_equal(contract_look(*state, a.ask.name, &view), 0);
}

/* Repeated conversions are answered for as long as the lease lasts, and no longer. */
static void the_last_millisecond_is_not_converted(void **state)
{
    enum { LEASES = 20 };
    contract *t = *state;
    const int64_t ttl_ms = contract_brief_ms(20);

    contract_needs(t, DIBS__CAN_CONVERT);
    for (int i = 0; i < LEASES; i++) {
        actor a = contract_actor(t, 0), b = contract_actor(t, 0);
        dibs__answer ans;
        dibs_status rc;

        a.ask.ttl_ms = ttl_ms;
        assert_status(actor_until(&a, CONTRACT_BOUND_MS), DIBS_OK);
        do {
            rc = actor_convert(&a, DIBS__EXCLUSIVE, &b, ttl_ms, &ans);
            assert_true(rc == DIBS_OK ? ans.left_ms > 0 : rc == DIBS_LOST);
        } while (rc == DIBS_OK);
    }
}

/* Rule 8 of store/grant.h: who has given up is granted nothing, in no way. */
static void nothing_is_handed_to_one_who_has_left(void **state)
{
    actor a = contract_actor(*state, 0);
    actor heir = contract_actor(*state, 1);
    contract_view view;

    assert_status(actor_try(&a), DIBS_OK);
    assert_status(actor_leave(&heir, true, 0), DIBS_LOST);
    assert_status(transfer(&a, &heir), DIBS_LOST);
    assert_int_equal(contract_look(*state, a.ask.name, &view), 1);
    assert_string_equal(view.entries[0].owner, a.owner);
    assert_int_equal(view.entries[0].fence, a.ans.fence);
    assert_status(actor_renew(&a, LONG_MS, NULL), DIBS_OK);
}

static void a_past_deadline_converts_nothing(void **state)
{
    contract *t = *state;
    dibs__store *st = t->st[0];
    actor a = contract_sharer(t, 0);
    dibs__conversion step = {.name = t->name,
                             .owner = a.owner,
                             .mode = DIBS__EXCLUSIVE,
                             .to_owner = a.owner,
                             .ttl_ms = 60000};
    contract_view view;
    dibs__answer ans;

    assert_status(actor_try(&a), DIBS_OK);
    step.fence = a.ans.fence;
    assert_status(st->ops->lease->convert(st, &step, dibsx_now() - DIBSX_SEC,
                                          &ans, &a.err),
                  DIBS_UNAVAIL);
    assert_int_equal(contract_look(t, t->name, &view), 1);
    assert_int_equal(view.entries[0].mode, DIBS__SHARED);
    assert_int_equal(view.entries[0].fence, a.ans.fence);
    assert_true(view.entries[0].left_ms <= LONG_MS);
}

int contract_convert(void)
{
    const struct CMUnitTest tests[] = {
        CONTRACT_TEST(the_only_reader_becomes_the_writer),
        CONTRACT_TEST(the_fence_before_an_upgrade_renews_nothing),
        CONTRACT_TEST(an_upgrade_is_refused_while_others_share),
        CONTRACT_TEST(an_upgrade_waits_for_the_dead_and_for_those_who_left),
        CONTRACT_TEST(the_queue_does_not_come_between_an_upgrade),
        CONTRACT_TEST(a_downgrade_keeps_the_fence_and_lets_readers_in),
        CONTRACT_TEST(a_downgrade_does_not_go_past_a_waiting_writer),
        CONTRACT_TEST(a_lease_converted_to_and_fro_stays_held),
        CONTRACT_TEST(a_transfer_gives_it_to_another_under_a_new_fence),
        CONTRACT_TEST(the_queue_does_not_come_between_a_transfer),
        CONTRACT_TEST(a_transferred_lease_has_the_doorbell_of_who_renews_it),
        CONTRACT_TEST(a_reader_hands_on_its_share_beside_others),
        CONTRACT_TEST(mode_and_owner_may_change_in_one_step),
        CONTRACT_TEST(a_repeated_conversion_answers_the_stored_fence),
        CONTRACT_TEST(
            a_repeated_transfer_does_not_bring_back_what_was_released),
        CONTRACT_TEST(a_claim_that_is_converted_is_whole),
        CONTRACT_TEST(permits_change_their_owner_only),
        CONTRACT_TEST(a_lock_does_not_become_permits),
        CONTRACT_TEST(no_conversion_shortens_a_lease),
        CONTRACT_TEST(a_conversion_lengthens_what_has_less_left),
        CONTRACT_TEST(a_converted_lease_ends_like_any_other),
        CONTRACT_TEST(a_lease_that_is_not_held_cannot_be_converted),
        CONTRACT_TEST(an_expired_lease_cannot_be_converted),
        CONTRACT_TEST(the_last_millisecond_is_not_converted),
        CONTRACT_TEST(nothing_is_handed_to_one_who_has_left),
        CONTRACT_TEST(a_past_deadline_converts_nothing),
    };

    return cmocka_run_group_tests_name("convert", tests, NULL, NULL);
}
