/* test_grant_roll.c - the parties of one name: storage, order, and the check that
 * finds every broken invariant. */
/* SPDX-License-Identifier: MIT */
#include "base/alloc.h"
#include "store/grant.h"
#include "unit.h"
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { NOW_US = 50000000 };

/* A live party of an exclusive lock. */
static dibs__party *
add(dibs__roll *roll, const char *owner, dibs__role role, uint64_t fence)
{
    dibs__party *party = dibs__roll_add(roll);

    assert_non_null(party);
    snprintf(party->owner, sizeof(party->owner), "%s", owner);
    party->role = role;
    party->fence = fence;
    party->permits = 1;
    party->until_us = NOW_US + 5500;
    return party;
}

static void start(dibs__roll *roll)
{
    memset(roll, 0, sizeof(*roll));
    roll->now_us = NOW_US;
    roll->watermark = 100;
}

static void test_storage(void **state)
{
    dibs__roll roll = {0};
    dibs__party *first;

    (void)state;
    dibs__roll_fini(&roll);
    for (int i = 0; i < 100; i++) {
        dibs__party *party = dibs__roll_add(&roll);
        static const dibs__party blank;

        assert_non_null(party);
        assert_int_equal(party->mark, DIBS__KEPT);
        assert_memory_equal(party, &blank, sizeof(blank));
        memset(party, 0xa5, sizeof(*party));
    }
    assert_int_equal(roll.count, 100);
    first = roll.parties;
    dibs__roll_reset(&roll);
    assert_int_equal(roll.count, 0);
    assert_ptr_equal(dibs__roll_add(&roll), first);
    assert_int_equal(first->until_us, 0);
    dibs__roll_fini(&roll);
    assert_null(roll.parties);
    assert_int_equal(roll.room, 0);
}

static void test_storage_is_bounded(void **state)
{
    dibs__roll roll = {0};
    size_t count;

    (void)state;
    dibsx_alloc_fail_at(1);
    assert_null(dibs__roll_add(&roll));
    assert_int_equal(roll.count, 0);
    dibsx_alloc_fail_at(2);
    while (dibs__roll_add(&roll))
        ;
    dibsx_alloc_fail_at(0);
    count = roll.count;
    assert_true(count > 0);
    assert_non_null(dibs__roll_add(&roll));
    assert_int_equal(roll.count, count + 1);

    while (dibs__roll_add(&roll))
        ;
    assert_int_equal(roll.count, 1 << 17);
    dibs__roll_fini(&roll);
}

static void test_show_puts_holders_first_then_the_queue(void **state)
{
    static const char *const order[] = {"h1", "h2", "g", "v", "w1", "w2"};
    dibs__entry entries[9];
    dibs__roll roll;
    dibs__party *v;

    (void)state;
    start(&roll);
    add(&roll, "w2", DIBS__WAITER, 0)->seq = 8;
    add(&roll, "g", DIBS__GHOST, 9)->claim = true;
    add(&roll, "t", DIBS__TOMB, 0);
    add(&roll, "w1", DIBS__WAITER, 0)->seq = 7;
    add(&roll, "h2", DIBS__HOLDER, 8)->claim = true;
    add(&roll, "old", DIBS__HOLDER, 5)->until_us = NOW_US;
    add(&roll, "gone", DIBS__WAITER, 0)->mark = DIBS__DROPPED;
    add(&roll, "v", DIBS__WAITER, 0)->seq = 9;
    add(&roll, "h1", DIBS__HOLDER, 7);
    v = dibs__roll_find(&roll, "v");
    v->priority = 1;
    v->since_us = NOW_US - 9999000;
    v->until_us = NOW_US + 9999000;
    v->ttl_ms = 77;
    v->mode = DIBS__PERMITS;
    v->permits = 3;
    v->capacity = 4;
    snprintf(v->who, sizeof(v->who), "host:1");

    memset(entries, 0xa5, sizeof(entries));
    assert_int_equal(dibs__roll_show(&roll, entries), COUNT_OF(order));
    for (size_t i = 0; i < COUNT_OF(order); i++) {
        assert_string_equal(entries[i].owner, order[i]);
        assert_int_equal(entries[i].holder, i < 3);
        assert_int_equal(entries[i].claim, i == 1);
        assert_int_equal(entries[i].left, i == 2);
        assert_int_equal(entries[i].left_ms, i == 3 ? 9999 : 5);
    }
    assert_int_equal(entries[3].priority, 1);
    assert_int_equal(entries[3].age_ms, 9999);
    assert_int_equal(entries[3].ttl_ms, 77);
    assert_string_equal(entries[3].who, "host:1");
    assert_int_equal(entries[0].fence, 7);
    assert_int_equal(entries[3].mode, DIBS__PERMITS);
    assert_int_equal(entries[3].permits, 3);
    assert_int_equal(entries[3].capacity, 4);

    assert_int_equal(dibs__roll_ahead(&roll, NULL), 3);
    assert_int_equal(dibs__roll_ahead(&roll, v), 0);
    assert_int_equal(dibs__roll_ahead(&roll, &roll.parties[0]), 2);
    dibs__roll_fini(&roll);
}

/* Rows that should not be alike are still all shown, each once. */
static void test_show_has_a_strict_order(void **state)
{
    dibs__entry entries[4];
    dibs__roll roll;

    (void)state;
    start(&roll);
    add(&roll, "w1", DIBS__WAITER, 0);
    add(&roll, "h1", DIBS__HOLDER, 5);
    add(&roll, "w2", DIBS__WAITER, 0);
    add(&roll, "h2", DIBS__HOLDER, 5);
    assert_int_equal(dibs__roll_show(&roll, entries), 4);
    assert_string_equal(entries[0].owner, "h1");
    assert_string_equal(entries[1].owner, "h2");
    assert_string_equal(entries[2].owner, "w1");
    assert_string_equal(entries[3].owner, "w2");
    dibs__roll_fini(&roll);
}

static void test_questions_of_an_empty_roll(void **state)
{
    dibs__roll roll;

    (void)state;
    start(&roll);
    assert_null(dibs__roll_find(&roll, "a"));
    assert_null(dibs__roll_next(&roll));
    assert_null(dibs__roll_first_to_end(&roll));
    assert_int_equal(dibs__roll_ahead(&roll, NULL), 0);
    assert_int_equal(dibs__roll_show(&roll, NULL), 0);
    dibs__roll_check(&roll);
}

static void test_first_to_end(void **state)
{
    dibs__roll roll;
    dibs__party *soon;

    (void)state;
    start(&roll);
    add(&roll, "w", DIBS__WAITER, 0)->until_us = NOW_US + 1;
    add(&roll, "a", DIBS__HOLDER, 1);
    soon = add(&roll, "b", DIBS__GHOST, 2);
    soon->until_us = NOW_US + 2;
    add(&roll, "c", DIBS__HOLDER, 3);
    assert_ptr_equal(dibs__roll_first_to_end(&roll), soon);
    dibs__roll_fini(&roll);
}

static sigjmp_buf aborted;

static void on_abort(int number)
{
    (void)number;
    siglongjmp(aborted, 1);
}

/* Runs the check in this process and wants it to abort, saying so. Then frees
 * the roll. */
static void assert_broken(dibs__roll *roll, const char *saying)
{
    struct sigaction old, act = {.sa_handler = on_abort};
    char said[256] = "";
    int saved = dup(STDERR_FILENO);
    volatile bool broken = true;
    int ends[2];

    assert_int_equal(pipe(ends), 0);
    assert_true(saved >= 0);
    fflush(stderr);
    assert_int_equal(dup2(ends[1], STDERR_FILENO), STDERR_FILENO);
    sigaction(SIGABRT, &act, &old);
    if (sigsetjmp(aborted, 1) == 0) {
        dibs__roll_check(roll);
        broken = false;
    }
    sigaction(SIGABRT, &old, NULL);
    assert_int_equal(dup2(saved, STDERR_FILENO), STDERR_FILENO);
    close(saved);
    close(ends[1]);
    assert_true(read(ends[0], said, sizeof(said) - 1) >= 0);
    close(ends[0]);

    assert_true(broken);
    if (!strstr(said, saying))
        fail_msg("said \"%s\", not \"%s\"", said, saying);
    dibs__roll_fini(roll);
}

static void test_check_of_one_party(void **state)
{
    dibs__roll roll;

    (void)state;
    start(&roll);
    add(&roll, "a", DIBS__HOLDER, 1)->mode = DIBS__PERMITS;
    assert_broken(&roll, "mode and capacity differ");
    start(&roll);
    add(&roll, "a", DIBS__HOLDER, 1)->capacity = 2;
    assert_broken(&roll, "mode and capacity differ");
    start(&roll);
    add(&roll, "a", DIBS__HOLDER, 1)->permits = 0;
    assert_broken(&roll, "without permits");
    start(&roll);
    add(&roll, "a", DIBS__GHOST, 0);
    assert_broken(&roll, "without a fence");
    start(&roll);
    add(&roll, "a", DIBS__HOLDER, 101);
    assert_broken(&roll, "above the watermark");
    start(&roll);
    add(&roll, "a", DIBS__HOLDER, 1);
    add(&roll, "b", DIBS__WAITER, 1);
    assert_broken(&roll, "a waiter with a fence");
    start(&roll);
    add(&roll, "a", DIBS__WAITER, 0);
    assert_broken(&roll, "the head of the queue fits");
}

static void test_check_of_a_notice(void **state)
{
    dibs__party *one;
    dibs__roll roll;

    (void)state;
    for (int broken = 0; broken < 3; broken++) {
        start(&roll);
        add(&roll, "a", DIBS__HOLDER, 1);
        one = add(&roll, "b", broken == 0 ? DIBS__GHOST : DIBS__HOLDER, 2);
        one->mode = roll.parties[0].mode = DIBS__SHARED;
        one->notify = true;
        one->notice = DIBS__NOTICE_WANTED;
        one->tell = broken != 1;
        one->bell[0] = broken == 2 ? '\0' : 'x';
        assert_broken(&roll, "notified of a refusal");
    }
    start(&roll);
    one = add(&roll, "a", DIBS__HOLDER, 1);
    one->notify = one->tell = true;
    one->notice = DIBS__NOTICE_WANTED;
    one->bell[0] = 'x';
    dibs__roll_check(&roll);
    one->tell = false;
    one->notice = DIBS__NOTICE_YIELD;
    dibs__roll_check(&roll);
    dibs__roll_fini(&roll);
}

static void test_check_of_two_parties(void **state)
{
    dibs__party *one;
    dibs__roll roll;

    (void)state;
    start(&roll);
    add(&roll, "a", DIBS__HOLDER, 1);
    add(&roll, "a", DIBS__TOMB, 0);
    assert_broken(&roll, "an owner is there twice");
    start(&roll);
    add(&roll, "a", DIBS__HOLDER, 1);
    one = add(&roll, "b", DIBS__WAITER, 0);
    one->mode = DIBS__PERMITS;
    one->capacity = 2;
    assert_broken(&roll, "two kinds");
    start(&roll);
    add(&roll, "a", DIBS__HOLDER, 1)->mode = DIBS__SHARED;
    add(&roll, "b", DIBS__GHOST, 2);
    assert_broken(&roll, "an exclusive lease beside another");
    start(&roll);
    add(&roll, "a", DIBS__HOLDER, 1);
    add(&roll, "b", DIBS__HOLDER, 2)->mode = DIBS__SHARED;
    assert_broken(&roll, "an exclusive lease beside another");
    start(&roll);
    add(&roll, "a", DIBS__HOLDER, 1)->mode = DIBS__SHARED;
    add(&roll, "b", DIBS__HOLDER, 1)->mode = DIBS__SHARED;
    assert_broken(&roll, "a fence is there twice");
}

static void test_check_of_permits(void **state)
{
    dibs__roll roll;

    (void)state;
    start(&roll);
    for (uint64_t fence = 1; fence <= 3; fence++) {
        char owner[2] = {(char)('a' + fence), '\0'};
        dibs__party *party = add(&roll, owner, DIBS__HOLDER, fence);

        party->mode = DIBS__PERMITS;
        party->permits = 2;
        party->capacity = 5;
        if (fence == 2)
            dibs__roll_check(&roll);
    }
    assert_broken(&roll, "more permits than the capacity");
}

/* What is over, and a tombstone, break nothing. */
static void test_check_looks_at_the_living(void **state)
{
    dibs__roll roll;

    (void)state;
    start(&roll);
    add(&roll, "a", DIBS__HOLDER, 1);
    add(&roll, "a", DIBS__HOLDER, 1)->until_us = NOW_US;
    add(&roll, "a", DIBS__HOLDER, 1)->mark = DIBS__DROPPED;
    add(&roll, "b", DIBS__TOMB, 0)->capacity = 7;
    add(&roll, "c", DIBS__TOMB, 0);
    add(&roll, "d", DIBS__WAITER, 0);
    add(&roll, "e", DIBS__WAITER, 0);
    dibs__roll_check(&roll);
    dibs__roll_fini(&roll);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_storage),
        cmocka_unit_test(test_storage_is_bounded),
        cmocka_unit_test(test_show_puts_holders_first_then_the_queue),
        cmocka_unit_test(test_show_has_a_strict_order),
        cmocka_unit_test(test_questions_of_an_empty_roll),
        cmocka_unit_test(test_first_to_end),
        cmocka_unit_test(test_check_of_one_party),
        cmocka_unit_test(test_check_of_a_notice),
        cmocka_unit_test(test_check_of_two_parties),
        cmocka_unit_test(test_check_of_permits),
        cmocka_unit_test(test_check_looks_at_the_living),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
