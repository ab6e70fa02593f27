/* election_machine.c - one candidate, without I/O; see election_machine.h. */
/* SPDX-License-Identifier: MIT */
#include "coord/election_machine.h"
#include <assert.h>

void dibs__election_init(dibs__election *e, const dibs__election_terms *terms)
{
    *e = (dibs__election){.terms = *terms};
}

static dibsx_nsec before_stop(const dibs__election *e, dibsx_nsec at)
{
    return at - e->terms.stop_ms * DIBSX_MS;
}

static dibsx_nsec end_of_belief(const dibs__election *e)
{
    dibsx_nsec end = e->valid_until;

    if (e->terms.needs_seats && e->enough_until < end)
        end = e->enough_until;
    return before_stop(e, end);
}

dibsx_nsec dibs__election_until(const dibs__election *e)
{
    return e->state == DIBS__ELECTION_LEADING ? end_of_belief(e) : 0;
}

bool dibs__election_leads(const dibs__election *e, dibsx_nsec now)
{
    return now < dibs__election_until(e);
}

bool dibs__election_renews(const dibs__election *e, dibsx_nsec now)
{
    return dibs__election_leads(e, now) ||
           (e->state == DIBS__ELECTION_COUNTING && now < e->valid_until);
}

bool dibs__election_counts(const dibs__election *e)
{
    return e->state == DIBS__ELECTION_COUNTING;
}

static bool has_seats(const dibs__election *e, dibsx_nsec now)
{
    return !e->terms.needs_seats || before_stop(e, e->enough_until) > now;
}

static void end_term(dibs__election *e, dibs__election_why why)
{
    e->state = DIBS__ELECTION_ENDING;
    e->why = why;
}

static void begin_rest(dibs__election *e, int64_t rest_ms, dibsx_nsec now)
{
    e->state = DIBS__ELECTION_RESTING;
    e->rest_until = dibsx_after_ms(now, rest_ms);
}

void dibs__election_start(dibs__election *e)
{
    e->wanted = true;
    if (e->state == DIBS__ELECTION_IDLE)
        e->state = DIBS__ELECTION_RESTING;
    dibs__election_check(e);
}

void dibs__election_resign(dibs__election *e, bool goes_on)
{
    e->wanted = e->wanted && goes_on;
    if (e->state == DIBS__ELECTION_LEADING)
        end_term(e, DIBS__ELECTION_RESIGNED);
    if (e->state == DIBS__ELECTION_COUNTING)
        e->state = DIBS__ELECTION_LEAVING;
    dibs__election_check(e);
}

static bool has_lease(const dibs__election *e)
{
    return e->state == DIBS__ELECTION_COUNTING ||
           e->state == DIBS__ELECTION_LEADING ||
           e->state == DIBS__ELECTION_ENDING;
}

static void note_few(dibs__election *e)
{
    e->enough_until = 0;
    if (!e->terms.needs_seats)
        return;
    if (e->state == DIBS__ELECTION_LEADING)
        end_term(e, DIBS__ELECTION_FEW);
    if (e->state == DIBS__ELECTION_COUNTING)
        e->state = DIBS__ELECTION_LEAVING;
}

void dibs__election_counted(dibs__election *e, dibsx_nsec sent_at,
                            int64_t enough_ms)
{
    e->seated = true;
    if (has_lease(e) && sent_at <= e->granted_at)
        return;
    if (enough_ms == 0)
        note_few(e);
    else if (dibsx_after_ms(sent_at, enough_ms) > e->enough_until)
        e->enough_until = dibsx_after_ms(sent_at, enough_ms);
    dibs__election_check(e);
}

void dibs__election_unseated(dibs__election *e)
{
    e->seated = false;
    note_few(e);
    dibs__election_check(e);
}

void dibs__election_granted(dibs__election *e, uint64_t term,
                            dibsx_nsec valid_until, dibsx_nsec now)
{
    assert(e->state == DIBS__ELECTION_ASKING && e->asked);
    e->asked = false;
    e->valid_until = valid_until;
    e->granted_at = now;
    e->enough_until = 0;
    e->told_gained = false;
    e->told_lost = false;
    if (e->wanted && before_stop(e, valid_until) > now &&
        (e->seated || !e->terms.needs_seats)) {
        e->state = DIBS__ELECTION_COUNTING;
        e->term = term;
    } else {
        e->state = DIBS__ELECTION_LEAVING;
    }
    dibs__election_check(e);
}

void dibs__election_refused(dibs__election *e, int64_t rest_ms, dibsx_nsec now)
{
    assert(e->state == DIBS__ELECTION_ASKING && e->asked);
    e->asked = false;
    begin_rest(e, rest_ms, now);
    dibs__election_check(e);
}

void dibs__election_released(dibs__election *e, dibsx_nsec now)
{
    assert(e->state == DIBS__ELECTION_LEAVING && e->asked);
    e->asked = false;
    begin_rest(e, DIBS__ELECTION_REST_MS, now);
    dibs__election_check(e);
}

static void end_late_term(dibs__election *e, dibsx_nsec now)
{
    bool few = e->terms.needs_seats && e->enough_until < e->valid_until;

    if (e->state == DIBS__ELECTION_LEADING && now >= end_of_belief(e))
        end_term(e, few ? DIBS__ELECTION_FEW : DIBS__ELECTION_EXPIRED);
}

/* A program that looks at clocks may know of the loss before it is announced. */
void dibs__election_stopped(dibs__election *e, dibsx_nsec now)
{
    end_late_term(e, now);
    if (e->told_lost || e->state == DIBS__ELECTION_ENDING)
        e->working = false;
    dibs__election_check(e);
}

/* A renewal that comes after the end of belief revives nothing, but the store has the
 * lease for longer. */
void dibs__election_renewed(dibs__election *e, dibsx_nsec valid_until,
                            dibsx_nsec now)
{
    bool in_term;

    end_late_term(e, now);
    in_term = has_lease(e);
    if (in_term && valid_until > e->valid_until)
        e->valid_until = valid_until;
    dibs__election_check(e);
}

void dibs__election_taken(dibs__election *e)
{
    if (e->state == DIBS__ELECTION_LEADING)
        end_term(e, DIBS__ELECTION_TAKEN);
    if (e->state == DIBS__ELECTION_ENDING)
        e->valid_until = 0;
    if (e->state == DIBS__ELECTION_COUNTING)
        e->state = DIBS__ELECTION_LEAVING;
    dibs__election_check(e);
}

/* The changes of state that time alone makes. */
static void pass_time(dibs__election *e, dibsx_nsec now)
{
    if (e->state == DIBS__ELECTION_RESTING && !e->wanted)
        e->state = DIBS__ELECTION_IDLE;
    if (e->state == DIBS__ELECTION_RESTING && now >= e->rest_until &&
        !e->working)
        e->state = DIBS__ELECTION_SEATING;
    if (e->state == DIBS__ELECTION_SEATING && !e->wanted)
        e->state = DIBS__ELECTION_IDLE;
    if (e->state == DIBS__ELECTION_SEATING && has_seats(e, now))
        e->state = DIBS__ELECTION_ASKING;
    if (e->state == DIBS__ELECTION_COUNTING && has_seats(e, now))
        e->state = DIBS__ELECTION_LEADING;
    if (e->state == DIBS__ELECTION_COUNTING &&
        now >= before_stop(e, e->valid_until))
        e->state = DIBS__ELECTION_LEAVING;
    end_late_term(e, now);
    /* A program that was never told has nothing to stop. */
    if (e->state == DIBS__ELECTION_ENDING && e->told_gained == e->told_lost &&
        (!e->working || now >= e->valid_until))
        e->state = DIBS__ELECTION_LEAVING;
}

static dibs__election_todo tell_lost(dibs__election *e)
{
    e->told_lost = true;
    if (!e->terms.says_stopped)
        e->working = false;
    return DIBS__ELECTION_TELL_LOST;
}

static dibs__election_todo find_todo(dibs__election *e)
{
    if (e->state == DIBS__ELECTION_ASKING && !e->asked) {
        e->asked = true;
        return DIBS__ELECTION_ASK;
    }
    if (e->state == DIBS__ELECTION_LEADING && !e->told_gained) {
        e->told_gained = true;
        e->working = true;
        return DIBS__ELECTION_TELL_GAINED;
    }
    if (e->state == DIBS__ELECTION_ENDING && e->told_gained && !e->told_lost)
        return tell_lost(e);
    if (e->state == DIBS__ELECTION_LEAVING && !e->asked) {
        e->asked = true;
        e->term = 0;
        e->valid_until = 0;
        return DIBS__ELECTION_RELEASE;
    }
    return DIBS__ELECTION_SLEEP;
}

dibs__election_todo
dibs__election_next(dibs__election *e, dibsx_nsec now, dibsx_nsec *wake_at)
{
    dibs__election_todo todo;

    pass_time(e, now);
    todo = find_todo(e);
    *wake_at = DIBSX_NEVER;
    if (todo != DIBS__ELECTION_SLEEP)
        *wake_at = now;
    else if (e->state == DIBS__ELECTION_LEADING)
        *wake_at = end_of_belief(e);
    else if (e->state == DIBS__ELECTION_COUNTING)
        *wake_at = before_stop(e, e->valid_until);
    else if (e->state == DIBS__ELECTION_ENDING)
        *wake_at = e->valid_until;
    else if (e->state == DIBS__ELECTION_RESTING && !e->working)
        *wake_at = e->rest_until;
    dibs__election_check(e);
    return todo;
}

void dibs__election_check(const dibs__election *e)
{
    bool in_term =
        e->state == DIBS__ELECTION_LEADING || e->state == DIBS__ELECTION_ENDING;
    bool leased = has_lease(e);
    bool calls =
        e->state == DIBS__ELECTION_ASKING || e->state == DIBS__ELECTION_LEAVING;

    assert(e->told_gained || !e->told_lost);                     /* (1) */
    assert(e->state != DIBS__ELECTION_LEADING || !e->told_lost); /* (3) */
    assert(in_term || e->told_gained == e->told_lost);           /* (1) */
    assert((e->term != 0) == leased || (e->term != 0 && calls)); /* (2) */
    assert(e->state != DIBS__ELECTION_ASKING || !e->working);    /* (6) */
    assert(e->state != DIBS__ELECTION_COUNTING || !e->working);  /* (6) */
    assert(calls || !e->asked);                                  /* (7) */
    (void)in_term;
    (void)leased;
    (void)calls;
}
