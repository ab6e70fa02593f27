/* acquire.c - the take machine: see the diagram and the invariants in acquire.h. */
/* SPDX-License-Identifier: MIT */
#include "core/machine/acquire.h"

#include "base/fail.h"
#include <assert.h>

/* A waiter asks again at least this often. It also keeps its place alive, so it
 * must stay well below DIBS__PLACE_MS. */
enum { POLL_MS = 1000 };

/* Waiters that are further back ask a little later when a holder is due to end,
 * so that the first of them finds the store quiet. */
enum { STAGGER_MS = 10, STAGGER_MAX = 20 };

/* Pause before asking again after the store failed, doubled up to the cap. */
enum { BACKOFF_MS = 10, BACKOFF_CAP_MS = 500 };

/* The cap when the store has no queue and somebody holds the name. */
enum { AGAIN_CAP_MS = 100 };

/* Even the last ask before the end of a wait gets this long. */
enum { CHANCE_MS = 50 };

void dibs__acquire_start(dibs__acquire *tk, const dibs__acquire_terms *terms,
                         dibsx_prng *jitter, dibsx_nsec now)
{
    *tk = (dibs__acquire){.state = DIBS__ACQUIRE_STARTED,
                          .terms = *terms,
                          .jitter = jitter,
                          .started_at = now,
                          .wake_at = DIBSX_NEVER};
}

static bool away(dibs_status rc)
{
    return rc == DIBS_UNAVAIL || rc == DIBS_UNKNOWN;
}

static bool may_spare(const dibs__acquire *tk)
{
    return tk->terms.spare && !tk->on_spare && !tk->under_replicated;
}

/* The latest ask found the store away. */
static bool failed(const dibs__acquire *tk, const dibs__lease *ls)
{
    return ls->state == DIBS__LEASE_ASKING && tk->answer != DIBS_OK;
}

/* What the lease is in is not of this try, or was granted and has run out. */
static bool lapsed(const dibs__acquire *tk, const dibs__lease *ls)
{
    if (ls->state == DIBS__LEASE_ASKING || ls->state == DIBS__LEASE_QUEUED)
        return !tk->asked;
    return ls->state != DIBS__LEASE_FREE;
}

static void over(dibs__acquire *tk, dibs_status rc)
{
    tk->state = DIBS__ACQUIRE_OVER;
    tk->rc = rc;
}

static void ask_first(dibs__acquire *tk)
{
    tk->state = DIBS__ACQUIRE_READY;
    tk->asked = false;
    tk->backoff_ms = BACKOFF_MS;
}

static void new_try(dibs__acquire *tk, dibsx_nsec now)
{
    tk->until = dibsx_after_ms(now, tk->terms.wait_ms);
    tk->on_spare = false;
    ask_first(tk);
}

static void pause_between(dibs__acquire *tk, dibsx_nsec now)
{
    uint64_t span_ms = (uint64_t)tk->terms.retry_delay_ms;

    span_ms = span_ms / 2 + dibsx_prng_below(tk->jitter, span_ms + 1);
    tk->terms.retries--;
    tk->state = DIBS__ACQUIRE_PAUSING;
    tk->wake_at = dibsx_after_ms(now, (int64_t)span_ms);
}

static void end_try(dibs__acquire *tk, dibs_status rc, dibsx_nsec now)
{
    if (rc == DIBS_UNAVAIL && tk->doubtful)
        rc = DIBS_UNKNOWN;
    if (away(rc) && may_spare(tk))
        tk->state = DIBS__ACQUIRE_FALLING_BACK;
    else if ((rc == DIBS_BUSY || rc == DIBS_TIMEOUT) && tk->terms.retries > 0)
        pause_between(tk, now);
    else
        over(tk, rc);
}

/* There is nothing to give up, unless an ask had no answer and might yet be
 * granted. */
static void
leave(dibs__acquire *tk, const dibs__lease *ls, dibs_status rc, dibsx_nsec now)
{
    if (ls->state == DIBS__LEASE_FREE && !(tk->asked && ls->unanswered)) {
        tk->reached = false;
        end_try(tk, rc, now);
        return;
    }
    tk->state = DIBS__ACQUIRE_LEAVING;
    tk->rc = rc;
}

/* What the lease, a cancel and the time mean: READY to go on, or the end. */
static void look(dibs__acquire *tk, const dibs__lease *ls, dibsx_nsec now)
{
    if (tk->asked && dibs__lease_valid(ls, now))
        over(tk, DIBS_OK);
    else if (tk->cancelled)
        leave(tk, ls, DIBS_CANCELLED, now);
    else if (failed(tk, ls) && (tk->terms.wait_ms == 0 || may_spare(tk)))
        leave(tk, ls, tk->answer, now);
    else if (tk->asked && now >= tk->until)
        leave(tk, ls, failed(tk, ls) ? tk->answer : DIBS_TIMEOUT, now);
    else if (lapsed(tk, ls))
        leave(tk, ls, DIBS_OK, now);
    else
        tk->state = DIBS__ACQUIRE_READY;
}

/* Nothing has happened yet that would end the sleep of a waiter. */
static bool sleeps_on(dibs__acquire *tk, const dibs__lease *ls, dibsx_nsec now)
{
    if (tk->cancelled)
        return false;
    if (tk->state != DIBS__ACQUIRE_WAITING)
        return now < tk->wake_at;
    if (ls->state != DIBS__LEASE_QUEUED || tk->nudged ||
        ls->rung_fence > ls->watermark)
        return false;
    if (now >= tk->wake_at)
        tk->polls++;
    return now < tk->wake_at;
}

/* The end of a sleep. */
static void wake(dibs__acquire *tk, const dibs__lease *ls, dibsx_nsec now)
{
    if (tk->state != DIBS__ACQUIRE_PAUSING)
        look(tk, ls, now);
    else if (tk->cancelled)
        over(tk, DIBS_CANCELLED);
    else
        new_try(tk, now);
}

static dibs__acquire_step step_of(const dibs__acquire *tk)
{
    switch (tk->state) {
    case DIBS__ACQUIRE_LISTENING:
        return DIBS__ACQUIRE_LISTEN;
    case DIBS__ACQUIRE_READY:
        return DIBS__ACQUIRE_ASK;
    case DIBS__ACQUIRE_LEAVING:
        return DIBS__ACQUIRE_LEAVE;
    case DIBS__ACQUIRE_FALLING_BACK:
        return DIBS__ACQUIRE_FALL_BACK;
    case DIBS__ACQUIRE_OVER:
        return DIBS__ACQUIRE_DONE;
    case DIBS__ACQUIRE_STARTED:
    case DIBS__ACQUIRE_ASKED:
    case DIBS__ACQUIRE_WAITING:
    case DIBS__ACQUIRE_BACKING:
    case DIBS__ACQUIRE_PAUSING:
        break;
    }
    return DIBS__ACQUIRE_SLEEP;
}

dibs__acquire_step
dibs__acquire_next(dibs__acquire *tk, const dibs__lease *ls, dibsx_nsec now)
{
    assert(tk->state != DIBS__ACQUIRE_ASKED);
    if (tk->state == DIBS__ACQUIRE_STARTED)
        tk->state = DIBS__ACQUIRE_LISTENING;
    if (tk->state == DIBS__ACQUIRE_LISTENING &&
        (!tk->terms.listen || tk->cancelled))
        new_try(tk, now);
    if (step_of(tk) == DIBS__ACQUIRE_SLEEP && !sleeps_on(tk, ls, now))
        wake(tk, ls, now);
    if (tk->state == DIBS__ACQUIRE_READY ||
        (tk->state == DIBS__ACQUIRE_OVER && tk->rc == DIBS_OK))
        look(tk, ls, now);
    dibs__acquire_check(tk, ls);
    return step_of(tk);
}

void dibs__acquire_listened(dibs__acquire *tk, dibsx_nsec now)
{
    assert(tk->state == DIBS__ACQUIRE_LISTENING);
    new_try(tk, now);
}

void dibs__acquire_asked(dibs__acquire *tk, const dibs__lease *ls)
{
    assert(tk->state == DIBS__ACQUIRE_READY);
    tk->state = DIBS__ACQUIRE_ASKED;
    tk->asked = true;
    tk->nudged = false;
    dibs__acquire_check(tk, ls);
}

/* Waits in the queue until there is a reason to act. */
static void
wait_for_ring(dibs__acquire *tk, const dibs__answer *ans, dibsx_nsec now)
{
    uint32_t ahead = ans->ahead < STAGGER_MAX ? ans->ahead : STAGGER_MAX;
    int64_t left_ms = ans->left_ms < POLL_MS ? ans->left_ms : POLL_MS;
    int64_t span_ms = left_ms + 1 + (int64_t)ahead * STAGGER_MS;

    tk->state = DIBS__ACQUIRE_WAITING;
    tk->backoff_ms = BACKOFF_MS;
    tk->wake_at = dibsx_after_ms(now, span_ms < POLL_MS ? span_ms : POLL_MS);
}

/* Waits a little, longer each time, before asking again. */
static void back_off(dibs__acquire *tk, int64_t cap_ms, dibsx_nsec now)
{
    uint64_t span_ms = (uint64_t)tk->backoff_ms;

    span_ms = span_ms / 2 + dibsx_prng_below(tk->jitter, span_ms);
    tk->state = DIBS__ACQUIRE_BACKING;
    tk->wake_at = dibsx_after_ms(now, (int64_t)span_ms);
    if (tk->backoff_ms < cap_ms)
        tk->backoff_ms *= 2;
}

/* Refused by a store that has no queue to wait in. */
static bool waits_without_queue(const dibs__acquire *tk, dibs_status rc)
{
    return rc == DIBS_BUSY && tk->terms.asks_again && tk->terms.wait_ms != 0;
}

/* Goes on by and by. */
static void back_off_until(dibs__acquire *tk, int64_t cap_ms, dibsx_nsec now)
{
    back_off(tk, cap_ms, now);
    if (tk->wake_at > tk->until)
        tk->wake_at = tk->until;
}

/* Asks again by and by, as another owner. */
static void
wait_without_queue(dibs__acquire *tk, const dibs__lease *ls, dibsx_nsec now)
{
    look(tk, ls, now);
    if (tk->state == DIBS__ACQUIRE_READY)
        back_off_until(tk, AGAIN_CAP_MS, now);
}

/* No answer, of a store that asks many: it may have begun to take back what some of
 * them gave. What is under way then could end what the same owner gets next, so
 * another goes on. */
static bool is_spent(const dibs__acquire *tk, dibs_status rc)
{
    return rc == DIBS_UNKNOWN && tk->terms.asks_again;
}

void dibs__acquire_answered(dibs__acquire *tk, const dibs__lease *ls,
                            dibs_status rc, const dibs__answer *ans,
                            dibsx_nsec now)
{
    assert(tk->state == DIBS__ACQUIRE_ASKED ||
           tk->state == DIBS__ACQUIRE_READY);
    tk->answer = rc;
    tk->under_replicated = rc == DIBS_UNAVAIL && ans->under_replicated;
    tk->contended = tk->contended || rc == DIBS_BUSY;
    tk->reached = tk->reached || rc == DIBS_OK || rc == DIBS_UNKNOWN ||
                  (rc == DIBS_BUSY && ans->queued);
    if (ls->state == DIBS__LEASE_FREE && waits_without_queue(tk, rc)) {
        wait_without_queue(tk, ls, now);
    } else if (ls->state == DIBS__LEASE_FREE) {
        leave(tk, ls, rc, now);
    } else {
        look(tk, ls, now);
        if (tk->state == DIBS__ACQUIRE_READY && ls->state == DIBS__LEASE_QUEUED)
            wait_for_ring(tk, ans, now);
        else if (tk->state == DIBS__ACQUIRE_READY && is_spent(tk, rc))
            leave(tk, ls, DIBS_OK, now);
        else if (tk->state == DIBS__ACQUIRE_READY && rc != DIBS_OK)
            back_off(tk, BACKOFF_CAP_MS, now);
        if (tk->wake_at > tk->until)
            tk->wake_at = tk->until;
    }
    dibs__acquire_check(tk, ls);
}

void dibs__acquire_left(dibs__acquire *tk, const dibs__lease *ls,
                        dibs_status rc, dibsx_nsec now)
{
    assert(tk->state == DIBS__ACQUIRE_LEAVING);
    assert(ls->state == DIBS__LEASE_FREE);
    if (tk->reached && rc != DIBS_OK && rc != DIBS_LOST)
        tk->doubtful = true;
    tk->reached = false;
    if (tk->rc == DIBS_OK && tk->asked && tk->terms.asks_again)
        back_off_until(tk, AGAIN_CAP_MS, now);
    else if (tk->rc == DIBS_OK)
        tk->state = DIBS__ACQUIRE_READY;
    else
        end_try(tk, tk->rc, now);
    dibs__acquire_check(tk, ls);
}

void dibs__acquire_fell_back(dibs__acquire *tk, dibs_status rc, dibsx_nsec now)
{
    assert(tk->state == DIBS__ACQUIRE_FALLING_BACK);
    tk->on_spare = true;
    if (rc == DIBS_OK)
        ask_first(tk);
    else
        end_try(tk, rc, now);
}

dibsx_nsec dibs__acquire_ask_until(const dibs__acquire *tk, dibsx_nsec limit,
                                   dibsx_nsec now)
{
    dibsx_nsec chance = dibsx_after_ms(now, CHANCE_MS);

    if (tk->terms.wait_ms == 0 || tk->until >= limit)
        return limit;
    return tk->until > chance ? tk->until : chance;
}

void dibs__acquire_explain(const dibs__acquire *tk, const char *name,
                           dibs_error *err)
{
    /* The store says who holds it, if it can. */
    bool said = err->status == tk->rc && err->message[0];

    assert(tk->state == DIBS__ACQUIRE_OVER);
    if (tk->rc == DIBS_CANCELLED)
        (void)dibsx_fail(err, tk->rc, "the wait for %s was cancelled", name);
    else if (tk->rc == DIBS_TIMEOUT)
        (void)dibsx_fail(err, tk->rc, "%s was not granted in time", name);
    else if (tk->rc == DIBS_BUSY && !said)
        (void)dibsx_fail(err, tk->rc, "%s is held by another owner", name);
    else if (tk->rc == DIBS_UNKNOWN && !said)
        (void)dibsx_unanswered(err);
}

/* The owner has nothing in the store. */
static bool has_nothing(const dibs__acquire *tk)
{
    return tk->state == DIBS__ACQUIRE_FALLING_BACK ||
           tk->state == DIBS__ACQUIRE_PAUSING ||
           (tk->state == DIBS__ACQUIRE_OVER && tk->rc != DIBS_OK);
}

void dibs__acquire_check(const dibs__acquire *tk, const dibs__lease *ls)
{
    bool queued = tk->state == DIBS__ACQUIRE_WAITING ||
                  tk->state == DIBS__ACQUIRE_BACKING;
    bool held = ls->state == DIBS__LEASE_HELD ||
                ls->state == DIBS__LEASE_SUSPECT ||
                ls->state == DIBS__LEASE_LOST;
    bool nothing = has_nothing(tk);
    bool denied = tk->state == DIBS__ACQUIRE_OVER && tk->rc == DIBS_UNAVAIL;

    assert(tk->state != DIBS__ACQUIRE_ASKED || ls->asking); /* (1) */
    assert(tk->state != DIBS__ACQUIRE_OVER || tk->rc != DIBS_OK ||
           held);                                      /* (2) */
    assert(!nothing || ls->state == DIBS__LEASE_FREE); /* (3) */
    assert(!queued || tk->wake_at <= tk->until);       /* (4) */
    assert(!queued || tk->asked);                      /* (5) */
    assert(!tk->on_spare || tk->terms.spare);          /* (6) */
    assert(!denied || !tk->doubtful);                  /* (7) */
    (void)queued;
    (void)held;
    (void)nothing;
    (void)denied;
}
