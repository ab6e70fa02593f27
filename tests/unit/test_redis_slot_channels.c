/* test_redis_slot_channels.c - the slots in which a bell is listened to: found, given up
 * in order of their use, and dropped with their ear. */
/* SPDX-License-Identifier: MIT */
#include "unit.h"

#include "store/redis/bell/slot_channels.h"
#include <string.h>

enum { IDLE = 1000 };

static dibs__slot_channels chs;

static int clear(void **state)
{
    (void)state;
    memset(&chs, 0, sizeof(chs));
    return 0;
}

static void a_channel_goes_through_its_stages(void **state)
{
    dibs__channel *ch;

    (void)state;
    assert_null(dibs__slot_channels_find(&chs, 7));
    assert_true(dibs__slot_channels_add(&chs, 1, 7, 10));
    ch = dibs__slot_channels_find(&chs, 7);
    assert_non_null(ch);
    assert_int_equal(ch->listener, 1);
    assert_ptr_equal(dibs__slot_channels_at(&chs, 1, DIBS__WANTED), ch);
    assert_null(dibs__slot_channels_at(&chs, 2, DIBS__WANTED));
    ch->stage = DIBS__HEARD;
    dibs__channel_give_up(ch);
    assert_int_equal(ch->stage, DIBS__UNWANTED);
    assert_null(dibs__slot_channels_find(&chs, 7));
    assert_true(dibs__slot_channels_any(&chs, 1));
}

/* Nothing has to be said to a server about it. */
static void a_wish_is_given_up_at_once(void **state)
{
    (void)state;
    assert_true(dibs__slot_channels_add(&chs, 1, 7, 10));
    dibs__channel_give_up(dibs__slot_channels_find(&chs, 7));
    assert_false(dibs__slot_channels_any(&chs, 1));
}

static void the_one_that_was_not_used_the_longest_makes_room(void **state)
{
    dibs__channel *ch;

    (void)state;
    for (int i = 0; i < DIBS__CHANNELS_HIGH; i++)
        assert_true(dibs__slot_channels_add(&chs, 0, i, 100 + (i + 50) % 100));
    assert_null(dibs__slot_channels_surplus(&chs, 100 + IDLE, IDLE));
    assert_true(dibs__slot_channels_add(&chs, 0, DIBS__CHANNELS_HIGH, 300));
    ch = dibs__slot_channels_surplus(&chs, 300, IDLE);
    assert_non_null(ch);
    assert_int_equal(ch->used_at, 100);
    dibs__channel_give_up(ch);
    assert_null(dibs__slot_channels_surplus(&chs, 300, IDLE));
}

static void what_is_idle_is_given_up_however_few_there_are(void **state)
{
    (void)state;
    assert_null(dibs__slot_channels_surplus(&chs, 100 + IDLE, IDLE));
    assert_true(dibs__slot_channels_add(&chs, 0, 1, 100));
    assert_true(dibs__slot_channels_add(&chs, 0, 2, 50));
    assert_null(dibs__slot_channels_surplus(&chs, 50 + IDLE, IDLE));
    assert_ptr_equal(dibs__slot_channels_surplus(&chs, 51 + IDLE, IDLE),
                     dibs__slot_channels_find(&chs, 2));
}

static void there_is_an_end_to_the_room(void **state)
{
    (void)state;
    for (int i = 0; i < DIBS__CHANNELS_MAX; i++)
        assert_true(dibs__slot_channels_add(&chs, 0, i, 1));
    assert_false(dibs__slot_channels_add(&chs, 0, DIBS__CHANNELS_MAX, 1));
    assert_true(dibs__slot_channels_drop(&chs, 0, DIBS__UNUSED));
    assert_true(dibs__slot_channels_add(&chs, 0, DIBS__CHANNELS_MAX, 1));
}

static void a_listener_is_dropped_without_the_others(void **state)
{
    (void)state;
    for (int i = 0; i < 6; i++)
        assert_true(dibs__slot_channels_add(&chs, i % 2, i, 1));
    dibs__slot_channels_find(&chs, 3)->stage = DIBS__HEARD;
    assert_false(dibs__slot_channels_drop(&chs, 0, DIBS__HEARD));
    assert_true(dibs__slot_channels_drop(&chs, 1, DIBS__HEARD));
    assert_null(dibs__slot_channels_find(&chs, 3));
    assert_non_null(dibs__slot_channels_find(&chs, 5));
    assert_true(dibs__slot_channels_drop(&chs, 1, DIBS__UNUSED));
    assert_false(dibs__slot_channels_any(&chs, 1));
    assert_true(dibs__slot_channels_any(&chs, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_channel_goes_through_its_stages, clear),
        cmocka_unit_test_setup(a_wish_is_given_up_at_once, clear),
        cmocka_unit_test_setup(the_one_that_was_not_used_the_longest_makes_room,
                               clear),
        cmocka_unit_test_setup(what_is_idle_is_given_up_however_few_there_are,
                               clear),
        cmocka_unit_test_setup(there_is_an_end_to_the_room, clear),
        cmocka_unit_test_setup(a_listener_is_dropped_without_the_others, clear),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
