/* test_quorum_ballot.c - what votes add up to. */
/* SPDX-License-Identifier: MIT */
#include "unit.h"

#include "store/quorum/ballot.h"

enum { NODES = 5 };

static dibs__vote yes(uint64_t fence, int64_t left_ms)
{
    return (dibs__vote){.in = true,
                        .counts = true,
                        .rc = DIBS_OK,
                        .fence = fence,
                        .left_ms = left_ms};
}

static dibs__vote no(dibs_status rc)
{
    return (dibs__vote){.in = true, .counts = true, .rc = rc};
}

static dibs__ballot five(void)
{
    return (dibs__ballot){.count = NODES};
}

static void a_majority_is_of_all_nodes(void **state)
{
    (void)state;
    assert_int_equal(dibs__majority(3), 2);
    assert_int_equal(dibs__majority(5), 3);
    assert_int_equal(dibs__majority(9), 5);
}

/* Two say yes, and nobody else answers: they are all of those that answered, and
 * no majority. */
static void those_who_answer_are_no_majority(void **state)
{
    dibs__ballot bl = five();
    uint64_t fence;

    (void)state;
    bl.votes[0] = bl.votes[1] = yes(7, 100);
    assert_int_equal(dibs__ballot_grants(&bl, &fence), DIBS__OPEN);
    for (size_t i = 2; i < NODES; i++)
        bl.votes[i] = no(DIBS_UNAVAIL);
    assert_int_equal(dibs__ballot_grants(&bl, &fence), DIBS__DEFEAT);
    assert_int_equal(dibs__ballot_status(&bl), DIBS_UNAVAIL);
}

static void one_fence_of_a_majority_is_enough(void **state)
{
    dibs__ballot bl = five();
    uint64_t fence = 0;

    (void)state;
    bl.votes[4] = yes(7, 100);
    bl.votes[1] = yes(9, 100);
    bl.votes[0] = yes(7, 100);
    assert_int_equal(dibs__ballot_grants(&bl, &fence), DIBS__SPLIT);
    assert_int_equal(fence, 9);
    bl.votes[2] = yes(7, 100);
    assert_int_equal(dibs__ballot_grants(&bl, &fence), DIBS__WON);
    assert_int_equal(fence, 7);
}

static dibs__vote again(uint64_t fence)
{
    dibs__vote vote = yes(fence, 100);

    vote.again = true;
    return vote;
}

/* Three nodes have it under 7, which is believed in; two were late, and have
 * others. Of whichever three answers first, 7 is what it comes to. */
static void the_fence_that_is_held_is_not_written_over(void **state)
{
    dibs__ballot bl = five();
    uint64_t fence = 0;

    (void)state;
    bl.votes[0] = again(7);
    bl.votes[3] = again(9);
    bl.votes[4] = again(12);
    assert_int_equal(dibs__ballot_grants(&bl, &fence), DIBS__DOUBT);
    assert_false(dibs__ballot_settled(&bl));
    bl.votes[1] = again(7);
    assert_int_equal(dibs__ballot_grants(&bl, &fence), DIBS__DOUBT);
    bl.votes[2] = again(7);
    assert_int_equal(dibs__ballot_grants(&bl, &fence), DIBS__WON);
    assert_true(dibs__ballot_settled(&bl));
    assert_int_equal(fence, 7);
}

/* Who does not answer, or answers what does not count, may have it. So may who gave
 * it only now, or to another, if it had lost it. */
static void a_doubt_is_not_ended_by_a_failure(void **state)
{
    static const dibs_status failures[] = {DIBS_UNKNOWN, DIBS_UNAVAIL,
                                           DIBS_REFUSED, DIBS_DENIED,
                                           DIBS_BUSY};
    dibs__ballot bl = five();
    uint64_t fence = 0;

    (void)state;
    bl.votes[0] = again(7);
    bl.votes[3] = again(9);
    bl.votes[4] = yes(12, 100);
    for (size_t i = 0; i < COUNT_OF(failures); i++) {
        bl.votes[1] = bl.votes[2] = no(failures[i]);
        assert_int_equal(dibs__ballot_grants(&bl, &fence), DIBS__DOUBT);
        assert_true(dibs__ballot_settled(&bl));
    }
    bl.votes[1] = bl.votes[2] = again(7);
    bl.votes[1].counts = bl.votes[2].counts = false;
    assert_int_equal(dibs__ballot_grants(&bl, &fence), DIBS__DOUBT);
    bl.votes[1] = bl.votes[2] = yes(12, 100);
    bl.votes[4] = again(9);
    assert_int_equal(dibs__ballot_grants(&bl, &fence), DIBS__DOUBT);
}

/* Those that have it under other fences do not have it under this one. */
static void what_no_majority_can_have_is_written_over(void **state)
{
    dibs__ballot bl = five();
    uint64_t fence = 0;

    (void)state;
    bl.votes[0] = again(7);
    bl.votes[1] = again(9);
    bl.votes[2] = again(12);
    assert_int_equal(dibs__ballot_grants(&bl, &fence), DIBS__DOUBT);
    /* Only the highest may be held: to write that back changes nothing. */
    bl.votes[3] = again(12);
    assert_int_equal(dibs__ballot_grants(&bl, &fence), DIBS__SPLIT);
    assert_int_equal(fence, 12);
    assert_true(dibs__ballot_settled(&bl));
}

static void votes_that_do_not_count_are_none(void **state)
{
    dibs__ballot bl = five();
    uint64_t fence;

    (void)state;
    for (size_t i = 0; i < NODES; i++) {
        bl.votes[i] = yes(7, 100);
        bl.votes[i].counts = i < 2;
    }
    assert_int_equal(dibs__ballot_grants(&bl, &fence), DIBS__DEFEAT);
    assert_int_equal(dibs__ballot_left(&bl), 0);
    bl.votes[4].counts = true;
    assert_int_equal(dibs__ballot_grants(&bl, &fence), DIBS__WON);
}

static void what_is_left_is_left_by_a_majority(void **state)
{
    static const int64_t left[NODES] = {900, 10, 700, 800, 20};
    dibs__ballot bl = five();

    (void)state;
    for (size_t i = 0; i < NODES; i++)
        bl.votes[i] = yes(7, left[i]);
    assert_int_equal(dibs__ballot_left(&bl), 700);
    bl.votes[2] = no(DIBS_BUSY);
    assert_int_equal(dibs__ballot_left(&bl), 20);
    bl.votes[3] = bl.votes[4] = no(DIBS_BUSY);
    assert_int_equal(dibs__ballot_left(&bl), 0);
}

/* Nodes that were late may have a higher one; those that were told have this. */
static void the_fence_is_that_of_a_majority(void **state)
{
    static const uint64_t fences[NODES] = {7, 9, 7, 7, 12};
    dibs__ballot bl = five();

    (void)state;
    for (size_t i = 0; i < NODES; i++)
        bl.votes[i] = yes(fences[i], 100);
    assert_int_equal(dibs__ballot_fence(&bl), 7);
}

static void it_is_lost_as_soon_as_it_cannot_be_won(void **state)
{
    dibs__ballot bl = five();

    (void)state;
    bl.votes[0] = no(DIBS_BUSY);
    bl.votes[1] = no(DIBS_UNAVAIL);
    assert_int_equal(dibs__ballot_count(&bl), DIBS__OPEN);
    bl.votes[2] = no(DIBS_BUSY);
    assert_int_equal(dibs__ballot_count(&bl), DIBS__DEFEAT);
}

/* Two and two, and one away: nobody has it, and both are told. */
static void an_even_split_is_a_refusal(void **state)
{
    dibs__ballot bl = five();

    (void)state;
    bl.votes[0] = bl.votes[1] = yes(7, 100);
    bl.votes[2] = bl.votes[3] = no(DIBS_BUSY);
    bl.votes[4] = no(DIBS_UNAVAIL);
    assert_int_equal(dibs__ballot_count(&bl), DIBS__DEFEAT);
    assert_int_equal(dibs__ballot_status(&bl), DIBS_BUSY);
}

/* It cannot be won any more, but why not is for the others to say. */
static void a_loss_is_settled_when_it_is_known_why(void **state)
{
    dibs__ballot bl = five();

    (void)state;
    bl.votes[0] = bl.votes[1] = no(DIBS_BUSY);
    bl.votes[2] = no(DIBS_UNKNOWN);
    assert_int_equal(dibs__ballot_count(&bl), DIBS__DEFEAT);
    assert_false(dibs__ballot_settled(&bl));
    bl.votes[3] = yes(7, 100);
    assert_true(dibs__ballot_settled(&bl));
    assert_int_equal(dibs__ballot_status(&bl), DIBS_BUSY);
    bl.votes[3] = no(DIBS_UNAVAIL);
    assert_false(dibs__ballot_settled(&bl));
    bl.votes[4] = no(DIBS_UNAVAIL);
    assert_true(dibs__ballot_settled(&bl));
    assert_int_equal(dibs__ballot_status(&bl), DIBS_UNKNOWN);
}

/* A few that say so may be behind. */
static void that_an_owner_has_left_is_for_a_majority_to_say(void **state)
{
    dibs__ballot bl = five();

    (void)state;
    bl.votes[0] = bl.votes[1] = no(DIBS_LOST);
    bl.votes[2] = no(DIBS_UNAVAIL);
    assert_int_equal(dibs__ballot_count(&bl), DIBS__DEFEAT);
    assert_false(dibs__ballot_settled(&bl));
    bl.votes[3] = no(DIBS_LOST);
    assert_true(dibs__ballot_settled(&bl));
}

static void a_loss_is_told_for_what_it_is(void **state)
{
    static const struct {
        dibs_status said[NODES];
        dibs_status means;
    } cases[] = {
        {{DIBS_BUSY, DIBS_BUSY, DIBS_BUSY, DIBS_OK, DIBS_OK}, DIBS_BUSY},
        {{DIBS_BUSY, DIBS_BUSY, DIBS_LOST, DIBS_OK, DIBS_OK}, DIBS_LOST},
        {{DIBS_MISMATCH, DIBS_MISMATCH, DIBS_MISMATCH, DIBS_BUSY, DIBS_OK},
         DIBS_MISMATCH},
        {{DIBS_UNAVAIL, DIBS_UNAVAIL, DIBS_UNKNOWN, DIBS_OK, DIBS_OK},
         DIBS_UNKNOWN},
        {{DIBS_UNAVAIL, DIBS_REFUSED, DIBS_UNAVAIL, DIBS_OK, DIBS_BUSY},
         DIBS_UNAVAIL},
        {{DIBS_DENIED, DIBS_DENIED, DIBS_DENIED, DIBS_OK, DIBS_OK},
         DIBS_DENIED},
        {{DIBS_DENIED, DIBS_DENIED, DIBS_UNAVAIL, DIBS_OK, DIBS_OK},
         DIBS_UNAVAIL},
    };

    (void)state;
    for (size_t k = 0; k < COUNT_OF(cases); k++) {
        dibs__ballot bl = five();

        for (size_t i = 0; i < NODES; i++)
            bl.votes[i] = no(cases[k].said[i]);
        assert_int_equal(dibs__ballot_status(&bl), cases[k].means);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_majority_is_of_all_nodes),
        cmocka_unit_test(those_who_answer_are_no_majority),
        cmocka_unit_test(one_fence_of_a_majority_is_enough),
        cmocka_unit_test(the_fence_that_is_held_is_not_written_over),
        cmocka_unit_test(a_doubt_is_not_ended_by_a_failure),
        cmocka_unit_test(what_no_majority_can_have_is_written_over),
        cmocka_unit_test(votes_that_do_not_count_are_none),
        cmocka_unit_test(what_is_left_is_left_by_a_majority),
        cmocka_unit_test(the_fence_is_that_of_a_majority),
        cmocka_unit_test(it_is_lost_as_soon_as_it_cannot_be_won),
        cmocka_unit_test(an_even_split_is_a_refusal),
        cmocka_unit_test(a_loss_is_settled_when_it_is_known_why),
        cmocka_unit_test(that_an_owner_has_left_is_for_a_majority_to_say),
        cmocka_unit_test(a_loss_is_told_for_what_it_is),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
