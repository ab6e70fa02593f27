/* contract_kind.c - one kind per name, while it lives. */
/* SPDX-License-Identifier: MIT */
#include "contract.h"

static void a_name_has_one_kind_while_it_lives(void **state)
{
    actor lock = contract_actor(*state, 0);
    actor permits = contract_permits(*state, 1, 1, 3);
    actor wider = contract_permits(*state, 2, 1, 4);
    actor reader = contract_sharer(*state, 2);
    contract_view view;

    assert_status(actor_try(&lock), DIBS_OK);
    assert_status(actor_queue(&permits), DIBS_MISMATCH);
    assert_status(permits.err.status, DIBS_MISMATCH);
    assert_true(strlen(permits.err.message) > 0);
    assert_int_equal(contract_look(*state, lock.ask.name, &view), 1);
    assert_status(actor_release(&lock), DIBS_OK);

    assert_status(actor_try(&permits), DIBS_OK);
    assert_status(actor_queue(&lock), DIBS_MISMATCH);
    assert_status(actor_queue(&reader), DIBS_MISMATCH);
    assert_status(actor_queue(&wider), DIBS_MISMATCH);
    assert_int_equal(contract_look(*state, lock.ask.name, &view), 1);
    assert_status(actor_release(&permits), DIBS_OK);
    assert_status(actor_try(&wider), DIBS_OK);
}

static void an_expired_kind_does_not_bind(void **state)
{
    actor lock = contract_actor(*state, 0);
    actor permits = contract_permits(*state, 1, 1, 3);
    dibsx_nsec end = dibsx_after_ms(dibsx_now(), CONTRACT_BOUND_MS);
    dibs_status rc;

    lock.ask.ttl_ms = contract_brief_ms(100);
    assert_status(actor_try(&lock), DIBS_OK);
    while ((rc = actor_try(&permits)) == DIBS_MISMATCH && dibsx_now() < end)
        contract_sleep_until(dibsx_now() + 5 * DIBSX_MS);
    IN_TIME(rc != DIBS_MISMATCH);
    assert_status(rc, DIBS_OK);
}

static void a_kept_name_keeps_its_kind(void **state)
{
    actor lock = contract_actor(*state, 0);
    actor permits = contract_permits(*state, 1, 1, 3);

    assert_status(actor_try(&lock), DIBS_OK);
    assert_status(actor_leave(&lock, false, 5000), DIBS_OK);
    assert_status(actor_try(&permits), DIBS_MISMATCH);
}

/* The numbers are too long to be part of the name by chance. */
static void a_mismatch_names_both(void **state)
{
    actor lock = contract_actor(*state, 0);
    actor one = contract_permits(*state, 0, 1, 1234567);
    actor two = contract_permits(*state, 1, 1, 7654321);

    assert_status(actor_try(&one), DIBS_OK);
    assert_status(actor_try(&two), DIBS_MISMATCH);
    assert_non_null(strstr(two.err.message, "1234567"));
    assert_non_null(strstr(two.err.message, "7654321"));
    assert_status(actor_try(&lock), DIBS_MISMATCH);
    assert_non_null(strstr(lock.err.message, "1234567"));
    assert_non_null(strstr(lock.err.message, "lock"));
    assert_status(actor_release(&one), DIBS_OK);
    assert_status(actor_try(&lock), DIBS_OK);
    assert_status(actor_try(&two), DIBS_MISMATCH);
    assert_non_null(strstr(two.err.message, "7654321"));
    assert_non_null(strstr(two.err.message, "lock"));
}

static void those_who_wait_keep_the_kind(void **state)
{
    contract *t = *state;
    actor dead = contract_actor(t, 0);
    actor waiter = contract_actor(t, 1);
    actor permits = contract_permits(t, 2, 1, 3);
    contract_view view;

    dead.ask.ttl_ms = contract_brief_ms(200);
    assert_status(actor_try(&dead), DIBS_OK);
    IN_TIME(actor_queue(&waiter) == DIBS_BUSY);
    contract_await(t, t->name, 1, &view);
    IN_TIME(actor_queue(&permits) == DIBS_MISMATCH);
    assert_status(actor_until(&waiter, CONTRACT_BOUND_MS), DIBS_OK);
}

/* Redisson #1104, #2883, #3730, #4661, #5019: what is left of a queue after all
 * have gone keeps others out. */
static void a_name_that_all_have_left_is_as_new(void **state)
{
    contract *t = *state;
    actor holder = contract_actor(t, 0);
    actor reader = contract_sharer(t, 1);
    actor writer = contract_actor(t, 2);
    actor permits = contract_permits(t, 0, 3, 3);
    actor after = contract_actor(t, 1);
    contract_view view;

    assert_status(actor_try(&holder), DIBS_OK);
    assert_status(actor_queue(&reader), DIBS_BUSY);
    assert_status(actor_queue(&writer), DIBS_BUSY);
    assert_status(actor_release(&writer), DIBS_LOST);
    assert_status(actor_leave(&reader, true, 0), DIBS_LOST);
    assert_status(actor_leave(&holder, true, 0), DIBS_OK);
    assert_int_equal(contract_look(t, t->name, &view), 0);
    assert_status(actor_try(&permits), DIBS_OK);
    assert_status(actor_release(&permits), DIBS_OK);
    assert_status(actor_queue(&after), DIBS_OK);
    assert_false(after.ans.claim);
    assert_true(after.ans.left_ms > DIBS__CLAIM_MS);
}

int contract_kind(void)
{
    const struct CMUnitTest tests[] = {
        CONTRACT_TEST(a_name_has_one_kind_while_it_lives),
        CONTRACT_TEST(an_expired_kind_does_not_bind),
        CONTRACT_TEST(a_kept_name_keeps_its_kind),
        CONTRACT_TEST(a_mismatch_names_both),
        CONTRACT_TEST(those_who_wait_keep_the_kind),
        CONTRACT_TEST(a_name_that_all_have_left_is_as_new),
    };

    return cmocka_run_group_tests_name("kind", tests, NULL, NULL);
}
