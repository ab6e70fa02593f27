/* test_grant_convert.c - the grant rule where a lease is turned into another, and
 * where holders are told that they are wanted. */
/* SPDX-License-Identifier: MIT */
#include "base/alloc.h"
#include "grant_world.h"
#include <stdio.h>
#include <string.h>

static const world_want writer = {WANT_X}, reader = {WANT_S};

static uint64_t fence_of(world *w, const char *owner)
{
    const dibs__party *row = world_row(w, owner);

    assert_non_null(row);
    return row->fence;
}

static uint64_t hold(world *w, const char *owner, const world_want *want)
{
    assert_int_equal(world_acquire(w, owner, want, 0), DIBS_OK);
    return w->ans.fence;
}

static void wait_for(world *w, const char *owner, const world_want *want)
{
    assert_int_equal(world_acquire(w, owner, want, DIBS__ASK_QUEUE), DIBS_BUSY);
}

#define ASSERT_SHOWN(w, text) assert_string_equal(world_show(w), text " ")

static void test_upgrade_needs_to_be_alone(void **state)
{
    uint64_t fence;
    world w;

    (void)state;
    world_init(&w);
    fence = hold(&w, "a", &reader);
    hold(&w, "b", &reader);
    wait_for(&w, "w", &writer);
    assert_int_equal(world_turn(&w, "a", fence, DIBS__EXCLUSIVE, NULL),
                     DIBS_BUSY);
    assert_string_equal(w.err.message, "`n` is shared by host:1 label");
    assert_int_equal(w.ans.fence, 0);
    ASSERT_SHOWN(&w, "a b | w");
    assert_int_equal(world_row(&w, "a")->mode, DIBS__SHARED);

    /* Who has left but keeps others out is another too. */
    assert_int_equal(world_release(&w, "b", false, 500), DIBS_OK);
    assert_int_equal(world_turn(&w, "a", fence, DIBS__EXCLUSIVE, NULL),
                     DIBS_BUSY);
    world_pass(&w, 500);

    /* The queue does not come between. */
    assert_int_equal(world_turn(&w, "a", fence, DIBS__EXCLUSIVE, NULL),
                     DIBS_OK);
    ASSERT_SHOWN(&w, "a | w");
    assert_true(w.ans.fence > fence);
    assert_true(w.ans.fence == fence_of(&w, "a"));
    assert_int_equal(w.ans.left_ms, WORLD_TTL_MS);
    assert_int_equal(world_row(&w, "a")->mode, DIBS__EXCLUSIVE);
    assert_string_equal(world_row(&w, "a")->bell, "bell");
    assert_string_equal(w.notified, "");

    /* The fence before is void. */
    assert_int_equal(world_renew(&w, "a", fence, 1).rc, DIBS_LOST);
    assert_int_equal(world_renew(&w, "a", w.ans.fence, 1).rc, DIBS_OK);
    world_fini(&w);
}

static void test_downgrade_keeps_the_fence_and_serves_the_queue(void **state)
{
    uint64_t fence;
    world w;

    (void)state;
    world_init(&w);
    fence = hold(&w, "a", &writer);
    wait_for(&w, "r1", &reader);
    wait_for(&w, "r2", &reader);
    wait_for(&w, "w", &writer);
    wait_for(&w, "r3", &reader);
    world_pass(&w, 1000);
    assert_int_equal(world_turn(&w, "a", fence, DIBS__SHARED, NULL), DIBS_OK);
    assert_true(w.ans.fence == fence);
    assert_int_equal(w.ans.left_ms, WORLD_TTL_MS);
    ASSERT_SHOWN(&w, "a r1* r2* | w r3");
    assert_string_equal(w.notified, "+r1 +r2 ");
    world_fini(&w);
}

static void test_a_lost_answer_is_asked_for_again(void **state)
{
    uint64_t fence, turned;
    world w;

    (void)state;
    world_init(&w);
    fence = hold(&w, "a", &reader);
    assert_int_equal(world_turn(&w, "a", fence, DIBS__EXCLUSIVE, NULL),
                     DIBS_OK);
    turned = w.ans.fence;
    world_pass(&w, 1000);
    assert_int_equal(world_turn(&w, "a", fence, DIBS__EXCLUSIVE, NULL),
                     DIBS_OK);
    assert_true(w.ans.fence == turned);
    assert_int_equal(w.ans.left_ms, WORLD_TTL_MS - 1000);
    w.now_us += (WORLD_TTL_MS - 1001) * 1000 + 1;
    assert_int_equal(world_turn(&w, "a", fence, DIBS__EXCLUSIVE, NULL),
                     DIBS_LOST);
    assert_int_equal(world_renew(&w, "a", turned, WORLD_TTL_MS).rc, DIBS_OK);

    /* Down, twice, and what comes late of the way up is lost. */
    for (int i = 0; i < 2; i++) {
        assert_int_equal(world_turn(&w, "a", turned, DIBS__SHARED, NULL),
                         DIBS_OK);
        assert_true(w.ans.fence == turned);
    }
    assert_int_equal(world_turn(&w, "a", fence, DIBS__EXCLUSIVE, NULL),
                     DIBS_LOST);
    ASSERT_SHOWN(&w, "a |");

    assert_int_equal(world_turn(&w, "a", turned, DIBS__SHARED, "b"), DIBS_OK);
    fence = w.ans.fence;
    assert_int_equal(world_turn(&w, "a", turned, DIBS__SHARED, "b"), DIBS_OK);
    assert_true(w.ans.fence == fence);
    assert_int_equal(world_turn(&w, "a", turned, DIBS__EXCLUSIVE, "b"),
                     DIBS_LOST);
    assert_int_equal(world_turn(&w, "a", fence, DIBS__SHARED, "b"), DIBS_LOST);
    assert_int_equal(world_turn(&w, "a", turned, DIBS__SHARED, "c"), DIBS_LOST);
    ASSERT_SHOWN(&w, "b |");
    world_fini(&w);
}

static void test_another_owner_has_a_lease_of_its_own(void **state)
{
    const dibs__party *row;
    uint64_t fence, next;
    world w;

    (void)state;
    world_init(&w);
    assert_int_equal(world_acquire(&w, "a", &writer, DIBS__ASK_TELL), DIBS_OK);
    fence = w.ans.fence;
    wait_for(&w, "q", &writer);
    world_pass(&w, 20000);
    assert_int_equal(world_turn(&w, "a", fence, DIBS__EXCLUSIVE, "b"), DIBS_OK);
    next = w.ans.fence;
    assert_true(next > fence);
    assert_int_equal(w.ans.left_ms, WORLD_TTL_MS);
    assert_false(w.ans.claim);
    assert_null(world_row(&w, "a"));
    row = world_row(&w, "b");
    assert_non_null(row);
    assert_string_equal(row->bell, "");
    assert_false(row->tell);
    assert_string_equal(row->who, "host:1 label");
    assert_int_equal(row->ttl_ms, WORLD_TTL_MS);
    assert_int_equal(row->since_us, w.now_us);

    /* The old owner is out, with whatever fence. */
    assert_int_equal(world_renew(&w, "a", fence, 1).rc, DIBS_LOST);
    assert_int_equal(world_renew(&w, "a", next, 1).rc, DIBS_LOST);
    assert_int_equal(world_release(&w, "a", false, 0), DIBS_LOST);
    ASSERT_SHOWN(&w, "b |");

    /* The new one listens from its first renewal on. */
    assert_int_equal(world_renew(&w, "b", next, WORLD_TTL_MS).rc, DIBS_OK);
    assert_string_equal(world_row(&w, "b")->bell, "bell");
    assert_int_equal(world_release(&w, "b", false, 0), DIBS_OK);
    ASSERT_SHOWN(&w, "|");
    world_fini(&w);
}

static void test_a_conversion_never_shortens(void **state)
{
    dibs__conversion turn = {.name = "n",
                             .owner = "a",
                             .mode = DIBS__SHARED,
                             .to_owner = "a",
                             .ttl_ms = 1};
    world w;

    (void)state;
    world_init(&w);
    turn.fence = hold(&w, "a", &writer);
    assert_int_equal(dibs__grant_convert(world_load(&w), &turn, &w.ans, &w.err),
                     DIBS_OK);
    world_commit(&w);
    assert_int_equal(w.ans.left_ms, WORLD_TTL_MS);
    turn.to_owner = "b";
    turn.ttl_ms = 2 * WORLD_TTL_MS;
    assert_int_equal(dibs__grant_convert(world_load(&w), &turn, &w.ans, &w.err),
                     DIBS_OK);
    world_commit(&w);
    assert_int_equal(w.ans.left_ms, 2 * WORLD_TTL_MS);
    world_fini(&w);
}

static void test_a_claim_that_is_converted_is_whole(void **state)
{
    world w;

    (void)state;
    world_init(&w);
    hold(&w, "a", &writer);
    wait_for(&w, "b", &writer);
    assert_int_equal(world_release(&w, "a", false, 0), DIBS_OK);
    ASSERT_SHOWN(&w, "b* |");
    assert_int_equal(world_turn(&w, "b", fence_of(&w, "b"), DIBS__SHARED, NULL),
                     DIBS_OK);
    ASSERT_SHOWN(&w, "b |");
    assert_int_equal(w.ans.left_ms, WORLD_TTL_MS);

    wait_for(&w, "c", &writer);
    assert_int_equal(world_release(&w, "b", false, 0), DIBS_OK);
    ASSERT_SHOWN(&w, "c* |");
    assert_int_equal(world_turn(&w, "c", fence_of(&w, "c"), DIBS__EXCLUSIVE,
                                "d"),
                     DIBS_OK);
    ASSERT_SHOWN(&w, "d |");
    world_fini(&w);
}

static void test_permits_change_their_owner_only(void **state)
{
    static const world_want two = {WANT_P(2, 3)}, one = {WANT_P(1, 3)};
    const dibs__party *row;
    uint64_t fence;
    world w;

    (void)state;
    world_init(&w);
    fence = hold(&w, "a", &two);
    hold(&w, "b", &one);
    assert_int_equal(world_turn(&w, "a", fence, DIBS__EXCLUSIVE, NULL),
                     DIBS_INVALID);
    assert_int_equal(world_turn(&w, "a", fence, DIBS__SHARED, "c"),
                     DIBS_INVALID);
    ASSERT_SHOWN(&w, "a b |");
    assert_int_equal(world_turn(&w, "a", fence, DIBS__PERMITS, "c"), DIBS_OK);
    ASSERT_SHOWN(&w, "b c |");
    row = world_row(&w, "c");
    assert_int_equal(row->permits, 2);
    assert_int_equal(row->capacity, 3);

    assert_int_equal(world_take(&w, 0, &(uint32_t){0}), DIBS_OK);
    fence = hold(&w, "a", &reader);
    assert_int_equal(world_turn(&w, "a", fence, DIBS__PERMITS, "b"),
                     DIBS_INVALID);
    world_fini(&w);
}

static void test_only_a_live_lease_is_converted(void **state)
{
    uint64_t fence;
    world w;

    (void)state;
    world_init(&w);
    assert_int_equal(world_turn(&w, "a", 7, DIBS__SHARED, NULL), DIBS_LOST);
    fence = hold(&w, "a", &writer);
    assert_int_equal(world_turn(&w, "a", fence + 1, DIBS__SHARED, NULL),
                     DIBS_LOST);
    wait_for(&w, "q", &writer);
    assert_int_equal(world_turn(&w, "q", 0, DIBS__EXCLUSIVE, "b"), DIBS_LOST);
    assert_int_equal(world_release(&w, "a", true, 500), DIBS_OK);
    assert_int_equal(world_turn(&w, "a", fence, DIBS__SHARED, NULL), DIBS_LOST);
    assert_int_equal(world_turn(&w, "a", fence, DIBS__EXCLUSIVE, "b"),
                     DIBS_LOST);
    ASSERT_SHOWN(&w, "a~ | q");

    /* A turn that comes too late hands off, as any step does. */
    world_pass(&w, 500);
    assert_int_equal(world_turn(&w, "a", fence, DIBS__SHARED, NULL), DIBS_LOST);
    ASSERT_SHOWN(&w, "q* |");
    world_fini(&w);
}

static void test_the_new_owner_is_nobody_yet(void **state)
{
    uint64_t fence;
    world w;

    (void)state;
    world_init(&w);
    fence = hold(&w, "a", &reader);
    hold(&w, "b", &reader);
    wait_for(&w, "q", &writer);
    assert_int_equal(world_turn(&w, "a", fence, DIBS__SHARED, "b"),
                     DIBS_INVALID);
    assert_int_equal(world_turn(&w, "a", fence, DIBS__SHARED, "q"),
                     DIBS_INVALID);
    assert_int_equal(world_release(&w, "t", true, 0), DIBS_LOST);
    assert_int_equal(world_turn(&w, "a", fence, DIBS__SHARED, "t"), DIBS_LOST);
    assert_int_equal(world_release(&w, "b", false, 500), DIBS_OK);
    assert_int_equal(world_turn(&w, "a", fence, DIBS__SHARED, "b"), DIBS_LOST);
    ASSERT_SHOWN(&w, "a b~ | q");

    /* What is left of one whose time has passed is no hindrance. */
    world_pass(&w, DIBS__TOMB_MS);
    assert_int_equal(world_turn(&w, "a", fence, DIBS__SHARED, "t"), DIBS_OK);
    ASSERT_SHOWN(&w, "t |");
    assert_int_equal(w.count, 1);
    world_fini(&w);
}

static void test_conversions_on_one_roll_add_up(void **state)
{
    dibs__ask ask = {.name = "n",
                     .owner = "a",
                     .ttl_ms = WORLD_TTL_MS,
                     .who = ""};
    dibs__conversion turn = {.name = "n",
                             .owner = "a",
                             .to_owner = "b",
                             .ttl_ms = WORLD_TTL_MS};
    dibs__roll *roll;
    world w;

    (void)state;
    world_init(&w);
    roll = world_load(&w);
    assert_int_equal(dibs__grant_acquire(roll, &ask, "", &w.ans, NULL),
                     DIBS_OK);
    turn.fence = w.ans.fence;
    assert_int_equal(dibs__grant_convert(roll, &turn, &w.ans, NULL), DIBS_OK);
    assert_null(dibs__roll_find(roll, "a"));
    turn = (dibs__conversion){.name = "n",
                              .owner = "b",
                              .fence = w.ans.fence,
                              .to_owner = "a"};
    assert_int_equal(dibs__grant_convert(roll, &turn, &w.ans, NULL), DIBS_OK);
    world_commit(&w);
    ASSERT_SHOWN(&w, "a |");
    assert_int_equal(w.count, 1);
    world_fini(&w);
}

static void test_what_runs_short_is_reported(void **state)
{
    dibs__conversion turn = {.name = "n",
                             .owner = "a",
                             .to_owner = "z",
                             .ttl_ms = WORLD_TTL_MS};
    world w;

    (void)state;
    world_init(&w);
    turn.fence = hold(&w, "a", &writer);
    for (char owner[2] = "b"; w.count < 8; owner[0]++)
        world_plant(&w, owner)->role = DIBS__TOMB;
    world_load(&w);
    dibsx_alloc_fail_at(1); /* There is no room for a ninth. */
    assert_int_equal(dibs__grant_convert(&w.roll, &turn, &w.ans, &w.err),
                     DIBS_NOMEM);
    dibsx_alloc_fail_at(0);
    w.watermark = INT64_MAX;
    assert_int_equal(dibs__grant_convert(world_load(&w), &turn, &w.ans, &w.err),
                     DIBS_INTERNAL);
    world_fini(&w);
}

static void test_refusals_are_told_to_those_who_want_to_know(void **state)
{
    world w;

    (void)state;
    world_init(&w);
    assert_int_equal(world_acquire(&w, "a", &reader, DIBS__ASK_TELL), DIBS_OK);
    assert_int_equal(world_acquire(&w, "b", &reader, 0), DIBS_OK);
    assert_int_equal(world_acquire(&w, "c", &reader, DIBS__ASK_TELL), DIBS_OK);
    assert_string_equal(w.notified, "");
    assert_int_equal(world_acquire(&w, "x", &writer, 0), DIBS_BUSY);
    assert_string_equal(w.notified, "?a ?c ");
    assert_int_equal(world_acquire(&w, "x", &writer, DIBS__ASK_QUEUE),
                     DIBS_BUSY);
    assert_string_equal(w.notified, "?a ?c ");

    /* An upgrade is refused likewise, but not because of itself. */
    assert_int_equal(world_turn(&w, "c", fence_of(&w, "c"), DIBS__EXCLUSIVE,
                                NULL),
                     DIBS_BUSY);
    assert_string_equal(w.notified, "?a ");

    /* Who has left, or has no doorbell, is not notified. */
    assert_int_equal(world_release(&w, "a", false, 5000), DIBS_OK);
    world_row(&w, "c")->bell[0] = '\0';
    assert_int_equal(world_acquire(&w, "y", &writer, 0), DIBS_BUSY);
    assert_string_equal(w.notified, "");
    world_fini(&w);
}

static void test_a_waiter_wants_to_be_told_as_a_holder(void **state)
{
    world w;

    (void)state;
    world_init(&w);
    hold(&w, "a", &writer);
    assert_int_equal(world_acquire(&w, "b", &writer,
                                   DIBS__ASK_QUEUE | DIBS__ASK_TELL),
                     DIBS_BUSY);
    wait_for(&w, "c", &writer);
    assert_string_equal(w.notified, "");
    assert_int_equal(world_release(&w, "a", false, 0), DIBS_OK);
    assert_string_equal(w.notified, "+b ");
    assert_true(world_renew(&w, "b", fence_of(&w, "b"), WORLD_TTL_MS).wanted);
    wait_for(&w, "d", &writer);
    assert_string_equal(w.notified, "?b ");

    /* One notice for each in one step: of the grant, when there is one. */
    assert_int_equal(world_release(&w, "c", false, 0), DIBS_LOST);
    assert_int_equal(world_release(&w, "d", false, 0), DIBS_LOST);
    assert_int_equal(world_acquire(&w, "e", &writer,
                                   DIBS__ASK_QUEUE | DIBS__ASK_TELL),
                     DIBS_BUSY);
    world_row(&w, "b")->until_us = w.now_us;
    assert_int_equal(world_acquire(&w, "f", &writer, DIBS__ASK_QUEUE),
                     DIBS_BUSY);
    assert_string_equal(w.notified, "+e ");
    world_fini(&w);
}

static void test_yield_notifies_and_changes_nothing(void **state)
{
    uint32_t asked = 7;
    uint64_t fence;
    world w;

    (void)state;
    world_init(&w);
    assert_int_equal(world_yield(&w, 0, &asked), DIBS_NOTFOUND);
    assert_int_equal(asked, 0);
    fence = hold(&w, "a", &reader);
    hold(&w, "b", &reader);
    hold(&w, "c", &reader);
    hold(&w, "d", &reader);
    wait_for(&w, "q", &writer);
    world_row(&w, "b")->bell[0] = '\0';
    assert_int_equal(world_release(&w, "c", false, 5000), DIBS_OK);
    assert_int_equal(world_yield(&w, 0, &asked), DIBS_OK);
    assert_int_equal(asked, 2);
    assert_string_equal(w.notified, "!a !d ");
    assert_int_equal(world_yield(&w, fence, &asked), DIBS_OK);
    assert_int_equal(asked, 1);
    assert_string_equal(w.notified, "!a ");
    assert_int_equal(world_yield(&w, fence_of(&w, "b"), &asked), DIBS_OK);
    assert_int_equal(asked, 0);
    assert_int_equal(world_yield(&w, 1, &asked), DIBS_STALE);
    assert_string_equal(w.notified, "");

    /* What has expired is not notified, nor ended by this. */
    world_pass(&w, WORLD_TTL_MS);
    assert_int_equal(world_yield(&w, fence, &asked), DIBS_NOTFOUND);
    assert_string_equal(w.notified, "");
    assert_int_equal(w.count, 5);
    world_fini(&w);
}

/* A holder is named without its metadata and in one line that is not cut. */
static void test_a_refusal_names_the_holder_plainly(void **state)
{
    dibs__ask ask = {.name = "n", .owner = "a", .ttl_ms = 1000};
    char who[2 * DIBS__WHO_PLAIN + 1];
    char said[64 + DIBS__WHO_PLAIN];
    world w;

    (void)state;
    world_init(&w);
    ask.who = "host:1/thread label\tjob=7\tstep=2";
    assert_int_equal(dibs__grant_acquire(world_load(&w), &ask, "", &w.ans,
                                         &w.err),
                     DIBS_OK);
    world_commit(&w);
    assert_string_equal(world_row(&w, "a")->who, ask.who);
    assert_int_equal(world_acquire(&w, "b", &writer, 0), DIBS_BUSY);
    assert_string_equal(w.err.message, "`n` is held by host:1/thread label");
    assert_int_equal(world_release(&w, "a", false, 0), DIBS_OK);

    /* 62 bytes, and a character of two that would be cut in half. */
    memset(who, 'w', sizeof(who) - 1);
    who[sizeof(who) - 1] = '\0';
    memcpy(who + DIBS__WHO_PLAIN - 2, "\xc3\xa9", 2);
    ask.who = who;
    assert_int_equal(dibs__grant_acquire(world_load(&w), &ask, "", &w.ans,
                                         &w.err),
                     DIBS_OK);
    world_commit(&w);
    assert_int_equal(world_acquire(&w, "b", &writer, 0), DIBS_BUSY);
    snprintf(said, sizeof(said), "`n` is held by %.*s", DIBS__WHO_PLAIN - 2,
             who);
    assert_string_equal(w.err.message, said);
    world_fini(&w);
}

static void test_renewal_takes_up_the_doorbell(void **state)
{
    dibs__renewal item = {.name = "n", .owner = "a", .ttl_ms = 1};
    world w;

    (void)state;
    world_init(&w);
    item.fence = hold(&w, "a", &writer);
    dibs__grant_renew(world_load(&w), &item, "");
    world_commit(&w);
    assert_string_equal(world_row(&w, "a")->bell, "bell");
    dibs__grant_renew(world_load(&w), &item, "other");
    world_commit(&w);
    assert_string_equal(world_row(&w, "a")->bell, "other");
    item.fence++;
    dibs__grant_renew(world_load(&w), &item, "third");
    world_commit(&w);
    assert_int_equal(item.rc, DIBS_LOST);
    assert_string_equal(world_row(&w, "a")->bell, "other");
    world_fini(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_upgrade_needs_to_be_alone),
        cmocka_unit_test(test_downgrade_keeps_the_fence_and_serves_the_queue),
        cmocka_unit_test(test_a_lost_answer_is_asked_for_again),
        cmocka_unit_test(test_another_owner_has_a_lease_of_its_own),
        cmocka_unit_test(test_a_conversion_never_shortens),
        cmocka_unit_test(test_a_claim_that_is_converted_is_whole),
        cmocka_unit_test(test_permits_change_their_owner_only),
        cmocka_unit_test(test_only_a_live_lease_is_converted),
        cmocka_unit_test(test_the_new_owner_is_nobody_yet),
        cmocka_unit_test(test_conversions_on_one_roll_add_up),
        cmocka_unit_test(test_what_runs_short_is_reported),
        cmocka_unit_test(test_refusals_are_told_to_those_who_want_to_know),
        cmocka_unit_test(test_a_waiter_wants_to_be_told_as_a_holder),
        cmocka_unit_test(test_yield_notifies_and_changes_nothing),
        cmocka_unit_test(test_a_refusal_names_the_holder_plainly),
        cmocka_unit_test(test_renewal_takes_up_the_doorbell),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
