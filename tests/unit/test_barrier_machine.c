/* test_barrier_machine.c - what a party of a barrier answers after its call. Its ways
 * are tests/sim/barrier_main.c's. */
/* SPDX-License-Identifier: MIT */
#include "coord/barrier_machine.h"
#include "unit.h"

/* A party that is alone takes a seat, 5, and opens generation 7. */
static void pass_alone(dibs__barrier_party *bp)
{
    dibs__meet request, answer = {.rc = DIBS_OK};
    dibsx_nsec until;

    dibs__party_call(bp, DIBSX_NEVER, 1);
    for (uint64_t number = 5; number <= 7; number += 2) {
        assert_int_equal(dibs__party_next(bp, 1, &request, &until),
                         DIBS__PARTY_SEND);
        answer.number = number;
        dibs__party_answered(bp, &answer, 1);
    }
    assert_int_equal(dibs__party_next(bp, 1, &request, &until),
                     DIBS__PARTY_DONE);
    assert_int_equal(bp->rc, DIBS_OK);
}

/* The caller reads the generation later than the session may lose the seat. */
static void a_lost_seat_keeps_the_generation(void **state)
{
    dibs__barrier_party bp;

    (void)state;
    dibs__party_init(&bp, 1, 1000, 100, 0, true);
    pass_alone(&bp);
    dibs__party_unseated(&bp, 5, 1);
    assert_int_equal(bp.after, 0);
    assert_int_equal(bp.passed, 7);
}

/* Others may have passed without it. It sits again with the call after that. */
static void the_next_call_says_that_the_seat_was_lost(void **state)
{
    dibs__meet request;
    dibs__barrier_party bp;
    dibsx_nsec until;

    (void)state;
    dibs__party_init(&bp, 1, 1000, 100, 0, true);
    pass_alone(&bp);
    dibs__party_unseated(&bp, 4, 1); /* of an older seat */
    dibs__party_unseated(&bp, 5, 1);
    dibs__party_call(&bp, DIBSX_NEVER, 1);
    assert_int_equal(dibs__party_next(&bp, 1, &request, &until),
                     DIBS__PARTY_DONE);
    assert_int_equal(bp.rc, DIBS_LOST);
    pass_alone(&bp);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_lost_seat_keeps_the_generation),
        cmocka_unit_test(the_next_call_says_that_the_seat_was_lost),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
