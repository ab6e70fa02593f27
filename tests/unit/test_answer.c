/* test_answer.c - which spans and fences of a store are believed. */
/* SPDX-License-Identifier: MIT */
#include "unit.h"

#include "store/answer.h"
#include <string.h>

enum { TTL_MS = 10000 };

static dibs_status
grant(int64_t most_ms, int64_t left_ms, uint64_t fence, bool claim)
{
    const dibs__ask ask = {.name = "a", .ttl_ms = TTL_MS, .most_ms = most_ms};
    const dibs__answer ans = {.fence = fence,
                              .left_ms = left_ms,
                              .claim = claim};
    dibs_error err = {0};
    dibs_status rc = dibs__answer_grant(&ask, &ans, &err);

    /* It says what is wrong, and what to do. */
    assert_true(rc == DIBS_OK || strstr(err.message, "dibs doctor"));
    return rc;
}

static void a_grant_has_no_more_than_it_can(void **state)
{
    (void)state;
    assert_int_equal(grant(TTL_MS, 1, 7, false), DIBS_OK);
    assert_int_equal(grant(TTL_MS, TTL_MS, 7, false), DIBS_OK);
    assert_int_equal(grant(TTL_MS, TTL_MS + 1, 7, false), DIBS_UNKNOWN);
    assert_int_equal(grant(TTL_MS, INT64_MAX, 7, false), DIBS_UNKNOWN);
    assert_int_equal(grant(TTL_MS, 0, 7, false), DIBS_UNKNOWN);
    assert_int_equal(grant(TTL_MS, -5, 7, false), DIBS_UNKNOWN);
    assert_int_equal(grant(TTL_MS, INT64_MIN, 7, false), DIBS_UNKNOWN);
}

/* An earlier ask of the owner may have been for longer than this one. */
static void who_does_not_know_believes_what_leases_can_have(void **state)
{
    (void)state;
    assert_int_equal(grant(0, DIBS__LEASE_MAX_MS, 7, false), DIBS_OK);
    assert_int_equal(grant(0, (int64_t)DIBS__LEASE_MAX_MS + 1, 7, false),
                     DIBS_UNKNOWN);
    assert_int_equal(grant(0, -1, 7, false), DIBS_UNKNOWN);
}

static void a_claim_stands_for_a_claim(void **state)
{
    (void)state;
    assert_int_equal(grant(TTL_MS, DIBS__CLAIM_MS, 7, true), DIBS_OK);
    assert_int_equal(grant(TTL_MS, DIBS__CLAIM_MS + 1, 7, true), DIBS_UNKNOWN);
}

static void a_grant_has_a_fence(void **state)
{
    (void)state;
    assert_int_equal(grant(TTL_MS, 1, 0, false), DIBS_UNKNOWN);
    assert_int_equal(grant(TTL_MS, 1, INT64_MAX, false), DIBS_OK);
    assert_int_equal(grant(TTL_MS, 1, (uint64_t)INT64_MAX + 1, false),
                     DIBS_UNKNOWN);
    assert_int_equal(grant(TTL_MS, 1, (uint64_t)-5, false), DIBS_UNKNOWN);
}

static dibs_status busy(int64_t left_ms, uint64_t fence)
{
    const dibs__answer ans = {.fence = fence, .left_ms = left_ms};

    return dibs__answer_busy(&ans, NULL);
}

static void a_wait_is_a_span(void **state)
{
    (void)state;
    assert_int_equal(busy(0, 0), DIBS_OK);
    assert_int_equal(busy(DIBS__SPAN_MAX_MS, 7), DIBS_OK);
    assert_int_equal(busy(-1, 7), DIBS_UNKNOWN);
    assert_int_equal(busy(INT64_MAX, 7), DIBS_UNKNOWN);
    assert_int_equal(busy(1, UINT64_MAX), DIBS_UNKNOWN);
}

static dibs_status turn(int64_t left_ms, uint64_t fence)
{
    const dibs__conversion how = {.name = "a", .fence = 7, .ttl_ms = TTL_MS};
    const dibs__answer ans = {.fence = fence, .left_ms = left_ms};

    return dibs__answer_convert(&how, &ans, NULL);
}

static void a_conversion_does_not_go_back(void **state)
{
    (void)state;
    assert_int_equal(turn(TTL_MS, 7), DIBS_OK);
    assert_int_equal(turn(TTL_MS, 8), DIBS_OK);
    assert_int_equal(turn(TTL_MS, 6), DIBS_UNKNOWN);
    assert_int_equal(turn(0, 8), DIBS_UNKNOWN);
    assert_int_equal(turn(INT64_MAX, 8), DIBS_UNKNOWN);
}

static dibs_status renewal(int64_t ttl_ms, int64_t left_ms)
{
    const dibs__renewal item = {.name = "a",
                                .ttl_ms = ttl_ms,
                                .left_ms = left_ms};

    return dibs__answer_renewal(&item, NULL);
}

/* One that had more before keeps it. */
static void a_renewal_leaves_what_leases_can_have(void **state)
{
    (void)state;
    assert_int_equal(renewal(TTL_MS, TTL_MS), DIBS_OK);
    assert_int_equal(renewal(TTL_MS, 3 * TTL_MS), DIBS_OK);
    assert_int_equal(renewal(TTL_MS, 0), DIBS_UNKNOWN);
    assert_int_equal(renewal(TTL_MS, -1), DIBS_UNKNOWN);
    assert_int_equal(renewal(TTL_MS, (int64_t)DIBS__LEASE_MAX_MS + 1),
                     DIBS_UNKNOWN);
    assert_int_equal(renewal(0, 0), DIBS_OK);
    assert_int_equal(renewal(0, -1), DIBS_UNKNOWN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_grant_has_no_more_than_it_can),
        cmocka_unit_test(who_does_not_know_believes_what_leases_can_have),
        cmocka_unit_test(a_claim_stands_for_a_claim),
        cmocka_unit_test(a_grant_has_a_fence),
        cmocka_unit_test(a_wait_is_a_span),
        cmocka_unit_test(a_conversion_does_not_go_back),
        cmocka_unit_test(a_renewal_leaves_what_leases_can_have),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
