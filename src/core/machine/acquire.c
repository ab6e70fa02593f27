/* acquire.c - the acquire machine: see the diagram and the invariants in
 * acquire.h. */
/* SPDX-License-Identifier: MIT */
#include "core/machine/acquire.h"

#include "base/fail.h"
#include <assert.h>

/* A waiter asks again at least this often. The ask also renews its place in the
 * queue, so this must stay well below DIBS__PLACE_MS. */
enum { POLL_MS = 1000 };

/* Waiters that are further back ask a little later when a holder is due to end,
 * so that the first of them finds the store quiet. */
enum { STAGGER_MS = 10, STAGGER_MAX = 20 };

/* Pause before asking again after the store failed, doubled up to the cap. */
enum { BACKOFF_MS = 10, BACKOFF_CAP_MS = 500 };

/* The cap when the store has no queue and another owner holds the name. */
enum { AGAIN_CAP_MS = 100 };

/* Even the last ask before the end of a wait gets this long. */
enum { CHANCE_MS = 50 };

void dibs__acquire_start(dibs__acquire *aq, const dibs__acquire_terms *terms,
                         dibsx_prng *jitter, dibsx_nsec now)
{
    *aq = (dibs__acquire){.state = DIBS__ACQUIRE_STARTED,
                          .terms = *terms,
                          .jitter = jitter,
                          .started_at = now,
                          .wake_at = DIBSX_NEVER};
}

static bool is_away(dibs_status rc)
{
    return rc == DIBS_UNAVAIL || rc == DIBS_UNKNOWN;
}

static bool may_fall_back(const dibs__acquire *aq)
{
    return aq->terms.fallback && !aq->on_fallback && !aq->under_replicated;
}

/* The latest ask failed: the store is away. */
static bool has_failed(const dibs__acquire *aq, const dibs__lease *ls)
{
    return ls->state == DIBS__LEASE_ASKING && aq->answer != DIBS_OK;
}

/* The state of the lease is of an earlier try, or it was granted and has run
 * out. */
static bool has_lapsed(const dibs__acquire *aq, const dibs__lease *ls)
{
    if (ls->state == DIBS__LEASE_ASKING || ls->state == DIBS__LEASE_QUEUED)
        return !aq->asked;
    return ls->state != DIBS__LEASE_FREE;
}

static void end_acquire(dibs__acquire *aq, dibs_status rc)
{
    aq->state = DIBS__ACQUIRE_OVER;
    aq->place = 0;
    aq->rc = rc;
}

static void ask_first(dibs__acquire *aq)
{
    aq->state = DIBS__ACQUIRE_READY;
    aq->asked = false;
    aq->backoff_ms = BACKOFF_MS;
}

static void new_try(dibs__acquire *aq, dibsx_nsec now)
{
    aq->until = dibsx_after_ms(now, aq->terms.wait_ms);
    aq->on_fallback = false;
    aq->tries++;
    ask_first(aq);
}

static void pause_between(dibs__acquire *aq, dibsx_nsec now)
{
    uint64_t span_ms = (uint64_t)aq->terms.retry_delay_ms;

    span_ms = span_ms / 2 + dibsx_prng_below(aq->jitter, span_ms + 1);
    aq->terms.retries--;
    aq->state = DIBS__ACQUIRE_PAUSING;
    aq->wake_at = dibsx_after_ms(now, (int64_t)span_ms);
}

static void end_try(dibs__acquire *aq, dibs_status rc, dibsx_nsec now)
{
    if (rc == DIBS_UNAVAIL && aq->doubtful)
        rc = DIBS_UNKNOWN;
    if (is_away(rc) && may_fall_back(aq))
        aq->state = DIBS__ACQUIRE_FALLING_BACK;
    else if ((rc == DIBS_BUSY || rc == DIBS_TIMEOUT || is_away(rc)) &&
             aq->terms.retries > 0)
        pause_between(aq, now);
    else
        end_acquire(aq, rc);
}

/* If the lease is free and every ask was answered, the store has nothing to
 * give up. */
static void leave_store(dibs__acquire *aq, const dibs__lease *ls,
                        dibs_status rc, dibsx_nsec now)
{
    aq->place = 0;
    if (ls->state == DIBS__LEASE_FREE && !(aq->asked && ls->unanswered)) {
        aq->reached = false;
        end_try(aq, rc, now);
        return;
    }
    aq->state = DIBS__ACQUIRE_LEAVING;
    aq->rc = rc;
}

/* Applies the lease, a cancel and the time: READY to go on, or the end. */
static void
look_at_lease(dibs__acquire *aq, const dibs__lease *ls, dibsx_nsec now)
{
    if (aq->asked && dibs__lease_valid(ls, now))
        end_acquire(aq, DIBS_OK);
    else if (aq->cancelled)
        leave_store(aq, ls, DIBS_CANCELLED, now);
    else if (has_failed(aq, ls) &&
             (aq->terms.wait_ms == 0 || may_fall_back(aq)))
        leave_store(aq, ls, aq->answer, now);
    else if (aq->asked && now >= aq->until)
        leave_store(aq, ls, has_failed(aq, ls) ? aq->answer : DIBS_TIMEOUT,
                    now);
    else if (has_lapsed(aq, ls))
        leave_store(aq, ls, DIBS_OK, now);
    else
        aq->state = DIBS__ACQUIRE_READY;
}

/* Nothing has happened yet that would end the sleep of a waiter. */
static bool sleeps_on(dibs__acquire *aq, const dibs__lease *ls, dibsx_nsec now)
{
    if (aq->cancelled)
        return false;
    if (aq->state != DIBS__ACQUIRE_WAITING)
        return now < aq->wake_at;
    if (ls->state != DIBS__LEASE_QUEUED || aq->nudged ||
        ls->noticed_fence > ls->watermark)
        return false;
    if (now >= aq->wake_at)
        aq->polls++;
    return now < aq->wake_at;
}

/* The end of a sleep. */
static void end_sleep(dibs__acquire *aq, const dibs__lease *ls, dibsx_nsec now)
{
    if (aq->state != DIBS__ACQUIRE_PAUSING)
        look_at_lease(aq, ls, now);
    else if (aq->cancelled)
        end_acquire(aq, DIBS_CANCELLED);
    else
        new_try(aq, now);
}

static dibs__acquire_step step_of(const dibs__acquire *aq)
{
    switch (aq->state) {
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
dibs__acquire_next(dibs__acquire *aq, const dibs__lease *ls, dibsx_nsec now)
{
    assert(aq->state != DIBS__ACQUIRE_ASKED);
    if (aq->state == DIBS__ACQUIRE_STARTED)
        aq->state = DIBS__ACQUIRE_LISTENING;
    if (aq->state == DIBS__ACQUIRE_LISTENING &&
        (!aq->terms.listen || aq->cancelled))
        new_try(aq, now);
    if (step_of(aq) == DIBS__ACQUIRE_SLEEP && !sleeps_on(aq, ls, now))
        end_sleep(aq, ls, now);
    if (aq->state == DIBS__ACQUIRE_READY ||
        (aq->state == DIBS__ACQUIRE_OVER && aq->rc == DIBS_OK))
        look_at_lease(aq, ls, now);
    dibs__acquire_check(aq, ls);
    return step_of(aq);
}

void dibs__acquire_listened(dibs__acquire *aq, dibsx_nsec now)
{
    assert(aq->state == DIBS__ACQUIRE_LISTENING);
    new_try(aq, now);
}

void dibs__acquire_asked(dibs__acquire *aq, const dibs__lease *ls)
{
    assert(aq->state == DIBS__ACQUIRE_READY);
    aq->state = DIBS__ACQUIRE_ASKED;
    aq->asked = true;
    aq->nudged = false;
    dibs__acquire_check(aq, ls);
}

/* Waits in the queue until there is a reason to act. */
static void
wait_for_notice(dibs__acquire *aq, const dibs__answer *ans, dibsx_nsec now)
{
    uint32_t ahead = ans->ahead < STAGGER_MAX ? ans->ahead : STAGGER_MAX;
    int64_t left_ms = ans->left_ms < POLL_MS ? ans->left_ms : POLL_MS;
    int64_t span_ms = left_ms + 1 + (int64_t)ahead * STAGGER_MS;

    aq->state = DIBS__ACQUIRE_WAITING;
    aq->backoff_ms = BACKOFF_MS;
    aq->wake_at = dibsx_after_ms(now, span_ms < POLL_MS ? span_ms : POLL_MS);
}

/* Waits a little, longer each time, before asking again. */
static void back_off(dibs__acquire *aq, int64_t cap_ms, dibsx_nsec now)
{
    uint64_t span_ms = (uint64_t)aq->backoff_ms;

    span_ms = span_ms / 2 + dibsx_prng_below(aq->jitter, span_ms);
    aq->state = DIBS__ACQUIRE_BACKING;
    aq->wake_at = dibsx_after_ms(now, (int64_t)span_ms);
    if (aq->backoff_ms < cap_ms)
        aq->backoff_ms *= 2;
}

/* The store refused, and has no queue to wait in. */
static bool waits_without_queue(const dibs__acquire *aq, dibs_status rc)
{
    return rc == DIBS_BUSY && aq->terms.asks_again && aq->terms.wait_ms != 0;
}

/* Pauses, but not beyond the end of the try. */
static void back_off_until(dibs__acquire *aq, int64_t cap_ms, dibsx_nsec now)
{
    back_off(aq, cap_ms, now);
    if (aq->wake_at > aq->until)
        aq->wake_at = aq->until;
}

/* Pauses, then asks again as another owner. */
static void
wait_without_queue(dibs__acquire *aq, const dibs__lease *ls, dibsx_nsec now)
{
    look_at_lease(aq, ls, now);
    if (aq->state == DIBS__ACQUIRE_READY)
        back_off_until(aq, AGAIN_CAP_MS, now);
}

/* A quorum that has no answer may have begun to release what some nodes
 * granted. A release under way could end the next grant to the same owner, so
 * another owner asks. */
static bool is_spent(const dibs__acquire *aq, dibs_status rc)
{
    return rc == DIBS_UNKNOWN && aq->terms.asks_again;
}

/* The owner came too late for what an earlier ask was granted, or for its claim. */
static bool is_too_late(const dibs__acquire *aq, dibs_status rc)
{
    return rc == DIBS_LOST && aq->terms.wait_ms != 0;
}

/* Another owner asks, while there is time. */
static void ask_anew(dibs__acquire *aq, const dibs__lease *ls, dibsx_nsec now)
{
    look_at_lease(aq, ls, now);
    if (aq->state != DIBS__ACQUIRE_READY)
        return;
    if (ls->unanswered) {
        leave_store(aq, ls, DIBS_OK, now);
        return;
    }
    aq->reached = false;
    if (aq->terms.asks_again)
        back_off_until(aq, AGAIN_CAP_MS, now);
}

void dibs__acquire_answered(dibs__acquire *aq, const dibs__lease *ls,
                            dibs_status rc, const dibs__answer *ans,
                            dibsx_nsec now)
{
    assert(aq->state == DIBS__ACQUIRE_ASKED ||
           aq->state == DIBS__ACQUIRE_READY);
    aq->answer = rc;
    aq->place = rc == DIBS_BUSY && ans->queued ? ans->ahead + 1 : 0;
    aq->under_replicated = rc == DIBS_UNAVAIL && ans->under_replicated;
    aq->contended = aq->contended || rc == DIBS_BUSY;
    aq->reached = aq->reached || rc == DIBS_OK || rc == DIBS_UNKNOWN ||
                  (rc == DIBS_BUSY && ans->queued);
    if (ls->state == DIBS__LEASE_FREE && waits_without_queue(aq, rc)) {
        wait_without_queue(aq, ls, now);
    } else if (ls->state == DIBS__LEASE_FREE && is_too_late(aq, rc)) {
        ask_anew(aq, ls, now);
    } else if (ls->state == DIBS__LEASE_FREE) {
        leave_store(aq, ls, rc, now);
    } else {
        look_at_lease(aq, ls, now);
        if (aq->state == DIBS__ACQUIRE_READY && ls->state == DIBS__LEASE_QUEUED)
            wait_for_notice(aq, ans, now);
        else if (aq->state == DIBS__ACQUIRE_READY && is_spent(aq, rc))
            leave_store(aq, ls, DIBS_OK, now);
        else if (aq->state == DIBS__ACQUIRE_READY && rc != DIBS_OK)
            back_off(aq, BACKOFF_CAP_MS, now);
        if (aq->wake_at > aq->until)
            aq->wake_at = aq->until;
    }
    dibs__acquire_check(aq, ls);
}

void dibs__acquire_left(dibs__acquire *aq, const dibs__lease *ls,
                        dibs_status rc, dibsx_nsec now)
{
    assert(aq->state == DIBS__ACQUIRE_LEAVING);
    assert(ls->state == DIBS__LEASE_FREE);
    if (aq->reached && rc != DIBS_OK && rc != DIBS_LOST)
        aq->doubtful = true;
    aq->reached = false;
    if (aq->rc == DIBS_OK && aq->asked && aq->terms.asks_again)
        back_off_until(aq, AGAIN_CAP_MS, now);
    else if (aq->rc == DIBS_OK)
        aq->state = DIBS__ACQUIRE_READY;
    else
        end_try(aq, aq->rc, now);
    dibs__acquire_check(aq, ls);
}

void dibs__acquire_fell_back(dibs__acquire *aq, dibs_status rc, dibsx_nsec now)
{
    assert(aq->state == DIBS__ACQUIRE_FALLING_BACK);
    aq->on_fallback = true;
    if (rc == DIBS_OK) {
        aq->fell_back = true;
        ask_first(aq);
    } else {
        end_try(aq, rc, now);
    }
}

bool dibs__acquire_waits(const dibs__acquire *aq, dibsx_nsec now)
{
    return !aq->cancelled && (aq->terms.retries > 0 ||
                              (aq->terms.wait_ms != 0 && now < aq->until));
}

dibsx_nsec dibs__acquire_ask_until(const dibs__acquire *aq, dibsx_nsec limit,
                                   dibsx_nsec now)
{
    dibsx_nsec chance = dibsx_after_ms(now, CHANCE_MS);

    if (aq->terms.wait_ms == 0 || aq->until >= limit)
        return limit;
    return aq->until > chance ? aq->until : chance;
}

dibs_status dibs__acquire_late(const char *name, dibs_error *err)
{
    dibs_error last = {0};

    if (err)
        last = *err;
    if (last.status == DIBS_BUSY && last.message[0])
        return dibsx_fail(err, DIBS_TIMEOUT, "not granted in time: %s",
                          last.message);
    return dibsx_fail(err, DIBS_TIMEOUT, "%s was not granted in time", name);
}

void dibs__acquire_explain(const dibs__acquire *aq, const char *name,
                           dibs_error *err)
{
    /* The message of the store names the holder, if the store can. */
    bool said = err->status == aq->rc && err->message[0];

    assert(aq->state == DIBS__ACQUIRE_OVER);
    if (aq->rc == DIBS_CANCELLED)
        (void)dibsx_fail(err, aq->rc, "the wait for %s was cancelled", name);
    else if (aq->rc == DIBS_TIMEOUT)
        (void)dibs__acquire_late(name, err);
    else if (aq->rc == DIBS_BUSY && !said)
        (void)dibsx_fail(err, aq->rc, "%s is held by another owner", name);
    else if (aq->rc == DIBS_UNKNOWN && !said)
        (void)dibsx_unanswered(err);
}

/* The store has no entry of the owner. */
static bool has_nothing(const dibs__acquire *aq)
{
    return aq->state == DIBS__ACQUIRE_FALLING_BACK ||
           aq->state == DIBS__ACQUIRE_PAUSING ||
           (aq->state == DIBS__ACQUIRE_OVER && aq->rc != DIBS_OK);
}

void dibs__acquire_check(const dibs__acquire *aq, const dibs__lease *ls)
{
    bool queued = aq->state == DIBS__ACQUIRE_WAITING ||
                  aq->state == DIBS__ACQUIRE_BACKING;
    bool held = ls->state == DIBS__LEASE_HELD ||
                ls->state == DIBS__LEASE_SUSPECT ||
                ls->state == DIBS__LEASE_LOST;
    bool nothing = has_nothing(aq);
    bool denied = aq->state == DIBS__ACQUIRE_OVER && aq->rc == DIBS_UNAVAIL;

    assert(aq->state != DIBS__ACQUIRE_ASKED || ls->asking); /* (1) */
    assert(aq->state != DIBS__ACQUIRE_OVER || aq->rc != DIBS_OK ||
           held);                                      /* (2) */
    assert(!nothing || ls->state == DIBS__LEASE_FREE); /* (3) */
    assert(!queued || aq->wake_at <= aq->until);       /* (4) */
    assert(!queued || aq->asked);                      /* (5) */
    assert(!aq->on_fallback || aq->terms.fallback);    /* (6) */
    assert(!denied || !aq->doubtful);                  /* (7) */
    (void)queued;
    (void)held;
    (void)nothing;
    (void)denied;
}
