/* contract_lease.c - taking a lease: one holder, one owner, rising fences. */
/* SPDX-License-Identifier: MIT */
#include "contract.h"

static void a_free_name_is_granted(void **state)
{
    actor a = contract_actor(*state, 0);

    assert_status(actor_try(&a), DIBS_OK);
    assert_true(a.ans.fence > 0);
    assert_true(a.ans.left_ms > 0);
    assert_true(a.ans.left_ms <= a.ask.ttl_ms);
    assert_false(a.ans.claim);
    assert_false(a.ans.queued);
}

static void a_second_owner_is_refused(void **state)
{
    actor a = contract_actor(*state, 0);
    actor b = contract_actor(*state, 1);
    actor c = contract_actor(*state, 0);

    assert_status(actor_try(&a), DIBS_OK);
    assert_status(actor_try(&b), DIBS_BUSY);
    assert_true(b.ans.fence >= a.ans.fence);
    assert_true(b.ans.left_ms > 0);
    assert_true(b.ans.left_ms <= a.ask.ttl_ms);
    assert_status(actor_try(&c), DIBS_BUSY);
}

static void a_refused_try_leaves_no_trace(void **state)
{
    actor a = contract_actor(*state, 0);
    actor b = contract_actor(*state, 1);
    contract_view view;

    assert_status(actor_try(&a), DIBS_OK);
    assert_status(actor_try(&b), DIBS_BUSY);
    assert_false(b.ans.queued);
    assert_int_equal(contract_look(*state, a.ask.name, &view), 1);
    assert_string_equal(view.entries[0].owner, a.owner);
    assert_status(actor_release(&a), DIBS_OK);
    assert_int_equal(contract_look(*state, a.ask.name, &view), 0);
    assert_false(actor_hears(&b, DIBS__NOTICE_GRANTED));
}

static void names_are_independent(void **state)
{
    contract *t = *state;
    actor a = contract_actor(t, 0);
    actor b = contract_actor(t, 1);
    char other[64];

    contract_name(other, sizeof(other), "other");
    b.ask.name = other;
    assert_status(actor_try(&a), DIBS_OK);
    assert_status(actor_try(&b), DIBS_OK);
    assert_int_not_equal(a.ans.fence, b.ans.fence);
}

static void a_repeated_acquire_answers_the_same_lease(void **state)
{
    actor a = contract_actor(*state, 0);
    dibs__answer first;
    dibsx_nsec end;

    assert_status(actor_try(&a), DIBS_OK);
    first = a.ans;
    a.handle = 1; /* a retry may come over another connection */
    end = dibsx_after_ms(dibsx_now(), CONTRACT_BOUND_MS);
    do {
        assert_status(actor_queue(&a), DIBS_OK);
        assert_int_equal(a.ans.fence, first.fence);
        assert_true(a.ans.left_ms <= first.left_ms);
        assert_false(a.ans.claim);
    } while (a.ans.left_ms > first.left_ms - 20 && dibsx_now() < end);
    assert_true(a.ans.left_ms <= first.left_ms - 20);
}

static void a_repeated_acquire_does_not_lengthen(void **state)
{
    actor a = contract_actor(*state, 0);
    int64_t before;

    assert_status(actor_try(&a), DIBS_OK);
    before = a.ans.left_ms;
    a.ask.ttl_ms = 10 * a.ask.ttl_ms;
    assert_status(actor_try(&a), DIBS_OK);
    assert_true(a.ans.left_ms <= before);
}

static void a_repeated_acquire_does_not_shorten(void **state)
{
    actor a = contract_actor(*state, 0);
    actor b = contract_actor(*state, 1);
    dibsx_nsec sent_at;

    a.ask.ttl_ms = contract_brief_ms(400);
    sent_at = dibsx_now();
    assert_status(actor_try(&a), DIBS_OK);
    a.ask.ttl_ms = contract_brief_ms(50);
    assert_status(actor_try(&a), DIBS_OK);
    b.ask.flags = 0;
    assert_status(actor_until(&b, CONTRACT_BOUND_MS), DIBS_OK);
    assert_true(contract_ms_since(sent_at) >= 400 - CONTRACT_DRIFT_MS);
}

static void an_expired_lease_goes_to_the_next_who_asks(void **state)
{
    actor a = contract_actor(*state, 0);
    actor b = contract_actor(*state, 1);
    dibsx_nsec sent_at = dibsx_now();

    a.ask.ttl_ms = contract_brief_ms(200);
    assert_status(actor_try(&a), DIBS_OK);
    assert_status(actor_until(&b, CONTRACT_BOUND_MS), DIBS_OK);
    assert_true(contract_ms_since(sent_at) >= 200 - CONTRACT_DRIFT_MS);
    assert_true(b.ans.fence > a.ans.fence);
    assert_status(actor_release(&a), DIBS_LOST);
    assert_status(actor_try(&a), DIBS_BUSY);
}

static void an_expired_lease_is_not_shown(void **state)
{
    actor a = contract_actor(*state, 0);
    dibsx_nsec end = dibsx_after_ms(dibsx_now(), CONTRACT_BOUND_MS);
    contract_view view;

    a.ask.ttl_ms = contract_brief_ms(100);
    assert_status(actor_try(&a), DIBS_OK);
    while (contract_look(*state, a.ask.name, &view) > 0) {
        IN_TIME(dibsx_now() < end);
        contract_sleep_until(dibsx_now() + 5 * DIBSX_MS);
    }
}

/* An owner whose lease ran out and who asks again has a new lease, never the
 * old fence. One may be told that there was no time for one that is so short. */
static void a_lease_after_expiry_is_a_new_one(void **state)
{
    actor a = contract_actor(*state, 0);
    dibsx_nsec end = dibsx_after_ms(dibsx_now(), CONTRACT_BOUND_MS);
    uint64_t first;
    dibs_status rc;

    a.may_fail = true;
    a.ask.ttl_ms = contract_brief_ms(100);
    assert_status(actor_try(&a), DIBS_OK);
    first = a.ans.fence;
    do {
        contract_sleep_until(dibsx_now() + 5 * DIBSX_MS);
        rc = actor_try(&a);
        assert_true(rc == DIBS_OK || rc == DIBS_LOST || rc == DIBS_UNAVAIL ||
                    rc == DIBS_UNKNOWN);
        IN_TIME(dibsx_now() < end);
    } while (rc != DIBS_OK || a.ans.fence == first);
    assert_true(a.ans.fence > first);
}

/* An owner asks again and again, through many leases: one who is told that it holds the
 * name has some time left, be it a millisecond. */
static void the_last_millisecond_is_lost(void **state)
{
    actor a = contract_actor(*state, 0);
    dibsx_nsec end = dibsx_after_ms(dibsx_now(), CONTRACT_BOUND_MS);
    dibs_status rc;

    a.may_fail = true;
    a.ask.ttl_ms = contract_brief_ms(20);
    do {
        rc = actor_try(&a);
        if (rc == DIBS_OK)
            assert_true(a.ans.left_ms > 0);
        else
            assert_string_not_equal(a.err.origin, "ODD");
    } while (rc != DIBS_LOST && dibsx_now() < end);
    /* A quorum does not grant what is nearly over. */
    if (!contract_lack(DIBS__CAN_QUEUE))
        IN_TIME(rc == DIBS_LOST);
}

static void fences_rise_across_releases_and_names(void **state)
{
    contract *t = *state;
    uint64_t last = 0;

    for (size_t i = 0; i < 60; i++) {
        actor a = contract_actor(t, i % CONTRACT_HANDLES);
        char name[64];

        contract_name(name, sizeof(name), "fence");
        a.ask.name = i % 4 == 0 ? name : t->name;
        assert_status(actor_try(&a), DIBS_OK);
        assert_true(a.ans.fence > last);
        last = a.ans.fence;
        assert_status(actor_release(&a), DIBS_OK);
    }
}

static void fences_rise_across_break(void **state)
{
    contract *t = *state;
    uint64_t last = 0;

    for (size_t i = 0; i < 10; i++) {
        actor a = contract_actor(t, i % CONTRACT_HANDLES);
        dibs__store *st = t->st[0];
        uint32_t broken = 0;

        assert_status(actor_try(&a), DIBS_OK);
        assert_true(a.ans.fence > last);
        last = a.ans.fence;
        assert_status(st->ops->lease->revoke(st, t->name, 0, contract_soon(),
                                             &broken, &a.err),
                      DIBS_OK);
        assert_int_equal(broken, 1);
    }
}

static void fences_rise_across_reopening(void **state)
{
    contract *t = *state;
    uint64_t last = 0;

    for (size_t i = 0; i < 4; i++) {
        actor a = contract_actor(t, 0);

        assert_status(actor_try(&a), DIBS_OK);
        assert_true(a.ans.fence > last);
        last = a.ans.fence;
        assert_status(actor_release(&a), DIBS_OK);
        for (size_t k = 0; k < CONTRACT_HANDLES; k++) {
            dibs__store_close(t->st[k]);
            t->st[k] = NULL;
        }
        for (size_t k = 0; k < CONTRACT_HANDLES; k++)
            t->st[k] = contract_open();
    }
}

static void a_lease_outlives_the_handle_that_took_it(void **state)
{
    contract *t = *state;
    actor a = contract_actor(t, 0);
    actor b = contract_actor(t, 1);

    assert_status(actor_try(&a), DIBS_OK);
    dibs__store_close(t->st[0]);
    t->st[0] = NULL;
    assert_status(actor_try(&b), DIBS_BUSY);
    a.handle = 2;
    assert_status(actor_release(&a), DIBS_OK);
    assert_status(actor_try(&b), DIBS_OK);
}

static void odd_names_are_names(void **state)
{
    contract *t = *state;
    const char *odd[] = {" ",       "a b  c ",   "{tag}x{", "100%_'\"\\;--",
                         "*?[a-z]", "näme-名前", "a:b/c|d", "$1 $(x) `y`"};

    for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
        actor a = contract_actor(t, 0);
        actor b = contract_actor(t, 1);
        char name[DIBS_NAME_MAX + 1];

        snprintf(name, sizeof(name), "%s:%s", t->name, odd[i]);
        a.ask.name = b.ask.name = name;
        assert_status(actor_try(&a), DIBS_OK);
        assert_status(actor_try(&b), DIBS_BUSY);
        assert_status(actor_renew(&a, 20000, NULL), DIBS_OK);
        assert_status(actor_release(&a), DIBS_OK);
        assert_status(actor_try(&b), DIBS_OK);
        assert_status(actor_release(&b), DIBS_OK);
    }
}

static void the_longest_names_differ_in_their_last_byte(void **state)
{
    contract *t = *state;
    actor a = contract_actor(t, 0);
    actor b = contract_actor(t, 1);
    char one[DIBS_NAME_MAX + 1], two[DIBS_NAME_MAX + 1];

    memset(one, 'n', DIBS_NAME_MAX);
    memcpy(one, t->name, strlen(t->name));
    one[DIBS_NAME_MAX] = '\0';
    memcpy(two, one, sizeof(two));
    two[DIBS_NAME_MAX - 1] = 'm';
    a.ask.name = one;
    b.ask.name = two;
    assert_status(actor_try(&a), DIBS_OK);
    assert_status(actor_try(&b), DIBS_OK);
    assert_status(actor_release(&a), DIBS_OK);
    assert_status(actor_release(&b), DIBS_OK);
}

/* It is a hint, and may be wrong. */
static void the_hint_to_be_alone_grants_nothing_more(void **state)
{
    actor a = contract_actor(*state, 0);
    actor b = contract_actor(*state, 1);
    actor c = contract_actor(*state, 2);
    uint64_t fence;

    a.ask.alone = b.ask.alone = c.ask.alone = true;
    assert_status(actor_try(&a), DIBS_OK);
    fence = a.ans.fence;
    assert_status(actor_try(&a), DIBS_OK);
    assert_true(a.ans.fence == fence);
    assert_status(actor_try(&b), DIBS_BUSY);
    assert_true(b.ans.left_ms > 0);
    assert_false(b.ans.queued);
    assert_status(actor_queue(&b), DIBS_BUSY);
    assert_true(b.ans.queued);
    assert_status(actor_release(&a), DIBS_OK);
    assert_status(actor_try(&c), DIBS_BUSY);
    actor_expect_claim(&b);
    assert_true(b.ans.fence > fence);
    assert_status(actor_leave(&b, true, 0), DIBS_OK);
    assert_status(actor_try(&b), DIBS_LOST);
    assert_status(actor_try(&c), DIBS_OK);
}

static void a_past_deadline_answers_at_once_and_does_nothing(void **state)
{
    contract *t = *state;
    dibs__store *st = t->st[0];
    const dibs__lease_ops *lease = st->ops->lease;
    actor a = contract_actor(t, 0);
    dibsx_nsec past = dibsx_now() - DIBSX_SEC, began_at = dibsx_now();
    dibs__renewal item = {.name = t->name, .owner = a.owner, .ttl_ms = 60000};
    dibs__leave leave = {.name = t->name, .owner = a.owner};
    uint32_t broken = 0;
    contract_view view;

    a.ask.owner = a.owner;
    assert_status(lease->acquire(st, &a.ask, past, &a.ans, &a.err),
                  DIBS_UNAVAIL);
    assert_status(a.err.status, DIBS_UNAVAIL);
    assert_int_equal(contract_look(t, t->name, &view), 0);
    assert_status(actor_try(&a), DIBS_OK);
    item.fence = a.ans.fence;
    assert_status(lease->renew(st, &item, 1, past, &a.err), DIBS_UNAVAIL);
    assert_status(lease->release(st, &leave, past, &a.err), DIBS_UNAVAIL);
    assert_status(lease->revoke(st, t->name, 0, past, &broken, &a.err),
                  DIBS_UNAVAIL);
    assert_int_equal(contract_look(t, t->name, &view), 1);
    assert_true(view.entries[0].left_ms <= a.ask.ttl_ms);
    IN_TIME(contract_ms_since(began_at) < pace_ms(1000));
    assert_status(actor_release(&a), DIBS_OK);
}

int contract_lease(void)
{
    const struct CMUnitTest tests[] = {
        CONTRACT_TEST(a_free_name_is_granted),
        CONTRACT_TEST(a_second_owner_is_refused),
        CONTRACT_TEST(a_refused_try_leaves_no_trace),
        CONTRACT_TEST(names_are_independent),
        CONTRACT_TEST(a_repeated_acquire_answers_the_same_lease),
        CONTRACT_TEST(a_repeated_acquire_does_not_lengthen),
        CONTRACT_TEST(a_repeated_acquire_does_not_shorten),
        CONTRACT_TEST(an_expired_lease_goes_to_the_next_who_asks),
        CONTRACT_TEST(an_expired_lease_is_not_shown),
        CONTRACT_TEST(a_lease_after_expiry_is_a_new_one),
        CONTRACT_TEST(the_last_millisecond_is_lost),
        CONTRACT_TEST(fences_rise_across_releases_and_names),
        CONTRACT_TEST(fences_rise_across_break),
        CONTRACT_TEST(fences_rise_across_reopening),
        CONTRACT_TEST(a_lease_outlives_the_handle_that_took_it),
        CONTRACT_TEST(odd_names_are_names),
        CONTRACT_TEST(the_longest_names_differ_in_their_last_byte),
        CONTRACT_TEST(the_hint_to_be_alone_grants_nothing_more),
        CONTRACT_TEST(a_past_deadline_answers_at_once_and_does_nothing),
    };

    return cmocka_run_group_tests_name("lease", tests, NULL, NULL);
}
