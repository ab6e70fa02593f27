/* test_client_limit.c - rate limits on a store that fails: tokens that got no answer
 * are spent, and the policy of the limit decides while the store is away. */
/* SPDX-License-Identifier: MIT */
#include "fault_world.h"

#include <unistd.h>

enum { HOUR_MS = 3600000 };

static dibs_limit *open_limit(world *w, const dibs_limit_opts *opts)
{
    dibs_limit *limit = NULL;

    CHECK(DIBS_OK, dibs_limit_new(w->one, "sms", opts, &limit, err));
    return limit;
}

static void a_draw_without_an_answer_costs_its_tokens_once(void **state)
{
    world *w = *state;
    dibs_limit *limit =
        open_limit(w, DIBS_LIMIT_OPTS(.count = 1, .period_ms = HOUR_MS,
                                      .burst = 3));

    world_fault(w, DIBS__STEP_DRAW, DIBS__FAULT_DROP_AFTER, 1);
    CHECK(DIBS_UNKNOWN, dibs_limit_take(limit, 1, err));
    CHECK(DIBS_OK, dibs_limit_take(limit, 2, err));
    CHECK(DIBS_BUSY, dibs_limit_take(limit, 1, err));
    dibs_limit_free(limit);
}

static void a_store_that_is_away_fails_the_call(void **state)
{
    world *w = *state;
    dibs_limit *limit =
        open_limit(w, DIBS_LIMIT_OPTS(.count = 1, .period_ms = HOUR_MS,
                                      .burst = 1));

    world_fault(w, DIBS__STEP_DRAW, DIBS__FAULT_FAIL, 1);
    CHECK(DIBS_UNAVAIL, dibs_limit_take(limit, 1, err));
    CHECK(DIBS_OK, dibs_limit_take(limit, 1, err));
    dibs_limit_free(limit);
}

/* Calls do not wait for a store that is away; one look a second finds it back. */
static void its_share_is_counted_here(void **state)
{
    world *w = *state;
    dibsx_nsec end = dibsx_after_ms(dibsx_now(), pace_ms(WORLD_BOUND_MS));
    dibs_limit *limit =
        open_limit(w, DIBS_LIMIT_OPTS(.count = 1, .period_ms = HOUR_MS,
                                      .burst = 9, .clients = 3,
                                      .on_unavailable = DIBS_AWAY_LOCAL));
    int draws;

    world_fault(w, DIBS__STEP_DRAW, DIBS__FAULT_FAIL, -1);
    world_fault(w, DIBS__STEP_NOW, DIBS__FAULT_FAIL, -1);
    for (int i = 0; i < 3; i++)
        CHECK(DIBS_OK, dibs_limit_take(limit, 1, err));
    CHECK(DIBS_BUSY, dibs_limit_take(limit, 1, err));
    assert_true(dibs_limit_retry_ms(limit) > HOUR_MS);
    assert_int_equal(world_seen(w, DIBS__STEP_DRAW), 1);
    world_heal(w);
    draws = world_seen(w, DIBS__STEP_DRAW);
    while (world_seen(w, DIBS__STEP_DRAW) == draws) {
        dibs_status rc = dibs_limit_take(limit, 1, NULL);

        assert_true(rc == DIBS_OK || rc == DIBS_BUSY);
        IN_TIME(dibsx_now() < end);
        usleep(1000);
    }
    dibs_limit_free(limit);
}

static void open_grants_without_a_limit(void **state)
{
    world *w = *state;
    dibs_limit *limit =
        open_limit(w,
                   DIBS_LIMIT_OPTS(.count = 1, .period_ms = HOUR_MS, .burst = 1,
                                   .on_unavailable = DIBS_AWAY_OPEN));

    world_fault(w, DIBS__STEP_DRAW, DIBS__FAULT_DROP_BEFORE, -1);
    for (int i = 0; i < 5; i++)
        CHECK(DIBS_OK, dibs_limit_take(limit, 1, err));
    IN_TIME(world_seen(w, DIBS__STEP_DRAW) == 1); /* Within a second. */
    dibs_limit_free(limit);
}

/* An answer that is lost adds nothing to the stock. */
static void a_stock_has_only_what_was_answered(void **state)
{
    world *w = *state;
    dibs_limit *limit =
        open_limit(w, DIBS_LIMIT_OPTS(.count = 1, .period_ms = HOUR_MS,
                                      .burst = 20, .chunk = 5));
    int granted = 0;

    world_fault(w, DIBS__STEP_DRAW, DIBS__FAULT_DROP_AFTER, 1);
    CHECK(DIBS_UNKNOWN, dibs_limit_take(limit, 1, err));
    for (int i = 0; i < 30; i++)
        granted += dibs_limit_take(limit, 1, NULL) == DIBS_OK;
    assert_true(granted <= 14);
    dibs_limit_free(limit);
}

static void most_calls_of_a_hot_path_are_local(void **state)
{
    world *w = *state;
    dibs_limit *limit =
        open_limit(w, DIBS_LIMIT_OPTS(.count = 1, .period_ms = HOUR_MS,
                                      .burst = 100000, .chunk = 100));

    for (int i = 0; i < 800; i++)
        CHECK(DIBS_OK, dibs_limit_take(limit, 1, err));
    IN_TIME(world_seen(w, DIBS__STEP_DRAW) < 100);
    dibs_limit_free(limit);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(a_draw_without_an_answer_costs_its_tokens_once),
        WORLD_TEST(a_store_that_is_away_fails_the_call),
        WORLD_TEST(its_share_is_counted_here),
        WORLD_TEST(open_grants_without_a_limit),
        WORLD_TEST(a_stock_has_only_what_was_answered),
        WORLD_TEST(most_calls_of_a_hot_path_are_local),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
