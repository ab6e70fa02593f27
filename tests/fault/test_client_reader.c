/* test_client_reader.c - readers of a group on a store that fails: the wait for their turn
 * goes on, as the wait for events does. */
/* SPDX-License-Identifier: MIT */
#include "fault_world.h"

enum { BRIEF_MS = 50, TTL_MS = 1000 };

static dibs_reader *join_as(dibs_client *cl, int64_t ttl_ms)
{
    dibs_reader *reader = NULL;

    CHECK(DIBS_OK,
          dibs_reader_new(cl, "t",
                          DIBS_READER_OPTS(.start = DIBS_FROM_START,
                                           .group = "g", .ttl_ms = ttl_ms),
                          &reader, err));
    return reader;
}

static dibs_reader *join_group(world *w)
{
    return join_as(w->one, 0);
}

static void append_one(world *w)
{
    CHECK(DIBS_OK, dibs_events_append(w->other, "t", "1", 1, NULL, NULL, err));
}

static void expect_one(dibs_reader *reader)
{
    dibs_event got;

    CHECK(DIBS_OK, dibs_reader_next(reader, WORLD_BOUND_MS, &got, err));
    assert_int_equal(got.kind, DIBS_EVENT);
    assert_int_equal(got.len, 1);
}

static void a_wait_for_the_turn_goes_on(void **state)
{
    static const dibs__step steps[] = {DIBS__STEP_ACQUIRE, DIBS__STEP_GET,
                                       DIBS__STEP_PUT};
    world *w = *state;

    append_one(w);
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        dibs_reader *reader = join_group(w);

        world_fault(w, steps[i], DIBS__FAULT_FAIL, 1);
        expect_one(reader);
        dibs_reader_free(reader);
    }
}

static void a_wait_that_is_over_says_that_the_store_is_away(void **state)
{
    world *w = *state;
    dibs_reader *reader = join_group(w);
    dibs_event got;

    append_one(w);
    world_fault(w, DIBS__STEP_ACQUIRE, DIBS__FAULT_FAIL, -1);
    CHECK(DIBS_UNAVAIL, dibs_reader_next(reader, 0, &got, err));
    CHECK(DIBS_UNAVAIL, dibs_reader_next(reader, BRIEF_MS, &got, err));
    world_heal(w);
    expect_one(reader);
    dibs_reader_free(reader);
}

static void cancel_reader(void *arg)
{
    dibs_reader_cancel(arg);
}

static void a_cancel_ends_the_wait_for_a_store(void **state)
{
    world *w = *state;
    dibs_reader *reader = join_group(w);
    dibs_event got;

    append_one(w);
    world_fault(w, DIBS__STEP_ACQUIRE, DIBS__FAULT_FAIL, -1);
    world_during(w, DIBS__STEP_ACQUIRE, cancel_reader, reader);
    assert_int_equal(dibs_reader_next(reader, -1, &got, NULL), DIBS_CANCELLED);
    world_heal(w);
    expect_one(reader);
    dibs_reader_free(reader);
}

/* The next reader has its turn while the read of the one before is under way. */
static void take_the_turn(void *arg)
{
    dibs_reader *next = arg;

    expect_one(next);
    expect_one(next);
    CHECK(DIBS_OK, dibs_reader_commit(next, err));
}

/* Its last write had no answer, so that it reads which version is there. Its turn ends
 * while that read has time left. */
static void a_displaced_reader_keeps_nothing(void **state)
{
    world *w = *state;
    dibs_reader *reader = join_as(w->one, TTL_MS);
    dibs_reader *next = join_as(w->other, 0);

    for (int i = 0; i < 3; i++)
        append_one(w);
    expect_one(reader);
    world_fault(w, DIBS__STEP_PUT, DIBS__FAULT_DROP_BEFORE, -1);
    CHECK(DIBS_UNKNOWN, dibs_reader_commit(reader, err));
    world_heal(w);
    world_fault(w, DIBS__STEP_RENEW, DIBS__FAULT_DROP_BEFORE, -1);
    world_during(w, DIBS__STEP_GET, take_the_turn, next);
    CHECK(DIBS_LOST, dibs_reader_commit(reader, err));
    world_heal(w);
    expect_one(next);
    CHECK(DIBS_OK, dibs_reader_commit(next, err));
    dibs_reader_free(reader);
    dibs_reader_free(next);
}

/* The first step of it removed a thousand at most. */
static void a_trim_that_was_begun_is_not_denied(void **state)
{
    enum { MANY = 1001 };
    world *w = *state;
    dibs_error why = {0};
    uint64_t gone = 7, rest = 0;

    for (int i = 0; i < MANY; i++)
        append_one(w);
    world_fault(w, DIBS__STEP_TRIM, DIBS__FAULT_FAIL, -1);
    CHECK(DIBS_UNAVAIL, dibs_events_trim(w->one, "t", UINT64_MAX, &gone, err));
    assert_int_equal(gone, 0);
    world_fault(w, DIBS__STEP_TRIM, DIBS__FAULT_NONE, 1);
    world_fault_then(w, DIBS__STEP_TRIM, DIBS__FAULT_FAIL);
    assert_status(dibs_events_trim(w->one, "t", UINT64_MAX, &gone, &why),
                  DIBS_UNKNOWN);
    assert_status(why.status, DIBS_UNKNOWN);
    assert_true(gone > 0 && gone < MANY);
    world_heal(w);
    CHECK(DIBS_OK, dibs_events_trim(w->one, "t", UINT64_MAX, &rest, err));
    assert_int_equal(gone + rest, MANY);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(a_wait_for_the_turn_goes_on),
        WORLD_TEST(a_wait_that_is_over_says_that_the_store_is_away),
        WORLD_TEST(a_cancel_ends_the_wait_for_a_store),
        WORLD_TEST(a_displaced_reader_keeps_nothing),
        WORLD_TEST(a_trim_that_was_begun_is_not_denied),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
