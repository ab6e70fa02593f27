/* test_barrier_machine.c - what a party of a barrier answers after its call. Its ways
 * are tests/sim/barrier_main.c's. */
/* SPDX-License-Identifier: MIT */
#include "coord/barrier_machine.h"
#include "unit.h"

/* The caller reads the generation later than the session may lose the seat. */
static void a_lost_seat_keeps_the_generation(void **state)
{
    dibs__meet request, answer = {.rc = DIBS_OK};
    dibs__barrier_party bp;
    dibsx_nsec until;

    (void)state;
    dibs__party_init(&bp, 1, 1000, 100, 0, true);
    dibs__party_call(&bp, DIBSX_NEVER, 1);
    for (uint64_t number = 5; number <= 7; number += 2) {
        assert_int_equal(dibs__party_next(&bp, 1, &request, &until),
                         DIBS__PARTY_SEND);
        bp.flying = true;
        answer.number = number;
        dibs__party_answered(&bp, &answer, 1);
    }
    assert_int_equal(dibs__party_next(&bp, 1, &request, &until),
                     DIBS__PARTY_DONE);
    assert_int_equal(bp.rc, DIBS_OK);
    dibs__party_unseated(&bp, 5, 1);
    assert_int_equal(bp.after, 0);
    assert_int_equal(bp.passed, 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_lost_seat_keeps_the_generation),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
