/* test_client_elect.c - elections on a store that fails or hangs. */
/* SPDX-License-Identifier: MIT */
#include "fault_world.h"

#include <poll.h>
#include <stdatomic.h>

typedef struct diary {
    atomic_int gained, lost, why;
    atomic_bool released; /* the lease was free when the loss was announced */
    atomic_bool busy;     /* on_gained does not return */
    world *w;
} diary;

static void note_gained(dibs_election *el, uint64_t term, void *arg)
{
    diary *d = arg;

    (void)el;
    (void)term;
    d->gained++;
    while (d->busy)
        poll(NULL, 0, 1);
}

static void
note_lost(dibs_election *el, uint64_t term, dibs_lost_why why, void *arg)
{
    diary *d = arg;
    size_t holders, waiters;

    (void)el;
    (void)term;
    world_count(d->w, "e", &holders, &waiters, NULL);
    d->released = holders == 0;
    d->why = (int)why;
    d->lost++;
}

static dibs_election *
leader(world *w, dibs_client *cl, uint32_t flags, diary *d)
{
    dibs_election *el = NULL;

    d->w = w;
    CHECK(DIBS_OK,
          dibs_election_new(cl, "e",
                            DIBS_ELECTION_OPTS(.ttl_ms = pace_ms(600),
                                               .stop_ms = pace_ms(200),
                                               .flags = flags, .arg = d,
                                               .on_gained = note_gained,
                                               .on_lost = note_lost),
                            &el, err));
    CHECK(DIBS_OK, dibs_election_wait(el, WORLD_SEAT_MS, err));
    return el;
}

/* It leads no more; a machine that is too slow can be why it leads again. */
static void expect_lost(const dibs_election *el)
{
    dibs_status rc = dibs_election_check(el);

    IN_TIME(rc != DIBS_OK);
    assert_status(rc, DIBS_LOST);
}

static void await_end(diary *d)
{
    while (d->lost == 0)
        poll(NULL, 0, 1);
}

/* The store answers nothing any more, and no error either: a loss is announced while
 * the store still keeps others out. */
static void lost_is_told_when_the_store_hangs(void **state)
{
    world *w = *state;
    static diary d;
    dibs_election *el = leader(w, w->one, 0, &d);

    world_fault(w, DIBS__STEP_RENEW, DIBS__FAULT_DROP_BEFORE, -1);
    await_end(&d);
    expect_lost(el);
    assert_int_equal(d.why, DIBS_LOST_EXPIRED);
    IN_TIME(!d.released);
    world_heal(w);
    CHECK(DIBS_OK, dibs_election_wait(el, WORLD_SEAT_MS, err));
    dibs_election_free(el);
    assert_int_equal(d.gained, d.lost);
}

/* Its thread is busy, and has not seen the loss: a wait does not end with the lead that is
 * over. */
static void no_wait_ends_with_a_lead_that_was_taken(void **state)
{
    world *w = *state;
    static diary d;
    dibs_election *el;
    dibs_status rc;

    d.busy = true;
    el = leader(w, w->one, 0, &d);
    CHECK(DIBS_OK, dibs_lease_break(w->other, "e", 0, NULL, NULL, err));
    while (dibs_election_check(el) == DIBS_OK)
        poll(NULL, 0, 1);
    rc = dibs_election_wait(el, 0, NULL);
    d.busy = false;
    assert_status(rc, DIBS_TIMEOUT);
    CHECK(DIBS_OK, dibs_election_wait(el, WORLD_SEAT_MS, err));
    dibs_election_free(el);
    assert_int_equal(d.gained, d.lost);
}

/* The work goes on after the loss: the lease is not given back, and ends by itself. */
static void released_only_after_work_stopped(void **state)
{
    world *w = *state;
    static diary d, next;
    dibs_election *el = leader(w, w->one, DIBS_ELECTION_STOPS, &d), *other;
    int releases;

    world_fault(w, DIBS__STEP_RENEW, DIBS__FAULT_DROP_BEFORE, -1);
    releases = world_seen(w, DIBS__STEP_RELEASE);
    await_end(&d);
    other = leader(w, w->other, 0, &next);
    /* The other one may lose it too, and gives it back. */
    IN_TIME(world_seen(w, DIBS__STEP_RELEASE) == releases);
    world_heal(w);
    dibs_election_free(other);
    /* It campaigns again when it has stopped, not before. */
    poll(NULL, 0, 50);
    assert_int_equal(d.gained, 1);
    dibs_election_stopped(el);
    CHECK(DIBS_OK, dibs_election_wait(el, WORLD_SEAT_MS, err));
    dibs_election_free(el);
    assert_int_equal(d.gained, d.lost);
}

/* The program sees by a look that it leads no more, and stops. The thread that announces
 * is still in on_gained then, and tells of the loss afterwards. */
static void stops_before_it_is_told(world *w, bool broken)
{
    static diary d;
    dibs_election *el;

    d = (diary){.busy = true};
    el = leader(w, w->one, DIBS_ELECTION_STOPS, &d);
    if (broken) {
        dibs_status rc = dibs_lease_break(w->other, "e", 0, "test", NULL, NULL);

        IN_TIME(rc != DIBS_NOTFOUND);
        assert_status(rc, DIBS_OK);
    } else
        world_fault(w, DIBS__STEP_RENEW, DIBS__FAULT_DROP_BEFORE, -1);
    while (dibs_election_check(el) == DIBS_OK)
        poll(NULL, 0, 1);
    assert_int_equal(d.lost, 0);
    dibs_election_stopped(el);
    world_heal(w);
    d.busy = false;
    await_end(&d);
    CHECK(DIBS_OK, dibs_election_wait(el, WORLD_SEAT_MS, err));
    dibs_election_free(el);
    assert_int_equal(d.gained, d.lost);
}

static void work_may_stop_before_the_loss_is_told(void **state)
{
    stops_before_it_is_told(*state, false);
    stops_before_it_is_told(*state, true);
}

/* Lost comes once, whichever of the two was first. */
static void lost_also_when_resigning_while_losing(void **state)
{
    world *w = *state;
    static diary d;
    dibs_election *el = leader(w, w->one, DIBS_ELECTION_STOPS, &d);

    world_fault(w, DIBS__STEP_RENEW, DIBS__FAULT_DROP_BEFORE, -1);
    await_end(&d);
    CHECK(DIBS_OK, dibs_election_resign(el, err));
    assert_int_equal(d.lost, 1);
    world_heal(w);
    dibs_election_free(el);
    assert_int_equal(d.lost, 1);
}

/* A grant whose answer is lost is not a leader that nobody knows. */
static void a_campaign_outlasts_a_store_that_is_away(void **state)
{
    world *w = *state;
    static diary d;
    dibs_election *el;

    world_fault(w, DIBS__STEP_ACQUIRE, DIBS__FAULT_DROP_AFTER, 2);
    el = leader(w, w->one, 0, &d);
    dibs_election_free(el);
    IN_TIME(d.gained == 1);
    assert_int_equal(d.lost, 1);
}

static dibs_election *node(world *w, diary *d)
{
    dibs_election *el = NULL;

    d->w = w;
    CHECK(DIBS_OK,
          dibs_election_new(w->one, "e",
                            DIBS_ELECTION_OPTS(.ttl_ms = pace_ms(600),
                                               .minimum_nodes = 1,
                                               .flags = DIBS_ELECTION_QUICK,
                                               .arg = d,
                                               .on_gained = note_gained,
                                               .on_lost = note_lost),
                            &el, err));
    return el;
}

/* No heartbeat arrives any more: a leader has lost, a candidate that is granted the
 * lease does not lead, and both campaign on. */
static void candidate_whose_session_ended_never_leads(void **state)
{
    world *w = *state;
    static diary d;
    dibs_election *el = node(w, &d);
    int beats;

    CHECK(DIBS_OK, dibs_election_wait(el, WORLD_SEAT_MS, err));
    world_fault(w, DIBS__STEP_MEET, DIBS__FAULT_DROP_BEFORE, -1);
    IN_TIME(d.lost == 0);
    await_end(&d);
    assert_status(dibs_election_check(el), DIBS_LOST);
    IN_TIME(d.why == DIBS_LOST_FEW);
    beats = world_seen(w, DIBS__STEP_MEET);
    while (world_seen(w, DIBS__STEP_MEET) < beats + 5)
        poll(NULL, 0, 1);
    assert_status(dibs_election_check(el), DIBS_LOST);
    assert_int_equal(d.gained, 1);
    world_heal(w);
    CHECK(DIBS_OK, dibs_election_wait(el, WORLD_SEAT_MS, err));
    dibs_election_free(el);
    assert_int_equal(d.gained, d.lost);
}

/* The seats were enough before it was granted the lease, by whatever server. */
static void seats_are_counted_after_the_grant(void **state)
{
    world *w = *state;
    static diary d;
    dibs_lock *lock = NULL;
    dibs_election *el = node(w, &d);
    size_t holders, waiters;
    int beats;

    CHECK(DIBS_OK, dibs_lock_new(w->other, "e", NULL, &lock, err));
    CHECK(DIBS_OK, dibs_lock_acquire(lock, err));
    CHECK(DIBS_OK, dibs_election_campaign(el, err));
    do
        world_count(w, "e", &holders, &waiters, NULL);
    while (waiters == 0);
    world_fault(w, DIBS__STEP_MEET, DIBS__FAULT_DROP_BEFORE, -1);
    CHECK(DIBS_OK, dibs_lock_release(lock, err));
    beats = world_seen(w, DIBS__STEP_MEET);
    while (world_seen(w, DIBS__STEP_MEET) < beats + 3)
        poll(NULL, 0, 1);
    assert_int_equal(d.gained, 0);
    world_heal(w);
    CHECK(DIBS_OK, dibs_election_wait(el, WORLD_SEAT_MS, err));
    dibs_election_free(el);
    dibs_lock_free(lock);
}

/* A heartbeat that takes its time is worth less by that time. */
static void enough_counts_from_the_send(void **state)
{
    world *w = *state;
    int64_t ttl_ms = pace_ms(600), delay_ms = pace_ms(60);
    dibs_member *member = NULL;
    int beats;

    CHECK(DIBS_OK,
          dibs_member_join(w->one, "g",
                           DIBS_MEMBER_OPTS(.ttl_ms = ttl_ms,
                                            .flags = DIBS_MEMBER_QUICK),
                           &member, err));
    world_delay(w, DIBS__STEP_MEET, (int)delay_ms);
    beats = world_seen(w, DIBS__STEP_MEET);
    /* The first may have begun before the delay. */
    while (world_seen(w, DIBS__STEP_MEET) < beats + 2)
        poll(NULL, 0, 1);
    while (world_seen(w, DIBS__STEP_MEET) < beats + 5) {
        assert_true(dibs_member_enough_ms(member) <= ttl_ms - delay_ms);
        poll(NULL, 0, 1);
    }
    dibs_member_leave(member);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(lost_is_told_when_the_store_hangs),
        WORLD_TEST(no_wait_ends_with_a_lead_that_was_taken),
        WORLD_TEST(released_only_after_work_stopped),
        WORLD_TEST(work_may_stop_before_the_loss_is_told),
        WORLD_TEST(lost_also_when_resigning_while_losing),
        WORLD_TEST(a_campaign_outlasts_a_store_that_is_away),
        WORLD_TEST(candidate_whose_session_ended_never_leads),
        WORLD_TEST(seats_are_counted_after_the_grant),
        WORLD_TEST(enough_counts_from_the_send),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
