/* test_grant.c - the grant rule, branch by branch, on scripted time.
 *
 * Most tests are tables: each line is one step, its answer, and who holds and
 * who waits after it, as world_show() writes them. */
/* SPDX-License-Identifier: MIT */
#include "grant_world.h"
#include <stdio.h>
#include <string.h>

typedef enum op {
    TRY,
    QUEUE,
    BARGE,
    BARGE_QUEUE,
    RENEW,   /* for `ms` */
    RELEASE, /* keeping others out for `ms` */
    ABANDON, /* a release with something unanswered, keeping for `ms` */
    TAKE,    /* by the owner's fence; "" all, "?" one that nobody has */
    PASS     /* `ms` go by */
} op;

#define X           WANT_X
#define S           WANT_S
#define P(k, n)     WANT_P(k, n)
#define FIRST(prio) DIBS__EXCLUSIVE, 1, 0, prio
#define NONE        DIBS__EXCLUSIVE, 0, 0, 0

enum { TTL_MS = WORLD_TTL_MS };

typedef struct step {
    op op;
    const char *owner;
    dibs__mode mode;
    uint32_t permits;
    uint32_t capacity;
    int32_t priority;
    int64_t ms;
    dibs_status rc;
    const char *shown;
} step;

static uint64_t fence_of(world *w, const char *owner)
{
    const dibs__party *row = world_row(w, owner);

    return row ? row->fence : 1;
}

static dibs_status run_step(world *w, const step *st)
{
    world_want want = {st->mode, st->permits, st->capacity, st->priority};
    uint32_t broken;

    switch (st->op) {
    case TRY:
        return world_acquire(w, st->owner, &want, 0);
    case QUEUE:
        return world_acquire(w, st->owner, &want, DIBS__ASK_QUEUE);
    case BARGE:
        return world_acquire(w, st->owner, &want, DIBS__ASK_BARGE);
    case BARGE_QUEUE:
        return world_acquire(w, st->owner, &want,
                             DIBS__ASK_BARGE | DIBS__ASK_QUEUE);
    case RENEW:
        return world_renew(w, st->owner, fence_of(w, st->owner), st->ms).rc;
    case RELEASE:
        return world_release(w, st->owner, false, st->ms);
    case ABANDON:
        return world_release(w, st->owner, true, st->ms);
    case TAKE:
        return world_take(w, st->owner[0] ? fence_of(w, st->owner) : 0,
                          &broken);
    case PASS:
        world_pass(w, st->ms);
        break;
    }
    return DIBS_OK;
}

static void run_script(const step *steps, size_t count)
{
    world w;

    world_init(&w);
    for (size_t i = 0; i < count; i++) {
        dibs_status rc = run_step(&w, &steps[i]);
        char shown[WORLD_TEXT];

        snprintf(shown, sizeof(shown), "%s ", steps[i].shown);
        if (rc != steps[i].rc || strcmp(world_show(&w), shown) != 0)
            fail_msg("step %zu: status %d, shown \"%s\" not \"%s\"", i, rc,
                     w.shown, shown);
    }
    world_fini(&w);
}

#define RUN(steps) run_script(steps, COUNT_OF(steps))

static void test_exclusive(void **state)
{
    static const step steps[] = {
        {QUEUE, "a", X, 0, DIBS_OK, "a |"},
        {TRY, "b", X, 0, DIBS_BUSY, "a |"},
        {TRY, "b", S, 0, DIBS_BUSY, "a |"},
        {QUEUE, "b", X, 0, DIBS_BUSY, "a | b"},
        {QUEUE, "c", S, 0, DIBS_BUSY, "a | b c"},
        {RELEASE, "a", NONE, 0, DIBS_OK, "b* | c"},
        {RENEW, "b", NONE, TTL_MS, DIBS_OK, "b | c"},
        {RELEASE, "b", NONE, 0, DIBS_OK, "c* |"},
        {RELEASE, "c", NONE, 0, DIBS_OK, "|"},
        {TRY, "b", X, 0, DIBS_OK, "b |"},
    };

    (void)state;
    RUN(steps);
}

static void test_shared_does_not_starve_writers(void **state)
{
    static const step steps[] = {
        {TRY, "r1", S, 0, DIBS_OK, "r1 |"},
        {TRY, "r2", S, 0, DIBS_OK, "r1 r2 |"},
        {QUEUE, "w1", X, 0, DIBS_BUSY, "r1 r2 | w1"},
        {TRY, "r3", S, 0, DIBS_BUSY, "r1 r2 | w1"},
        {QUEUE, "r3", S, 0, DIBS_BUSY, "r1 r2 | w1 r3"},
        {QUEUE, "r4", S, 0, DIBS_BUSY, "r1 r2 | w1 r3 r4"},
        {RELEASE, "r1", NONE, 0, DIBS_OK, "r2 | w1 r3 r4"},
        {RELEASE, "r2", NONE, 0, DIBS_OK, "w1* | r3 r4"},
        {RELEASE, "w1", NONE, 0, DIBS_OK, "r3* r4* |"},
    };

    (void)state;
    RUN(steps);
}

static void test_permits_do_not_starve_large_requests(void **state)
{
    static const step steps[] = {
        {TRY, "a", P(2, 5), 0, DIBS_OK, "a |"},
        {TRY, "b", P(3, 5), 0, DIBS_OK, "a b |"},
        {TRY, "c", P(1, 5), 0, DIBS_BUSY, "a b |"},
        {QUEUE, "big", P(5, 5), 0, DIBS_BUSY, "a b | big"},
        {QUEUE, "c", P(1, 5), 0, DIBS_BUSY, "a b | big c"},
        {RELEASE, "a", NONE, 0, DIBS_OK, "b | big c"},
        {TRY, "d", P(1, 5), 0, DIBS_BUSY, "b | big c"},
        {BARGE, "d", P(2, 5), 0, DIBS_OK, "b d | big c"},
        {BARGE, "e", P(1, 5), 0, DIBS_BUSY, "b d | big c"},
        {RELEASE, "b", NONE, 0, DIBS_OK, "d | big c"},
        {RELEASE, "d", NONE, 0, DIBS_OK, "big* | c"},
        {RELEASE, "big", NONE, 0, DIBS_OK, "c* |"},
    };

    (void)state;
    RUN(steps);
}

static void test_queue_goes_by_priority_then_arrival(void **state)
{
    static const step steps[] = {
        {TRY, "a", X, 0, DIBS_OK, "a |"},
        {QUEUE, "b", X, 0, DIBS_BUSY, "a | b"},
        {QUEUE, "c", X, 0, DIBS_BUSY, "a | b c"},
        {QUEUE, "vip", FIRST(9), 0, DIBS_BUSY, "a | vip b c"},
        {QUEUE, "low", FIRST(-9), 0, DIBS_BUSY, "a | vip b c low"},
        {QUEUE, "vip2", FIRST(9), 0, DIBS_BUSY, "a | vip vip2 b c low"},
        /* A place is kept as first asked for, however often it is refreshed. */
        {QUEUE, "c", FIRST(99), 0, DIBS_BUSY, "a | vip vip2 b c low"},
        {RELEASE, "a", NONE, 0, DIBS_OK, "vip* | vip2 b c low"},
        {RELEASE, "vip", NONE, 0, DIBS_OK, "vip2* | b c low"},
        {RELEASE, "vip2", NONE, 0, DIBS_OK, "b* | c low"},
        {RELEASE, "b", NONE, 0, DIBS_OK, "c* | low"},
        {RELEASE, "low", NONE, 0, DIBS_LOST, "c* |"},
    };

    (void)state;
    RUN(steps);
}

static void test_barge_goes_past_the_queue_only(void **state)
{
    static const step steps[] = {
        {TRY, "r1", S, 0, DIBS_OK, "r1 |"},
        {QUEUE, "w1", X, 0, DIBS_BUSY, "r1 | w1"},
        {BARGE, "w2", X, 0, DIBS_BUSY, "r1 | w1"},
        {BARGE_QUEUE, "w2", X, 0, DIBS_BUSY, "r1 | w1 w2"},
        {BARGE, "r2", S, 0, DIBS_OK, "r1 r2 | w1 w2"},
        {QUEUE, "r3", S, 0, DIBS_BUSY, "r1 r2 | w1 w2 r3"},
        /* Who waits already may still change its mind. */
        {BARGE_QUEUE, "r3", S, 0, DIBS_OK, "r1 r2 r3 | w1 w2"},
    };

    (void)state;
    RUN(steps);
}

static void test_refused_ask_gives_up_its_place(void **state)
{
    static const step steps[] = {
        {TRY, "a", P(1, 2), 0, DIBS_OK, "a |"},
        {QUEUE, "big", P(2, 2), 0, DIBS_BUSY, "a | big"},
        {QUEUE, "c", P(1, 2), 0, DIBS_BUSY, "a | big c"},
        /* ... and whoever it held back is served. */
        {TRY, "big", P(2, 2), 0, DIBS_BUSY, "a c* |"},
    };

    (void)state;
    RUN(steps);
}

static void test_dead_waiters_are_skipped_together(void **state)
{
    static const step steps[] = {
        {TRY, "a", X, 0, DIBS_OK, "a |"},
        {QUEUE, "b", X, 0, DIBS_BUSY, "a | b"},
        {QUEUE, "c", X, 0, DIBS_BUSY, "a | b c"},
        {QUEUE, "d", X, 0, DIBS_BUSY, "a | b c d"},
        {PASS, "", NONE, DIBS__PLACE_MS - 1, DIBS_OK, "a | b c d"},
        {QUEUE, "e", X, 0, DIBS_BUSY, "a | b c d e"},
        {PASS, "", NONE, 1, DIBS_OK, "a | e"},
        {RELEASE, "a", NONE, 0, DIBS_OK, "e* |"},
        /* A place that has run out is a new one at the end. */
        {QUEUE, "f", X, 0, DIBS_BUSY, "e* | f"},
        {QUEUE, "b", X, 0, DIBS_BUSY, "e* | f b"},
        {PASS, "", NONE, DIBS__PLACE_MS, DIBS_OK, "|"},
        {QUEUE, "b", X, 0, DIBS_OK, "b |"},
    };

    (void)state;
    RUN(steps);
}

static void test_unclaimed_claim_passes_on(void **state)
{
    static const step steps[] = {
        {TRY, "a", X, 0, DIBS_OK, "a |"},
        {QUEUE, "b", X, 0, DIBS_BUSY, "a | b"},
        {RELEASE, "a", NONE, 0, DIBS_OK, "b* |"},
        {PASS, "", NONE, DIBS__CLAIM_MS - 1, DIBS_OK, "b* |"},
        {QUEUE, "c", X, 0, DIBS_BUSY, "b* | c"},
        {PASS, "", NONE, 1, DIBS_OK, "| c"},
        {RENEW, "b", NONE, TTL_MS, DIBS_LOST, "c* |"},
    };

    (void)state;
    RUN(steps);
}

/* Whoever asks first after a holder died serves the rightful head. */
static void test_any_step_hands_off(void **state)
{
    static const step by_ask[] = {
        {TRY, "a", X, 0, DIBS_OK, "a |"},
        {PASS, "", NONE, TTL_MS - 1, DIBS_OK, "a |"},
        {QUEUE, "b", X, 0, DIBS_BUSY, "a | b"},
        {PASS, "", NONE, 1, DIBS_OK, "| b"},
        {TRY, "c", X, 0, DIBS_BUSY, "b* |"},
    };
    static const step by_mismatch[] = {
        {TRY, "a", X, 0, DIBS_OK, "a |"},
        {PASS, "", NONE, TTL_MS - 1, DIBS_OK, "a |"},
        {QUEUE, "b", X, 0, DIBS_BUSY, "a | b"},
        {PASS, "", NONE, 1, DIBS_OK, "| b"},
        {TRY, "c", P(1, 1), 0, DIBS_MISMATCH, "b* |"},
    };
    static const step by_holder[] = {
        {TRY, "a", P(1, 2), 0, DIBS_OK, "a |"},
        {PASS, "", NONE, TTL_MS - 1, DIBS_OK, "a |"},
        {TRY, "b", P(1, 2), 0, DIBS_OK, "a b |"},
        {QUEUE, "c", P(1, 2), 0, DIBS_BUSY, "a b | c"},
        {PASS, "", NONE, 1, DIBS_OK, "b | c"},
        {TRY, "b", P(1, 2), 0, DIBS_OK, "b c* |"},
    };
    static const step by_renewal[] = {
        {TRY, "a", S, 0, DIBS_OK, "a |"},
        {PASS, "", NONE, TTL_MS - 1, DIBS_OK, "a |"},
        {QUEUE, "w", X, 0, DIBS_BUSY, "a | w"},
        {PASS, "", NONE, 1, DIBS_OK, "| w"},
        {RENEW, "z", NONE, TTL_MS, DIBS_LOST, "w* |"},
    };
    static const step by_tomb[] = {
        {TRY, "a", X, 0, DIBS_OK, "a |"},
        {PASS, "", NONE, TTL_MS - 2, DIBS_OK, "a |"},
        {ABANDON, "z", NONE, 0, DIBS_LOST, "a |"},
        {QUEUE, "b", X, 0, DIBS_BUSY, "a | b"},
        {PASS, "", NONE, 2, DIBS_OK, "| b"},
        {QUEUE, "z", X, 0, DIBS_LOST, "b* |"},
    };

    (void)state;
    RUN(by_ask);
    RUN(by_mismatch);
    RUN(by_holder);
    RUN(by_renewal);
    RUN(by_tomb);
}

static void test_tombstone_answers_late_requests(void **state)
{
    static const step steps[] = {
        {TRY, "a", X, 0, DIBS_OK, "a |"},
        {QUEUE, "b", X, 0, DIBS_BUSY, "a | b"},
        {ABANDON, "b", NONE, 0, DIBS_LOST, "a |"},
        {ABANDON, "a", NONE, 0, DIBS_OK, "|"},
        {QUEUE, "a", X, 0, DIBS_LOST, "|"},
        {BARGE, "b", X, 0, DIBS_LOST, "|"},
        {RENEW, "a", NONE, TTL_MS, DIBS_LOST, "|"},
        {RELEASE, "a", NONE, 0, DIBS_LOST, "|"},
        {QUEUE, "a", X, 0, DIBS_LOST, "|"},
        /* A tombstone is of no kind and in nobody's way. */
        {TRY, "c", P(2, 2), 0, DIBS_OK, "c |"},
        {PASS, "", NONE, DIBS__TOMB_MS - 1, DIBS_OK, "c |"},
        {TRY, "b", P(1, 2), 0, DIBS_LOST, "c |"},
        {ABANDON, "b", NONE, 0, DIBS_LOST, "c |"},
        {PASS, "", NONE, 1, DIBS_OK, "c |"},
        {TRY, "a", P(1, 2), 0, DIBS_BUSY, "c |"},
        {TRY, "b", P(1, 2), 0, DIBS_LOST, "c |"},
        {TAKE, "", NONE, 0, DIBS_OK, "|"},
    };
    /* One that was never heard of, and one whose lease had run out. */
    static const step nothing_held[] = {
        {ABANDON, "a", NONE, 0, DIBS_LOST, "|"},
        {TRY, "a", X, 0, DIBS_LOST, "|"},
        {TRY, "b", X, 0, DIBS_OK, "b |"},
        {PASS, "", NONE, TTL_MS, DIBS_OK, "|"},
        {ABANDON, "b", NONE, 0, DIBS_LOST, "|"},
        {TRY, "b", X, 0, DIBS_LOST, "|"},
        {TRY, "a", X, 0, DIBS_OK, "a |"},
    };

    (void)state;
    RUN(steps);
    RUN(nothing_held);
}

static void test_ghost_keeps_others_out(void **state)
{
    static const step steps[] = {
        {TRY, "a", X, 0, DIBS_OK, "a |"},
        {QUEUE, "b", X, 0, DIBS_BUSY, "a | b"},
        {RELEASE, "b", NONE, 500, DIBS_LOST, "a |"},
        {RELEASE, "a", NONE, 500, DIBS_OK, "a~ |"},
        {QUEUE, "b", X, 0, DIBS_BUSY, "a~ | b"},
        {TRY, "c", P(1, 1), 0, DIBS_MISMATCH, "a~ | b"},
        {TRY, "a", X, 0, DIBS_LOST, "a~ | b"},
        {RENEW, "a", NONE, TTL_MS, DIBS_LOST, "a~ | b"},
        {PASS, "", NONE, 499, DIBS_OK, "a~ | b"},
        {RELEASE, "a", NONE, 500, DIBS_OK, "a~ | b"},
        {ABANDON, "a", NONE, 500, DIBS_OK, "a~ | b"},
        {PASS, "", NONE, 1, DIBS_OK, "| b"},
        {RELEASE, "a", NONE, 500, DIBS_LOST, "b* |"},
    };
    static const step of_permits[] = {
        {TRY, "a", P(2, 3), 0, DIBS_OK, "a |"},
        {RELEASE, "a", NONE, 500, DIBS_OK, "a~ |"},
        {TRY, "b", P(1, 3), 0, DIBS_OK, "a~ b |"},
        {TRY, "c", P(1, 3), 0, DIBS_BUSY, "a~ b |"},
        {TAKE, "a", NONE, 0, DIBS_OK, "b |"},
        {TRY, "c", P(1, 3), 0, DIBS_OK, "b c |"},
    };
    /* Others are let in at its time, the owner is kept out as long as by any
     * tombstone. */
    static const step unanswered[] = {
        {TRY, "a", X, 0, DIBS_OK, "a |"},
        {ABANDON, "a", NONE, 500, DIBS_OK, "a~ |"},
        {RELEASE, "a", NONE, 500, DIBS_OK, "a~ |"},
        {PASS, "", NONE, 500, DIBS_OK, "|"},
        {TRY, "a", X, 0, DIBS_LOST, "|"},
        {TRY, "b", X, 0, DIBS_OK, "b |"},
        {PASS, "", NONE, DIBS__TOMB_MS - 1, DIBS_OK, "b |"},
        {TRY, "a", X, 0, DIBS_LOST, "b |"},
        {PASS, "", NONE, 1, DIBS_OK, "b |"},
        {TRY, "a", X, 0, DIBS_BUSY, "b |"},
        /* ... be it only seen when that time is over too, ... */
        {ABANDON, "b", NONE, 500, DIBS_OK, "b~ |"},
        {PASS, "", NONE, DIBS__TOMB_MS + 500, DIBS_OK, "|"},
        {TRY, "b", X, 0, DIBS_OK, "b |"},
        /* ... or said later, ... */
        {RELEASE, "b", NONE, 500, DIBS_OK, "b~ |"},
        {ABANDON, "b", NONE, 0, DIBS_OK, "b~ |"},
        {PASS, "", NONE, 500, DIBS_OK, "|"},
        {TRY, "b", X, 0, DIBS_LOST, "|"},
        /* ... or ended by force. */
        {TRY, "c", X, 0, DIBS_OK, "c |"},
        {ABANDON, "c", NONE, 500, DIBS_OK, "c~ |"},
        {TAKE, "", NONE, 0, DIBS_OK, "|"},
        {TRY, "c", X, 0, DIBS_LOST, "|"},
    };

    (void)state;
    RUN(steps);
    RUN(of_permits);
    RUN(unanswered);
}

static void test_acquire(void **state)
{
    static const step steps[] = {
        {TAKE, "", NONE, 0, DIBS_NOTFOUND, "|"},
        {TRY, "a", S, 0, DIBS_OK, "a |"},
        {TRY, "b", S, 0, DIBS_OK, "a b |"},
        {QUEUE, "w", X, 0, DIBS_BUSY, "a b | w"},
        {TAKE, "?", NONE, 0, DIBS_STALE, "a b | w"},
        {TAKE, "a", NONE, 0, DIBS_OK, "b | w"},
        {RENEW, "a", NONE, TTL_MS, DIBS_LOST, "b | w"},
        {TAKE, "", NONE, 0, DIBS_OK, "w* |"},
        {TAKE, "w", NONE, 0, DIBS_OK, "|"},
        {TRY, "a", X, 0, DIBS_OK, "a |"},
        {PASS, "", NONE, TTL_MS, DIBS_OK, "|"},
        {TAKE, "a", NONE, 0, DIBS_NOTFOUND, "|"},
    };

    (void)state;
    RUN(steps);
}

static void test_name_has_one_kind(void **state)
{
    static const step steps[] = {
        {TRY, "a", X, 0, DIBS_OK, "a |"},
        {TRY, "b", P(1, 3), 0, DIBS_MISMATCH, "a |"},
        {RELEASE, "a", NONE, 0, DIBS_OK, "|"},
        {TRY, "b", P(3, 3), 0, DIBS_OK, "b |"},
        {QUEUE, "a", X, 0, DIBS_MISMATCH, "b |"},
        {QUEUE, "a", S, 0, DIBS_MISMATCH, "b |"},
        {QUEUE, "a", P(1, 4), 0, DIBS_MISMATCH, "b |"},
        /* A waiter that asks for another kind loses its place. */
        {QUEUE, "c", P(3, 3), 0, DIBS_BUSY, "b | c"},
        {QUEUE, "c", X, 0, DIBS_MISMATCH, "b |"},
        {PASS, "", NONE, TTL_MS, DIBS_OK, "|"},
        {QUEUE, "a", P(1, 4), 0, DIBS_OK, "a |"},
    };
    static const world_want lock = {X}, three = {P(1, 3)};
    world w;

    (void)state;
    RUN(steps);
    world_init(&w);
    assert_int_equal(world_acquire(&w, "a", &three, 0), DIBS_OK);
    assert_int_equal(world_acquire(&w, "b", &lock, 0), DIBS_MISMATCH);
    assert_string_equal(w.err.message,
                        "`n` is in use as permits of 3, asked for as lock");
    world_fini(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exclusive),
        cmocka_unit_test(test_shared_does_not_starve_writers),
        cmocka_unit_test(test_permits_do_not_starve_large_requests),
        cmocka_unit_test(test_queue_goes_by_priority_then_arrival),
        cmocka_unit_test(test_barge_goes_past_the_queue_only),
        cmocka_unit_test(test_refused_ask_gives_up_its_place),
        cmocka_unit_test(test_dead_waiters_are_skipped_together),
        cmocka_unit_test(test_unclaimed_claim_passes_on),
        cmocka_unit_test(test_any_step_hands_off),
        cmocka_unit_test(test_tombstone_answers_late_requests),
        cmocka_unit_test(test_ghost_keeps_others_out),
        cmocka_unit_test(test_acquire),
        cmocka_unit_test(test_name_has_one_kind),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
