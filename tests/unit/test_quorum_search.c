/* test_quorum_search.c - the search for a free slot: which is asked for first, and
 * which next. */
/* SPDX-License-Identifier: MIT */
#include "unit.h"

#include "store/quorum/slots.h"
#include <stdio.h>

static const char owner[] = "0123456789abcdef0123456789abcdef";

static const char *owner_of(unsigned number, char out[33])
{
    snprintf(out, 33, "%08x%08x%016x", number * 2654435761U, number, 7U);
    return out;
}

static dibs__ballot busy(uint64_t taken)
{
    dibs__ballot bl = {.count = 3};

    for (size_t i = 0; i < bl.count; i++)
        bl.votes[i] = (dibs__vote){.in = true,
                                   .counts = true,
                                   .rc = DIBS_BUSY,
                                   .taken = taken};
    return bl;
}

static void an_owner_begins_where_it_began_before(void **state)
{
    dibs__slots one, other;

    (void)state;
    dibs__slots_init(&one, 64, owner);
    dibs__slots_init(&other, 64, owner);
    assert_int_equal(one.slot, other.slot);
    assert_true(one.slot >= 1 && one.slot <= 64);
}

static void owners_begin_anywhere(void **state)
{
    uint64_t seen = 0;
    char text[33];

    (void)state;
    for (unsigned i = 0; i < 200; i++) {
        dibs__slots sl;

        dibs__slots_init(&sl, 5, owner_of(i, text));
        assert_true(sl.slot >= 1 && sl.slot <= 5);
        seen |= (uint64_t)1 << (sl.slot - 1);
    }
    assert_int_equal(seen, 0x1f);
}

static void what_is_free_is_found_at_once(void **state)
{
    char text[33];

    (void)state;
    for (unsigned i = 0; i < 64; i++) {
        dibs__slots sl;
        dibs__ballot bl = busy(~((uint64_t)1 << i));

        dibs__slots_init(&sl, 64, owner_of(i, text));
        if (sl.slot == i + 1)
            continue;
        dibs__slots_move(&sl, &bl, 0);
        assert_true(sl.moves);
        assert_int_equal(sl.slot, i + 1);
    }
}

/* It may have been given back at a majority already. */
static void what_few_nodes_have_is_tried_last(void **state)
{
    dibs__ballot bl = busy(0);
    dibs__slots sl;

    (void)state;
    dibs__slots_init(&sl, 3, owner);
    bl.votes[0].taken = 7;
    bl.votes[1].taken = bl.votes[2].taken = (uint64_t)1 << (sl.slot - 1);
    dibs__slots_move(&sl, &bl, 0);
    assert_true(sl.moves);
    bl.votes[1].taken = 7;
    dibs__slots_move(&sl, &bl, 0);
    assert_false(sl.moves);
}

/* However little the nodes say, the search ends. */
static void each_is_tried_once(void **state)
{
    dibs__ballot bl = busy(0);
    dibs__slots sl;
    uint64_t seen = 0;
    int count = 0;

    (void)state;
    dibs__slots_init(&sl, 64, owner);
    do {
        assert_int_equal(seen & ((uint64_t)1 << (sl.slot - 1)), 0);
        seen |= (uint64_t)1 << (sl.slot - 1);
        count++;
        sl.moves = false;
        dibs__slots_move(&sl, &bl, 1U << (count % 3));
    } while (sl.moves);
    assert_int_equal(count, 64);
    assert_int_equal(sl.doubtful, 7);
}

static void slots_have_fences_of_their_own(void **state)
{
    dibs__slots sl = {.capacity = 64};

    (void)state;
    for (uint64_t least = 1000; least < 1200; least++)
        for (sl.slot = 1; sl.slot <= 64; sl.slot++) {
            uint64_t fence = dibs__slots_fence(&sl, least);

            assert_true(fence >= least && fence < least + 64);
            assert_int_equal(fence % 64, sl.slot - 1);
        }
    sl = (dibs__slots){.capacity = 0};
    assert_int_equal(dibs__slots_fence(&sl, 1001), 1001);
}

static void a_name_without_slots_stays(void **state)
{
    dibs__ballot bl = busy(UINT64_MAX);
    dibs__slots sl;

    (void)state;
    dibs__slots_init(&sl, 0, owner);
    dibs__slots_move(&sl, &bl, 7);
    assert_false(sl.moves);
    assert_int_equal(sl.slot, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_owner_begins_where_it_began_before),
        cmocka_unit_test(owners_begin_anywhere),
        cmocka_unit_test(what_is_free_is_found_at_once),
        cmocka_unit_test(what_few_nodes_have_is_tried_last),
        cmocka_unit_test(each_is_tried_once),
        cmocka_unit_test(slots_have_fences_of_their_own),
        cmocka_unit_test(a_name_without_slots_stays),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
