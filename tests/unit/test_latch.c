/* test_latch.c - the machine of a wait for a latch: no opening is missed. */
/* SPDX-License-Identifier: MIT */
#include "unit.h"

#include "coord/latch_machine.h"
#include "store/topic.h"

static dibsx_nsec at_ms(int64_t ms)
{
    return dibsx_after_ms(DIBSX_SEC, ms);
}

static dibs__latch_todo next_at(const dibs__latch *la, int64_t ms)
{
    dibsx_nsec until;

    return dibs__latch_next(la, at_ms(ms), &until);
}

static dibs__latch gathering(void)
{
    dibs__latch la;

    dibs__latch_init(&la, 1);
    assert_int_equal(next_at(&la, 0), DIBS__LATCH_LOOK);
    dibs__latch_looks(&la);
    dibs__latch_looked(&la, at_ms(1), DIBS_BUSY, 7);
    return la;
}

static dibs__latch listening(void)
{
    dibs__latch la = gathering();

    assert_int_equal(next_at(&la, 1), DIBS__LATCH_EAR);
    dibs__latch_eared(&la, at_ms(1), at_ms(2), DIBS_OK);
    assert_int_equal(next_at(&la, 2), DIBS__LATCH_LOOK);
    dibs__latch_looks(&la);
    dibs__latch_looked(&la, at_ms(3), DIBS_BUSY, 7);
    assert_int_equal(next_at(&la, 3), DIBS__LATCH_SLEEP);
    return la;
}

static void one_look_finds_an_open_latch(void **state)
{
    dibs__latch la;

    (void)state;
    dibs__latch_init(&la, 1);
    dibs__latch_looks(&la);
    dibs__latch_looked(&la, at_ms(1), DIBS_OK, 7);
    assert_int_equal(next_at(&la, 1), DIBS__LATCH_OPEN);
}

static void a_tell_ends_the_wait(void **state)
{
    dibs__latch la = listening();

    (void)state;
    dibs__latch_told(&la, 7);
    assert_int_equal(next_at(&la, 4), DIBS__LATCH_OPEN);
}

/* Its notice was under way when the latch was reset. */
static void a_tell_of_an_older_generation_leads_to_a_look(void **state)
{
    dibs__latch la = listening();

    (void)state;
    dibs__latch_told(&la, 6);
    assert_int_equal(next_at(&la, 4), DIBS__LATCH_LOOK);
}

/* It may open between the first look and the ear. */
static void a_look_follows_the_ear(void **state)
{
    dibs__latch la = listening();
    dibsx_nsec until;

    (void)state;
    /* An ear in time only goes on listening. */
    assert_int_equal(dibs__latch_next(&la, at_ms(3), &until),
                     DIBS__LATCH_SLEEP);
    la.look_at = at_ms(DIBS__EAR_MS);
    assert_int_equal(next_at(&la, DIBS__EAR_MS / 2 + 1), DIBS__LATCH_EAR);
    dibs__latch_eared(&la, at_ms(DIBS__EAR_MS / 2 + 1),
                      at_ms(DIBS__EAR_MS / 2 + 2), DIBS_OK);
    assert_int_equal(next_at(&la, DIBS__EAR_MS / 2 + 2), DIBS__LATCH_SLEEP);
    /* After a cut it listens and looks again. */
    dibs__latch_missed(&la);
    assert_int_equal(next_at(&la, DIBS__EAR_MS / 2 + 3), DIBS__LATCH_EAR);
    dibs__latch_ears(&la);
    dibs__latch_eared(&la, at_ms(DIBS__EAR_MS / 2 + 3),
                      at_ms(DIBS__EAR_MS / 2 + 4), DIBS_OK);
    assert_int_equal(next_at(&la, DIBS__EAR_MS / 2 + 4), DIBS__LATCH_LOOK);
}

static void a_cut_during_a_look_leads_to_another(void **state)
{
    dibs__latch la = listening();

    (void)state;
    la.look_at = 0;
    dibs__latch_looks(&la);
    dibs__latch_missed(&la);
    dibs__latch_looked(&la, at_ms(4), DIBS_BUSY, 7);
    dibs__latch_ears(&la);
    dibs__latch_eared(&la, at_ms(4), at_ms(5), DIBS_OK);
    assert_int_equal(next_at(&la, 5), DIBS__LATCH_LOOK);
}

/* The ear may have been answered before the cut. */
static void a_cut_during_an_ear_leads_to_another(void **state)
{
    dibs__latch la = gathering();

    (void)state;
    dibs__latch_ears(&la);
    dibs__latch_missed(&la);
    dibs__latch_eared(&la, at_ms(1), at_ms(2), DIBS_OK);
    assert_int_equal(next_at(&la, 2), DIBS__LATCH_EAR);
    dibs__latch_ears(&la);
    dibs__latch_eared(&la, at_ms(2), at_ms(3), DIBS_OK);
    assert_int_equal(next_at(&la, 3), DIBS__LATCH_LOOK);
}

/* Without tells it looks by itself, at first soon and in the end rarely. */
static void it_looks_without_tells_too(void **state)
{
    dibs__latch la = gathering();
    dibsx_nsec now = at_ms(2), until;
    int looks = 0;

    (void)state;
    dibs__latch_eared(&la, at_ms(1), now, DIBS_DENIED);
    while (now < at_ms(100000)) {
        dibs__latch_todo todo = dibs__latch_next(&la, now, &until);

        assert_true(todo == DIBS__LATCH_SLEEP || todo == DIBS__LATCH_LOOK);
        if (todo == DIBS__LATCH_LOOK) {
            looks++;
            dibs__latch_looks(&la);
            dibs__latch_looked(&la, now, DIBS_NOTFOUND, 7);
        } else {
            assert_true(until > now);
            assert_true(until <= now + (dibsx_nsec)DIBS__LATCH_LAST_MS *
                                           DIBSX_MS * 5 / 4);
            now = until;
        }
    }
    assert_in_range(looks, 9, 18);
}

static void it_goes_on_while_the_store_is_away(void **state)
{
    dibs__latch la = gathering();

    (void)state;
    dibs__latch_eared(&la, at_ms(1), at_ms(2), DIBS_UNAVAIL);
    la.look_at = 0;
    dibs__latch_looks(&la);
    dibs__latch_looked(&la, at_ms(3), DIBS_UNKNOWN, 7);
    assert_int_equal(next_at(&la, 4), DIBS__LATCH_SLEEP);
    assert_int_equal(next_at(&la, 3 + DIBS__LATCH_AWAY_MS), DIBS__LATCH_EAR);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_look_finds_an_open_latch),
        cmocka_unit_test(a_tell_ends_the_wait),
        cmocka_unit_test(a_tell_of_an_older_generation_leads_to_a_look),
        cmocka_unit_test(a_look_follows_the_ear),
        cmocka_unit_test(a_cut_during_a_look_leads_to_another),
        cmocka_unit_test(a_cut_during_an_ear_leads_to_another),
        cmocka_unit_test(it_looks_without_tells_too),
        cmocka_unit_test(it_goes_on_while_the_store_is_away),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
