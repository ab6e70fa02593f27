/* test_grant_answer.c - what the steps of the grant rule answer: fences, spans,
 * notices, and what becomes of bad or foreign input. */
/* SPDX-License-Identifier: MIT */
#include "base/alloc.h"
#include "grant_world.h"
#include <string.h>

static void test_invalid_asks_change_nothing(void **state)
{
    static const world_want wants[] = {{WANT_P(0, 3)},
                                       {WANT_P(4, 3)},
                                       {WANT_P(0, 0)},
                                       {WANT_P(1, 0)}};
    static const world_want lock = {WANT_X};
    dibs__ask ask = {.name = "n", .owner = "a", .permits = 1, .who = ""};
    world w;

    (void)state;
    world_init(&w);
    for (size_t i = 0; i < COUNT_OF(wants); i++)
        assert_int_equal(world_acquire(&w, "a", &wants[i], 0), DIBS_INVALID);
    assert_int_equal(dibs__grant_acquire(world_load(&w), &ask, "", &w.ans,
                                         &w.err),
                     DIBS_INVALID);

    w.watermark = INT64_MAX;
    assert_int_equal(world_acquire(&w, "a", &lock, 0), DIBS_INTERNAL);
    assert_int_equal(w.count, 0);
    world_fini(&w);
}

static void test_already_yours_answers_what_is_left(void **state)
{
    static const world_want lock = {WANT_X};
    world w;
    uint64_t fence;

    (void)state;
    world_init(&w);
    assert_int_equal(world_acquire(&w, "a", &lock, 0), DIBS_OK);
    assert_int_equal(w.ans.left_ms, WORLD_TTL_MS);
    assert_false(w.ans.claim);
    assert_string_equal(w.notified, "");
    fence = w.ans.fence;

    world_pass(&w, 1000);
    assert_int_equal(world_acquire(&w, "a", &lock, DIBS__ASK_BARGE), DIBS_OK);
    assert_int_equal(w.ans.left_ms, WORLD_TTL_MS - 1000);
    assert_true(w.ans.fence == fence);

    /* Once it has run out it is a new lease with a new fence. */
    world_pass(&w, WORLD_TTL_MS - 1000);
    assert_int_equal(world_acquire(&w, "a", &lock, 0), DIBS_OK);
    assert_int_equal(w.ans.left_ms, WORLD_TTL_MS);
    assert_true(w.ans.fence > fence);
    assert_int_equal(w.count, 1);
    world_fini(&w);
}

static void test_claim_is_notified_and_confirmed(void **state)
{
    static const world_want lock = {WANT_X};
    dibs__renewal item;
    uint64_t fence;
    world w;

    (void)state;
    world_init(&w);
    assert_int_equal(world_acquire(&w, "a", &lock, 0), DIBS_OK);
    assert_int_equal(world_acquire(&w, "b", &lock, DIBS__ASK_QUEUE), DIBS_BUSY);
    assert_true(w.ans.queued);
    assert_true(w.ans.fence == w.watermark);
    assert_int_equal(world_release(&w, "a", false, 0), DIBS_OK);
    assert_string_equal(w.notified, "+b ");

    world_pass(&w, 1000);
    assert_int_equal(world_acquire(&w, "b", &lock, DIBS__ASK_QUEUE), DIBS_OK);
    assert_true(w.ans.claim);
    assert_int_equal(w.ans.left_ms, DIBS__CLAIM_MS - 1000);
    assert_string_equal(w.notified, "");
    fence = w.ans.fence;

    item = world_renew(&w, "b", fence, WORLD_TTL_MS);
    assert_int_equal(item.rc, DIBS_OK);
    assert_int_equal(item.left_ms, WORLD_TTL_MS);
    assert_false(item.wanted);
    assert_int_equal(world_acquire(&w, "b", &lock, 0), DIBS_OK);
    assert_false(w.ans.claim);
    assert_true(w.ans.fence == fence);
    world_fini(&w);
}

static void test_refusal_says_when_to_ask_again(void **state)
{
    static const world_want two = {WANT_P(2, 4)}, three = {WANT_P(3, 4)},
                            four = {WANT_P(4, 4)};
    world w;

    (void)state;
    world_init(&w);
    assert_int_equal(world_acquire(&w, "a", &two, 0), DIBS_OK);
    world_pass(&w, 10000);
    assert_int_equal(world_acquire(&w, "b", &two, 0), DIBS_OK);
    assert_int_equal(world_acquire(&w, "c", &four, 0), DIBS_BUSY);
    assert_int_equal(w.ans.left_ms, WORLD_TTL_MS - 10000);
    w.now_us -= 1; /* Spans to wait are rounded up. */
    assert_int_equal(world_acquire(&w, "c", &four, DIBS__ASK_QUEUE), DIBS_BUSY);
    assert_int_equal(w.ans.left_ms, WORLD_TTL_MS - 10000 + 1);
    assert_int_equal(w.ans.ahead, 0);
    assert_string_equal(w.err.message, "`n` is held by host:1 label");

    assert_int_equal(world_acquire(&w, "d", &three, DIBS__ASK_QUEUE),
                     DIBS_BUSY);
    assert_int_equal(w.ans.ahead, 1);
    assert_int_equal(world_acquire(&w, "e", &two, 0), DIBS_BUSY);
    assert_false(w.ans.queued);
    assert_int_equal(w.ans.ahead, 2);
    assert_true(w.ans.fence == w.watermark);
    world_fini(&w);
}

/* A waiter that can never be served, as no step makes one: it is in the way
 * until its place runs out, and nothing else happens. */
static void test_foreign_row_is_survived(void **state)
{
    static const world_want one = {WANT_P(1, 2)};
    dibs__party *row;
    world w;

    (void)state;
    world_init(&w);
    row = world_plant(&w, "z");
    row->role = DIBS__WAITER;
    row->mode = DIBS__PERMITS;
    row->permits = 3;
    row->capacity = 2;
    assert_int_equal(world_acquire(&w, "a", &one, 0), DIBS_BUSY);
    assert_int_equal(w.ans.left_ms, 0);
    world_pass(&w, 1000);
    assert_int_equal(world_acquire(&w, "a", &one, 0), DIBS_OK);
    world_fini(&w);
}

static void test_renew_never_shortens(void **state)
{
    static const world_want lock = {WANT_X};
    dibs__renewal item;
    uint64_t fence;
    world w;

    (void)state;
    world_init(&w);
    assert_int_equal(world_acquire(&w, "a", &lock, 0), DIBS_OK);
    fence = w.ans.fence;
    item = world_renew(&w, "a", fence, 1);
    assert_int_equal(item.rc, DIBS_OK);
    assert_int_equal(item.left_ms, WORLD_TTL_MS);

    world_pass(&w, 20000);
    item = world_renew(&w, "a", fence, 5000);
    assert_int_equal(item.left_ms, WORLD_TTL_MS - 20000);
    item = world_renew(&w, "a", fence, INT64_MAX);
    assert_int_equal(item.left_ms, (INT64_MAX - w.now_us) / 1000);
    assert_int_equal(world_row(&w, "a")->ttl_ms, WORLD_TTL_MS);
    item = world_renew(&w, "a", fence, INT64_MAX / 1000);
    assert_int_equal(item.left_ms, (INT64_MAX - w.now_us) / 1000);

    /* A claim that is longer than the ttl stands, confirmed. */
    assert_int_equal(world_acquire(&w, "b", &lock, DIBS__ASK_QUEUE), DIBS_BUSY);
    assert_int_equal(world_release(&w, "a", false, 0), DIBS_OK);
    item = world_renew(&w, "b", world_row(&w, "b")->fence, 10);
    assert_int_equal(item.rc, DIBS_OK);
    assert_int_equal(item.left_ms, DIBS__CLAIM_MS);
    assert_false(world_row(&w, "b")->claim);
    world_fini(&w);
}

/* An answer has whole milliseconds, and one that says none would be no lease. */
static void test_the_last_millisecond_is_lost(void **state)
{
    static const world_want lock = {WANT_X};
    uint64_t fence;
    world w;

    (void)state;
    world_init(&w);
    assert_int_equal(world_acquire(&w, "a", &lock, 0), DIBS_OK);
    fence = w.ans.fence;
    world_pass(&w, WORLD_TTL_MS - 1);
    assert_int_equal(world_acquire(&w, "a", &lock, 0), DIBS_OK);
    assert_int_equal(w.ans.fence, fence);
    assert_int_equal(w.ans.left_ms, 1);
    w.now_us++;
    assert_int_equal(world_acquire(&w, "a", &lock, 0), DIBS_LOST);
    assert_int_equal(world_acquire(&w, "b", &lock, 0), DIBS_BUSY);
    assert_string_equal(world_show(&w), "a | ");
    assert_int_equal(world_renew(&w, "a", fence, 5).left_ms, 5);
    assert_int_equal(world_acquire(&w, "a", &lock, 0), DIBS_OK);
    world_pass(&w, 5);
    assert_int_equal(world_acquire(&w, "a", &lock, 0), DIBS_OK);
    assert_true(w.ans.fence > fence);
    world_fini(&w);
}

static void test_renew_wants_owner_and_fence(void **state)
{
    static const world_want lock = {WANT_X};
    dibs__renewal item;
    uint64_t fence;
    world w;

    (void)state;
    world_init(&w);
    assert_int_equal(world_acquire(&w, "a", &lock, 0), DIBS_OK);
    fence = w.ans.fence;
    item = world_renew(&w, "a", fence + 1, WORLD_TTL_MS);
    assert_int_equal(item.rc, DIBS_LOST);
    assert_int_equal(item.left_ms, 0);
    item = world_renew(&w, "b", fence, WORLD_TTL_MS);
    assert_int_equal(item.rc, DIBS_LOST);

    assert_int_equal(world_acquire(&w, "b", &lock, DIBS__ASK_QUEUE), DIBS_BUSY);
    item = world_renew(&w, "a", fence, WORLD_TTL_MS);
    assert_int_equal(item.rc, DIBS_OK);
    assert_true(item.wanted);
    item = world_renew(&w, "b", fence, WORLD_TTL_MS);
    assert_int_equal(item.rc, DIBS_LOST);
    assert_false(item.wanted);
    world_fini(&w);
}

static void test_fence_rises_when_the_wall_clock_does_not(void **state)
{
    static const world_want lock = {WANT_X};
    static const int64_t walls_us[] = {
        1700000000000000, 1700000000000000, 1600000000000000, 0, -5,
        1800000000000000};
    uint64_t last = 0;
    world w;

    (void)state;
    world_init(&w);
    for (size_t i = 0; i < COUNT_OF(walls_us); i++) {
        w.wall_us = walls_us[i];
        assert_int_equal(world_acquire(&w, "a", &lock, 0), DIBS_OK);
        assert_true(w.ans.fence > last);
        assert_true(walls_us[i] < 0 || w.ans.fence >= (uint64_t)walls_us[i]);
        last = w.ans.fence;
        assert_int_equal(world_release(&w, "a", false, 0), DIBS_OK);
    }
    assert_true(last == UINT64_C(1800000000000000));

    /* With the last fence given, who waits is not served. */
    w.watermark = INT64_MAX - 1;
    assert_int_equal(world_acquire(&w, "a", &lock, 0), DIBS_OK);
    assert_true(w.ans.fence == INT64_MAX);
    world_plant(&w, "b")->role = DIBS__WAITER;
    assert_int_equal(world_release(&w, "a", false, 0), DIBS_OK);
    assert_string_equal(world_show(&w), "| b ");
    world_fini(&w);
}

static void test_revoke_notifies_and_counts(void **state)
{
    static const world_want shared = {WANT_S}, lock = {WANT_X};
    uint32_t broken;
    world w;

    (void)state;
    world_init(&w);
    for (const char *owner = "abc"; *owner; owner++) {
        char one[2] = {*owner, '\0'};

        assert_int_equal(world_acquire(&w, one, &shared, 0), DIBS_OK);
    }
    assert_int_equal(world_acquire(&w, "w", &lock, DIBS__ASK_QUEUE), DIBS_BUSY);
    assert_int_equal(world_take(&w, 1, &broken), DIBS_STALE);
    assert_int_equal(broken, 0);
    assert_int_equal(world_take(&w, world_row(&w, "b")->fence, &broken),
                     DIBS_OK);
    assert_int_equal(broken, 1);
    assert_string_equal(w.notified, "-b ");

    /* Who has left already is put aside without being told. */
    assert_int_equal(world_release(&w, "c", false, 1000), DIBS_OK);
    assert_int_equal(world_take(&w, 0, &broken), DIBS_OK);
    assert_int_equal(broken, 2);
    assert_string_equal(w.notified, "-a +w ");
    world_fini(&w);
}

static void test_who_and_doorbell_are_kept(void **state)
{
    static const world_want lock = {WANT_X};
    char longer[2 * DIBS__WHO_MAX];
    dibs__ask ask = {.name = "n",
                     .owner = "b",
                     .flags = DIBS__ASK_QUEUE,
                     .ttl_ms = WORLD_TTL_MS,
                     .who = longer};
    const dibs__party *row;
    world w;

    (void)state;
    memset(longer, 'w', sizeof(longer) - 1);
    longer[sizeof(longer) - 1] = '\0';
    world_init(&w);
    assert_int_equal(world_acquire(&w, "a", &lock, 0), DIBS_OK);
    row = world_row(&w, "a");
    assert_string_equal(row->who, "host:1 label");
    assert_string_equal(row->bell, "bell");

    assert_int_equal(dibs__grant_acquire(world_load(&w), &ask, longer, &w.ans,
                                         &w.err),
                     DIBS_BUSY);
    world_commit(&w);
    row = world_row(&w, "b");
    assert_int_equal(strlen(row->who), DIBS__WHO_MAX - 1);
    assert_int_equal(strlen(row->bell), DIBS__BELL_MAX - 1);
    assert_int_equal(row->permits, 1);

    /* A doorbell that was opened meanwhile is taken up with the next ask. */
    assert_int_equal(world_acquire(&w, "b", &lock, DIBS__ASK_QUEUE), DIBS_BUSY);
    assert_string_equal(world_row(&w, "b")->bell, "bell");
    world_fini(&w);
}

static void plant_dead(world *w)
{
    w->count = 0;
    for (dibs__role role = DIBS__HOLDER; role <= DIBS__TOMB; role++) {
        char owner[2] = {(char)('p' + role), '\0'};
        dibs__party *row = world_plant(w, owner);

        row->role = role;
        row->until_us = w->now_us;
    }
}

static void test_every_step_drops_the_dead(void **state)
{
    static const world_want lock = {WANT_X};
    uint32_t broken;
    world w;

    (void)state;
    world_init(&w);
    plant_dead(&w);
    assert_int_equal(world_acquire(&w, "a", &lock, 0), DIBS_OK);
    assert_int_equal(w.count, 1);
    plant_dead(&w);
    assert_int_equal(world_renew(&w, "a", 1, 1).rc, DIBS_LOST);
    assert_int_equal(w.count, 0);
    plant_dead(&w);
    assert_int_equal(world_release(&w, "a", false, 0), DIBS_LOST);
    assert_int_equal(w.count, 0);
    plant_dead(&w);
    assert_int_equal(world_take(&w, 0, &broken), DIBS_NOTFOUND);
    assert_int_equal(w.count, 0);
    assert_string_equal(w.notified, "");
    world_fini(&w);
}

static void test_age_counts_from_the_grant_or_the_first_ask(void **state)
{
    static const world_want lock = {WANT_X};
    dibs__entry entries[2];
    world w;

    (void)state;
    world_init(&w);
    assert_int_equal(world_acquire(&w, "a", &lock, 0), DIBS_OK);
    world_pass(&w, 100);
    assert_int_equal(world_acquire(&w, "b", &lock, DIBS__ASK_QUEUE), DIBS_BUSY);
    world_pass(&w, 10);
    assert_int_equal(world_acquire(&w, "b", &lock, DIBS__ASK_QUEUE), DIBS_BUSY);
    assert_int_equal(dibs__roll_show(world_load(&w), entries), 2);
    assert_int_equal(entries[0].age_ms, 110);
    assert_int_equal(entries[1].age_ms, 10);
    assert_int_equal(entries[1].left_ms, DIBS__PLACE_MS);

    assert_int_equal(world_release(&w, "a", false, 0), DIBS_OK);
    world_pass(&w, 1);
    assert_int_equal(dibs__roll_show(world_load(&w), entries), 1);
    assert_int_equal(entries[0].age_ms, 1);
    world_fini(&w);
}

/* Several steps before one write: what came and went was never there. */
static void test_steps_on_one_roll_add_up(void **state)
{
    dibs__ask ask = {.name = "n",
                     .ttl_ms = WORLD_TTL_MS,
                     .who = "",
                     .owner = "a"};
    dibs__leave leave = {.name = "n", .owner = "a"};
    const dibs__party *tomb;
    dibs__roll *roll;
    world w;

    (void)state;
    world_init(&w);
    world_plant(&w, "dead")->until_us = w.now_us;
    roll = world_load(&w);
    assert_int_equal(dibs__grant_acquire(roll, &ask, "", &w.ans, NULL),
                     DIBS_OK);
    ask.owner = "b";
    ask.flags = DIBS__ASK_QUEUE;
    assert_int_equal(dibs__grant_acquire(roll, &ask, "", &w.ans, NULL),
                     DIBS_BUSY);
    assert_int_equal(dibs__grant_release(roll, &leave, NULL), DIBS_OK);
    assert_null(dibs__roll_find(roll, "a"));
    leave.owner = "b";
    leave.unanswered = true;
    assert_int_equal(dibs__grant_release(roll, &leave, NULL), DIBS_OK);
    tomb = dibs__roll_find(roll, "b");
    assert_non_null(tomb);
    assert_int_equal(tomb->role, DIBS__TOMB);
    assert_int_equal(tomb->mark, DIBS__ADDED);
    world_commit(&w);
    assert_int_equal(w.count, 1);
    world_fini(&w);
}

static void test_short_memory_is_reported(void **state)
{
    dibs__ask ask = {.name = "n", .owner = "a", .ttl_ms = 1, .who = ""};
    dibs__leave leave = {.name = "n", .owner = "a", .unanswered = true};
    world w;

    (void)state;
    world_init(&w);
    dibsx_alloc_fail_at(1);
    assert_int_equal(dibs__grant_acquire(world_load(&w), &ask, "", &w.ans,
                                         &w.err),
                     DIBS_NOMEM);
    dibsx_alloc_fail_at(1);
    assert_int_equal(dibs__grant_release(world_load(&w), &leave, &w.err),
                     DIBS_NOMEM);
    dibsx_alloc_fail_at(0);
    assert_int_equal(dibs__grant_acquire(world_load(&w), &ask, "", &w.ans,
                                         &w.err),
                     DIBS_OK);
    world_fini(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_invalid_asks_change_nothing),
        cmocka_unit_test(test_already_yours_answers_what_is_left),
        cmocka_unit_test(test_claim_is_notified_and_confirmed),
        cmocka_unit_test(test_refusal_says_when_to_ask_again),
        cmocka_unit_test(test_foreign_row_is_survived),
        cmocka_unit_test(test_renew_never_shortens),
        cmocka_unit_test(test_the_last_millisecond_is_lost),
        cmocka_unit_test(test_renew_wants_owner_and_fence),
        cmocka_unit_test(test_fence_rises_when_the_wall_clock_does_not),
        cmocka_unit_test(test_revoke_notifies_and_counts),
        cmocka_unit_test(test_who_and_doorbell_are_kept),
        cmocka_unit_test(test_every_step_drops_the_dead),
        cmocka_unit_test(test_age_counts_from_the_grant_or_the_first_ask),
        cmocka_unit_test(test_steps_on_one_roll_add_up),
        cmocka_unit_test(test_short_memory_is_reported),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
