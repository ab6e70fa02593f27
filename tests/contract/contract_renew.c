/* contract_renew.c - renewal: by owner and fence, many at once, never shorter. */
/* SPDX-License-Identifier: MIT */
#include "contract.h"

#include <stdlib.h>

static void renewal_extends(void **state)
{
    actor a = contract_actor(*state, 0);
    actor b = contract_actor(*state, 1);
    dibsx_nsec renewed_at;
    int64_t left_ms = 0;

    a.ask.ttl_ms = contract_brief_ms(300);
    assert_status(actor_try(&a), DIBS_OK);
    renewed_at = dibsx_now();
    assert_status(actor_renew(&a, contract_brief_ms(900), &left_ms), DIBS_OK);
    assert_true(left_ms > contract_brief_ms(300));
    assert_true(left_ms <= contract_brief_ms(900));
    assert_status(actor_until(&b, CONTRACT_BOUND_MS), DIBS_OK);
    assert_true(contract_ms_since(renewed_at) >= 900 - 9 - CONTRACT_DRIFT_MS);
}

static void renewal_never_shortens(void **state)
{
    actor a = contract_actor(*state, 0);
    dibsx_nsec asked_at = dibsx_now();
    int64_t left_ms = 0, gone_ms;

    assert_status(actor_try(&a), DIBS_OK);
    assert_status(actor_renew(&a, 50, &left_ms), DIBS_OK);
    gone_ms = contract_ms_since(asked_at);
    assert_true(left_ms >= a.ask.ttl_ms - gone_ms - CONTRACT_DRIFT_MS);
    assert_status(actor_try(&a), DIBS_OK);
    gone_ms = contract_ms_since(asked_at);
    assert_true(a.ans.left_ms >= a.ask.ttl_ms - gone_ms - CONTRACT_DRIFT_MS);
}

static void renewal_keeps_the_fence(void **state)
{
    actor a = contract_actor(*state, 0);
    uint64_t fence;

    assert_status(actor_try(&a), DIBS_OK);
    fence = a.ans.fence;
    for (int i = 0; i < 5; i++)
        assert_status(actor_renew(&a, 20000 + i, NULL), DIBS_OK);
    assert_status(actor_try(&a), DIBS_OK);
    assert_int_equal(a.ans.fence, fence);
}

static void another_owner_or_fence_renews_nothing(void **state)
{
    actor a = contract_actor(*state, 0);
    actor b = contract_actor(*state, 1);
    contract_view view;
    uint64_t fence;

    assert_status(actor_try(&a), DIBS_OK);
    fence = b.ans.fence = a.ans.fence;
    assert_status(actor_renew(&b, 60000, NULL), DIBS_LOST);
    a.ans.fence = fence - 1;
    assert_status(actor_renew(&a, 60000, NULL), DIBS_LOST);
    a.ans.fence = fence + 1;
    assert_status(actor_renew(&a, 60000, NULL), DIBS_LOST);
    assert_int_equal(contract_look(*state, a.ask.name, &view), 1);
    assert_true(view.entries[0].left_ms <= a.ask.ttl_ms);
    a.ans.fence = fence;
    assert_status(actor_renew(&a, 60000, NULL), DIBS_OK);
}

static void nothing_renews_after_release(void **state)
{
    actor a = contract_actor(*state, 0);
    actor b = contract_actor(*state, 1);
    contract_view view;

    assert_status(actor_try(&a), DIBS_OK);
    assert_status(actor_release(&a), DIBS_OK);
    for (size_t i = 0; i < CONTRACT_HANDLES; i++) {
        a.handle = i;
        assert_status(actor_renew(&a, 60000, NULL), DIBS_LOST);
    }
    assert_int_equal(contract_look(*state, a.ask.name, &view), 0);
    assert_status(actor_try(&b), DIBS_OK);
    assert_status(actor_renew(&a, 60000, NULL), DIBS_LOST);
    assert_int_equal(contract_look(*state, a.ask.name, &view), 1);
    assert_true(view.entries[0].left_ms <= b.ask.ttl_ms);
}

static void nothing_renews_after_expiry(void **state)
{
    actor a = contract_actor(*state, 0);
    actor b = contract_actor(*state, 1);
    dibsx_nsec sent_at = dibsx_now();

    a.ask.ttl_ms = contract_brief_ms(100);
    assert_status(actor_try(&a), DIBS_OK);
    contract_sleep_until(dibsx_after_ms(sent_at, a.ask.ttl_ms) +
                         (dibsx_now() - sent_at) + 20 * DIBSX_MS);
    assert_status(actor_renew(&a, 60000, NULL), DIBS_LOST);
    assert_status(actor_try(&b), DIBS_OK);
    assert_status(actor_renew(&a, 60000, NULL), DIBS_LOST);
}

static void a_waiter_renews_nothing(void **state)
{
    actor a = contract_actor(*state, 0);
    actor b = contract_actor(*state, 1);

    assert_status(actor_try(&a), DIBS_OK);
    assert_status(actor_queue(&b), DIBS_BUSY);
    assert_status(actor_renew(&b, 60000, NULL), DIBS_LOST);
    b.ans.fence = a.ans.fence;
    assert_status(actor_renew(&b, 60000, NULL), DIBS_LOST);
}

enum { MANY = 90 };

typedef struct many {
    actor actors[MANY];
    char names[MANY][64];
    dibs__renewal items[MANY];
    bool queues;
} many;

/* Two thirds are held, one is released. */
static void many_arrange(contract *t, many *m)
{
    for (size_t i = 0; i < MANY; i++) {
        actor *a = &m->actors[i];

        *a = contract_actor(t, 0);
        contract_name(m->names[i], sizeof(m->names[i]), "many");
        a->ask.name = m->names[i];
        assert_status(actor_try(a), DIBS_OK);
        if (i % 3 == 1)
            assert_status(actor_release(a), DIBS_OK);
        m->items[i] = (dibs__renewal){.name = m->names[i],
                                      .owner = a->owner,
                                      .fence = a->ans.fence,
                                      .ttl_ms = 20000 + (int64_t)i,
                                      .rc = DIBS_INTERNAL};
    }
}

/* A client waits for every third name, where one can wait. */
static void many_wait(contract *t, many *m)
{
    m->queues = !dibs__store_cannot(t->st[0], DIBS__CAN_QUEUE);
    for (size_t i = 2; i < MANY && m->queues; i += 3) {
        actor waiter = contract_actor(t, 2);

        waiter.ask.name = m->names[i];
        assert_status(actor_queue(&waiter), DIBS_BUSY);
    }
}

static void many_are_renewed_at_once_each_with_its_own_answer(void **state)
{
    contract *t = *state;
    many *m = calloc(1, sizeof(*m));
    dibs_error err = {0};
    dibsx_nsec waits_since;

    assert_non_null(m);
    many_arrange(t, m);
    waits_since = dibsx_now();
    many_wait(t, m);
    assert_status(t->st[1]->ops->lease->renew(t->st[1], m->items, MANY,
                                              contract_soon(), &err),
                  DIBS_OK);
    /* Places end. */
    IN_TIME(contract_ms_since(waits_since) < DIBS__PLACE_MS);
    for (size_t i = 0; i < MANY; i++) {
        const dibs__renewal *item = &m->items[i];

        if (i % 3 == 1) {
            assert_status(item->rc, DIBS_LOST);
            continue;
        }
        assert_status(item->rc, DIBS_OK);
        assert_true(item->left_ms > 15000 && item->left_ms <= item->ttl_ms);
        assert_int_equal(item->wanted, m->queues && i % 3 == 2);
    }
    free(m);
}

static void wanted_ends_when_the_waiter_leaves(void **state)
{
    contract *t = *state;
    actor a = contract_actor(t, 0);
    actor b = contract_actor(t, 1);
    dibs__renewal item = {.name = t->name, .owner = a.owner, .ttl_ms = 20000};
    dibs__store *st = t->st[0];

    assert_status(actor_try(&a), DIBS_OK);
    assert_status(actor_queue(&b), DIBS_BUSY);
    item.fence = a.ans.fence;
    assert_status(st->ops->lease->renew(st, &item, 1, contract_soon(), &a.err),
                  DIBS_OK);
    assert_true(item.wanted);
    assert_status(actor_release(&b), DIBS_LOST);
    assert_status(st->ops->lease->renew(st, &item, 1, contract_soon(), &a.err),
                  DIBS_OK);
    assert_status(item.rc, DIBS_OK);
    assert_false(item.wanted);
}

int contract_renew(void)
{
    const struct CMUnitTest tests[] = {
        CONTRACT_TEST(renewal_extends),
        CONTRACT_TEST(renewal_never_shortens),
        CONTRACT_TEST(renewal_keeps_the_fence),
        CONTRACT_TEST(another_owner_or_fence_renews_nothing),
        CONTRACT_TEST(nothing_renews_after_release),
        CONTRACT_TEST(nothing_renews_after_expiry),
        CONTRACT_TEST(a_waiter_renews_nothing),
        CONTRACT_TEST(many_are_renewed_at_once_each_with_its_own_answer),
        CONTRACT_TEST(wanted_ends_when_the_waiter_leaves),
    };

    return cmocka_run_group_tests_name("renew", tests, NULL, NULL);
}
