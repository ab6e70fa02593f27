/* contract_durable.c - a lease that replicas must have before it counts. */
/* SPDX-License-Identifier: MIT */
#include "contract.h"

/* More than any of these stores has. */
enum { TOO_MANY = 9 };

/* Nothing stands: another is granted it at once. */
static void is_free(contract *t)
{
    actor other = contract_actor(t, 1);

    assert_status(actor_try(&other), DIBS_OK);
    assert_status(actor_release(&other), DIBS_OK);
}

static void what_replicas_must_have_is_had_or_not_granted(void **state)
{
    actor one = contract_actor(*state, 0);
    dibs_status rc;

    one.may_fail = true;
    one.ask.replicas = 1;
    one.ask.ttl_ms = 1000;
    rc = actor_try(&one);
    if (rc == DIBS_OK) {
        assert_true(one.ans.acked >= 1);
        assert_status(actor_release(&one), DIBS_OK);
    } else {
        IN_TIME(rc != DIBS_UNKNOWN);
        assert_true(rc == DIBS_UNSUPPORTED || rc == DIBS_UNAVAIL);
        IN_TIME(rc != DIBS_UNAVAIL || one.ans.under_replicated);
        assert_true(one.ans.under_replicated == (rc == DIBS_UNAVAIL));
    }
    is_free(*state);
}

static void what_too_few_have_is_given_back(void **state)
{
    actor one = contract_actor(*state, 0);
    dibs_status rc;

    one.may_fail = true;
    one.ask.replicas = TOO_MANY;
    one.ask.ttl_ms = 1000;
    rc = actor_try(&one);
    IN_TIME(rc != DIBS_UNKNOWN);
    assert_true(rc == DIBS_UNSUPPORTED || rc == DIBS_UNAVAIL);
    assert_int_equal(one.err.status, rc);
    is_free(*state);
}

/* Who is refused has asked as everybody else. */
static void a_busy_name_is_busy(void **state)
{
    actor holder = contract_actor(*state, 0);
    actor one = contract_actor(*state, 1);
    dibs_status rc;

    assert_status(actor_try(&holder), DIBS_OK);
    one.ask.replicas = 1;
    rc = actor_try(&one);
    assert_true(rc == DIBS_UNSUPPORTED || rc == DIBS_BUSY);
}

int contract_durable(void)
{
    const struct CMUnitTest tests[] = {
        CONTRACT_TEST(what_replicas_must_have_is_had_or_not_granted),
        CONTRACT_TEST(what_too_few_have_is_given_back),
        CONTRACT_TEST(a_busy_name_is_busy),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
