/* contract_place.c - places and claims run out: the dead cost little.
 *
 * The spans are fixed by the contract, so these tests take their time. */
/* SPDX-License-Identifier: MIT */
#include "contract.h"

/* A name that is held, where those before the one who lives are dead. */
typedef struct line {
    actor holder;
    actor alive;
    dibsx_nsec formed_at; /* before the first of the dead asked */
} line;

static void
line_form(line *ln, const char *name, actor holder, actor dead, actor alive)
{
    holder.ask.name = dead.ask.name = alive.ask.name = name;
    ln->holder = holder;
    ln->alive = alive;
    assert_status(actor_try(&ln->holder), DIBS_OK);
    ln->formed_at = dibsx_now();
    for (size_t i = 0; i < 6; i++) {
        contract_owner(dead.owner);
        assert_status(actor_queue(&dead), DIBS_BUSY);
    }
}

/* Joins behind the dead, before a place of theirs could have ended. */
static void line_join(line *ln)
{
    dibs_status rc = actor_queue(&ln->alive);

    IN_TIME(contract_ms_since(ln->formed_at) <
            DIBS__PLACE_MS - CONTRACT_DRIFT_MS);
    assert_status(rc, DIBS_BUSY);
}

/* In one line the holder gives back; in the others it does not, the dead do not
 * fit, and they hold back one who does. */
static void the_dead_are_skipped_together(void **state)
{
    contract *t = *state;
    char names[2][64];
    dibsx_nsec last_ask_at;
    line lines[3];

    for (size_t i = 0; i < 2; i++)
        contract_name(names[i], sizeof(names[i]), "line");
    line_form(&lines[0], t->name, contract_actor(t, 0), contract_actor(t, 2),
              contract_actor(t, 1));
    line_form(&lines[1], names[0], contract_sharer(t, 0), contract_actor(t, 2),
              contract_sharer(t, 1));
    line_form(&lines[2], names[1], contract_permits(t, 0, 3, 4),
              contract_permits(t, 2, 2, 4), contract_permits(t, 1, 1, 4));
    last_ask_at = dibsx_now();
    contract_sleep_until(dibsx_after_ms(last_ask_at, DIBS__PLACE_MS / 2));
    for (size_t i = 0; i < 3; i++)
        line_join(&lines[i]);
    contract_sleep_until(dibsx_after_ms(last_ask_at, DIBS__PLACE_MS + 50));
    assert_status(actor_release(&lines[0].holder), DIBS_OK);
    actor_expect_claim(&lines[0].alive);
    for (size_t i = 1; i < 3; i++) {
        assert_status(actor_queue(&lines[i].alive), DIBS_OK);
        assert_status(actor_renew(&lines[i].holder, 20000, NULL), DIBS_OK);
    }
}

/* A name that is held, and three who wait for it, of one kind. */
typedef struct row {
    actor holder;
    actor first; /* keeps asking */
    actor dead;
    actor last;
    dibsx_nsec asked_at; /* before the dead one asked, and after it */
    dibsx_nsec died_at;
    dibsx_nsec kept_at; /* before those who live asked last */
} row;

static void
row_form(row *at, contract *t, const char *name, actor kind, int32_t priority)
{
    at->holder = contract_actor(t, 0);
    at->holder.ask.name = name;
    kind.ask.name = name;
    kind.ask.priority = priority;
    at->first = at->dead = at->last = kind;
    contract_owner(at->dead.owner);
    contract_owner(at->last.owner);
    assert_status(actor_try(&at->holder), DIBS_OK);
    at->kept_at = dibsx_now();
    assert_status(actor_queue(&at->first), DIBS_BUSY);
    at->asked_at = dibsx_now();
    assert_status(actor_queue(&at->dead), DIBS_BUSY);
    at->died_at = dibsx_now();
}

/* Asks, before a place could have ended. */
static void row_keep(row *at, actor *who)
{
    assert_status(actor_queue(who), DIBS_BUSY);
    IN_TIME(contract_ms_since(at->kept_at) <
            DIBS__PLACE_MS - CONTRACT_DRIFT_MS);
}

/* The last one joins when the place of the first is half over, so that a place
 * that was not kept would be found behind it. */
static int64_t row_ask(row *at)
{
    dibsx_nsec from_at = dibsx_now();
    int64_t gone_ms;

    row_keep(at, &at->first);
    assert_int_equal(at->first.ans.ahead, 0);
    gone_ms = contract_ms_since(at->died_at);
    if (gone_ms >= DIBS__PLACE_MS / 2) {
        row_keep(at, &at->last);
        if (contract_ms_since(at->asked_at) <
            DIBS__PLACE_MS - CONTRACT_DRIFT_MS)
            assert_int_equal(at->last.ans.ahead, 2);
    }
    at->kept_at = from_at;
    return gone_ms;
}

static void places_are_kept_by_asking(void **state)
{
    enum { ROWS = 4 };
    contract *t = *state;
    char names[ROWS][64];
    row rows[ROWS];
    int64_t least_ms = 0;

    for (size_t i = 0; i < ROWS; i++)
        contract_name(names[i], sizeof(names[i]), "row");
    row_form(&rows[0], t, names[0], contract_actor(t, 1), 0);
    row_form(&rows[1], t, names[1], contract_actor(t, 1), 7);
    row_form(&rows[2], t, names[2], contract_actor(t, 1), -7);
    row_form(&rows[3], t, names[3], contract_sharer(t, 1), 7);
    while (least_ms < DIBS__PLACE_MS + 300) {
        contract_sleep_until(dibsx_now() + 200 * DIBSX_MS);
        least_ms = INT64_MAX;
        for (size_t i = 0; i < ROWS; i++) {
            int64_t gone_ms = row_ask(&rows[i]);

            least_ms = gone_ms < least_ms ? gone_ms : least_ms;
        }
    }
    for (size_t i = 0; i < ROWS; i++) {
        assert_int_equal(rows[i].last.ans.ahead, 1);
        assert_status(actor_queue(&rows[i].dead), DIBS_BUSY);
        assert_int_equal(rows[i].dead.ans.ahead, 2);
    }
}

enum { GONE = 6 };

/* Redisson #1353: each dead waiter cost 5 s. Here the first has a claim when it
 * is served, and the places of the others end with it. */
static void a_claim_that_nobody_takes_up_passes_on(void **state)
{
    actor holder = contract_actor(*state, 0);
    actor next = contract_actor(*state, 2);
    actor gone[GONE];
    dibsx_nsec released_at;
    uint64_t fence = 0;

    assert_status(actor_try(&holder), DIBS_OK);
    for (size_t i = 0; i < GONE; i++) {
        gone[i] = contract_actor(*state, 1);
        assert_status(actor_queue(&gone[i]), DIBS_BUSY);
    }
    assert_status(actor_queue(&next), DIBS_BUSY);
    released_at = dibsx_now();
    assert_status(actor_release(&holder), DIBS_OK);
    IN_TIME(actor_notified(&gone[0], DIBS__NOTICE_GRANTED, &fence));
    assert_status(actor_until(&next, 2 * DIBS__CLAIM_MS - 500), DIBS_OK);
    assert_true(contract_ms_since(released_at) >=
                DIBS__CLAIM_MS - CONTRACT_DRIFT_MS);
    assert_true(next.ans.fence > fence);
    gone[0].ans.fence = fence;
    assert_status(actor_renew(&gone[0], 60000, NULL), DIBS_LOST);
    for (size_t i = 0; i < GONE; i++)
        assert_status(actor_release(&gone[i]), DIBS_LOST);
}

/* A renewed claim outlasts the claim; asking again does not stretch one. */
static void asking_does_not_stretch_a_claim(void **state)
{
    actor holder = contract_actor(*state, 0);
    actor b = contract_actor(*state, 1);
    dibsx_nsec claimed_at, released_at;
    uint64_t fence;

    assert_status(actor_try(&holder), DIBS_OK);
    assert_status(actor_queue(&b), DIBS_BUSY);
    released_at = dibsx_now();
    assert_status(actor_release(&holder), DIBS_OK);
    claimed_at = dibsx_now();
    actor_expect_claim(&b);
    fence = b.ans.fence;
    while (contract_ms_since(claimed_at) < DIBS__CLAIM_MS - 500) {
        int64_t gone_ms;

        contract_sleep_until(dibsx_now() + 100 * DIBSX_MS);
        gone_ms = contract_ms_since(claimed_at);
        assert_status(actor_queue(&b), DIBS_OK);
        IN_TIME(contract_ms_since(released_at) < DIBS__CLAIM_MS);
        assert_int_equal(b.ans.fence, fence);
        assert_true(b.ans.left_ms <= DIBS__CLAIM_MS - gone_ms + 100);
    }
    assert_status(actor_renew(&b, 20000, NULL), DIBS_OK);
    contract_sleep_until(dibsx_after_ms(claimed_at, DIBS__CLAIM_MS + 200));
    assert_status(actor_queue(&b), DIBS_OK);
    assert_int_equal(b.ans.fence, fence);
}

int contract_place(void)
{
    const struct CMUnitTest tests[] = {
        CONTRACT_TEST(the_dead_are_skipped_together),
        CONTRACT_TEST(places_are_kept_by_asking),
        CONTRACT_TEST(a_claim_that_nobody_takes_up_passes_on),
        CONTRACT_TEST(asking_does_not_stretch_a_claim),
    };

    return cmocka_run_group_tests_name("place", tests, NULL, NULL);
}
