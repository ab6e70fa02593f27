/* lease.c - the lease machine: see the diagram and the invariants in lease.h. */
/* SPDX-License-Identifier: MIT */
#include "core/machine/lease.h"

#include <assert.h>
#include <dibs/lock.h>
#include <string.h>

/* A claim that has less than this left when its notice comes is confirmed with
 * the store before it is believed. */
#define CONFIRM_BELOW (500 * DIBSX_MS)

/* The slowest retry of a failed renewal. */
#define RETRY_MS 250

/* A renewal is sent no earlier than by this part of the time between two. */
#define SOON_PART 8

dibsx_nsec dibs__lease_drift(int64_t span_ms)
{
    return span_ms * DIBSX_MS / 100 + 2 * DIBSX_MS;
}

/* The remaining time that a store answered, cut to what is possible. */
static int64_t cut_span(int64_t left_ms, int64_t most_ms)
{
    if (left_ms < 0)
        return 0;
    return left_ms < most_ms ? left_ms : most_ms;
}

static dibsx_nsec valid_from(dibsx_nsec sent_at, int64_t span_ms)
{
    return dibsx_after_ms(sent_at, span_ms) - dibs__lease_drift(span_ms);
}

/* The end of validity of a whole lease of which the store has left_ms, at most
 * what was asked for, less the lock delay: others wait that out, the holder may
 * not use it. */
static dibsx_nsec
whole_from(const dibs__lease *ls, dibsx_nsec sent_at, int64_t left_ms)
{
    return valid_from(sent_at, cut_span(left_ms, dibs__lease_ask_ms(ls))) -
           ls->terms.delay_ms * DIBSX_MS;
}

/* Never later than a third of the ttl: two renewals may then fail, and others
 * take a holder that is later for one that is gone (monitor/stale.c). */
static int64_t renew_every_ms(const dibs__lease *ls)
{
    int64_t most_ms = ls->terms.ttl_ms / DIBS_RENEWALS_PER_TTL;
    int64_t asked_ms = ls->terms.renew_every_ms;
    bool sooner = asked_ms > 0 && asked_ms < most_ms;

    return sooner ? asked_ms : most_ms;
}

static dibsx_nsec renewal_after(const dibs__lease *ls, dibsx_nsec from_at)
{
    return dibsx_after_ms(from_at, renew_every_ms(ls));
}

/* A claim is renewed after a third of what is left of it: two renewals may then fail,
 * and a lease that is released before that costs none. If much of it has passed, it is
 * renewed at once. */
static dibsx_nsec claim_renewal(const dibs__lease *ls, dibsx_nsec now)
{
    dibsx_nsec left = ls->valid_until - now;
    dibsx_nsec usual_at = renewal_after(ls, now);
    dibsx_nsec third_at = now + left / DIBS_RENEWALS_PER_TTL;

    if (ls->terms.prompt || left < DIBS__CLAIM_MS * DIBSX_MS / 2)
        return now;
    return third_at < usual_at ? third_at : usual_at;
}

/* The first renewal: half way at the latest, if the answer took long or another
 * process had the lease before. */
static dibsx_nsec first_renewal(const dibs__lease *ls, dibsx_nsec now)
{
    dibsx_nsec usual_at = renewal_after(ls, now);
    dibsx_nsec half_at = now + (ls->valid_until - now) / 2;

    return half_at < usual_at ? half_at : usual_at;
}

static bool is_believed(const dibs__lease *ls)
{
    return ls->state == DIBS__LEASE_HELD || ls->state == DIBS__LEASE_SUSPECT;
}

void dibs__lease_begin(dibs__lease *ls, const char *owner,
                       const dibs__terms *terms)
{
    int64_t hold_max_ms = terms->hold_max_ms;

    assert(ls->state == DIBS__LEASE_FREE);
    *ls = (dibs__lease){.terms = *terms, .alone = ls->alone};
    memcpy(ls->owner, owner, DIBS_OWNER_SIZE);
    /* A span until the lease is held, when it becomes a moment. */
    ls->hold_until =
        hold_max_ms > 0 ? dibsx_after_ms(0, hold_max_ms) : DIBSX_NEVER;
    if (hold_max_ms > 0 && hold_max_ms < ls->terms.ttl_ms)
        ls->terms.ttl_ms = hold_max_ms;
    ls->tick_until = DIBSX_NEVER;
    ls->renew_at = DIBSX_NEVER;
    dibs__lease_check(ls);
}

int64_t dibs__lease_ask_ms(const dibs__lease *ls)
{
    return ls->terms.ttl_ms + ls->terms.delay_ms;
}

int64_t dibs__lease_most_ms(const dibs__lease *ls)
{
    int64_t ask_ms = dibs__lease_ask_ms(ls);

    return ask_ms > DIBS__CLAIM_MS ? ask_ms : DIBS__CLAIM_MS;
}

void dibs__lease_asked(dibs__lease *ls, dibsx_nsec now)
{
    assert(ls->state == DIBS__LEASE_FREE || ls->state == DIBS__LEASE_ASKING ||
           ls->state == DIBS__LEASE_QUEUED);
    ls->state = DIBS__LEASE_ASKING;
    ls->asking = true;
    ls->sent_at = now;
    if (ls->terms.confirm)
        ls->noticed_fence = 0; /* The notice caused this ask. */
    dibs__lease_check(ls);
}

static void become_held(dibs__lease *ls, uint64_t fence, dibsx_nsec valid_until,
                        bool claim, dibsx_nsec now)
{
    ls->state = DIBS__LEASE_HELD;
    ls->fence = fence;
    ls->held_at = now;
    ls->alone = !claim && ls->asked_at == 0;
    ls->claimed = claim;
    ls->valid_until = valid_until;
    if (__builtin_add_overflow(ls->hold_until, now, &ls->hold_until))
        ls->hold_until = DIBSX_NEVER;
    dibs__lease_ticked(ls, now);
    if (claim)
        ls->renew_at = claim_renewal(ls, now);
    else if (!ls->terms.manual)
        ls->renew_at = first_renewal(ls, now);
}

/* Believes a notice of a grant without an ask, if enough validity is left. */
static void consider_notice(dibs__lease *ls, uint64_t fence, dibsx_nsec now)
{
    dibsx_nsec valid_until = valid_from(ls->asked_at, DIBS__CLAIM_MS);

    if (!ls->terms.confirm && fence > ls->watermark &&
        valid_until - now >= CONFIRM_BELOW)
        become_held(ls, fence, valid_until, true, now);
}

void dibs__lease_answered(dibs__lease *ls, dibs_status rc,
                          const dibs__answer *ans, dibsx_nsec now)
{
    dibsx_nsec valid_until;

    assert(ls->state == DIBS__LEASE_ASKING);
    ls->asking = false;
    ls->alone = false;
    if (rc == DIBS_OK) {
        int64_t claim_ms = cut_span(ans->left_ms, DIBS__CLAIM_MS);

        valid_until = ans->claim ? valid_from(ls->sent_at, claim_ms)
                                 : whole_from(ls, ls->sent_at, ans->left_ms);
        if (valid_until > now && ans->fence != 0)
            become_held(ls, ans->fence, valid_until, ans->claim, now);
    } else if (rc == DIBS_BUSY && ans->queued) {
        ls->state = DIBS__LEASE_QUEUED;
        ls->watermark = ans->fence;
        ls->asked_at = ls->sent_at;
        consider_notice(ls, ls->noticed_fence, now);
    } else if (rc == DIBS_UNKNOWN) {
        ls->unanswered = true;
    } else if (rc != DIBS_UNAVAIL) {
        ls->state = DIBS__LEASE_FREE;
    }
    dibs__lease_check(ls);
}

bool dibs__lease_noticed(dibs__lease *ls, uint64_t fence, dibsx_nsec now)
{
    if (ls->state != DIBS__LEASE_QUEUED && ls->state != DIBS__LEASE_ASKING)
        return false;
    if (fence > ls->noticed_fence)
        ls->noticed_fence = fence;
    if (ls->state == DIBS__LEASE_ASKING || fence <= ls->watermark)
        return false;
    consider_notice(ls, fence, now);
    dibs__lease_check(ls);
    return true;
}

void dibs__lease_adopted(dibs__lease *ls, const char *owner, uint64_t fence,
                         dibsx_nsec sent_at, int64_t left_ms, dibsx_nsec now)
{
    assert(ls->state == DIBS__LEASE_FREE);
    memcpy(ls->owner, owner, DIBS_OWNER_SIZE);
    become_held(ls, fence, whole_from(ls, sent_at, left_ms), false, now);
    dibs__lease_check(ls);
}

static bool may_renew(const dibs__lease *ls)
{
    return is_believed(ls) && ls->in_flight == 0 && !ls->converting &&
           ls->renew_at < ls->hold_until && ls->renew_at < ls->tick_until;
}

dibs__lease_todo dibs__lease_due(dibs__lease *ls, dibsx_nsec now)
{
    if (is_believed(ls) && now >= ls->valid_until)
        ls->state = DIBS__LEASE_LOST;
    dibs__lease_check(ls);
    if (ls->state == DIBS__LEASE_LOST && !ls->announced) {
        ls->announced = true;
        return DIBS__LEASE_ANNOUNCE;
    }
    if (may_renew(ls) && now >= ls->renew_at)
        return DIBS__LEASE_RENEW;
    return DIBS__LEASE_NOTHING;
}

/* One that has failed keeps to its retries: a store that is away is not asked more
 * often. */
bool dibs__lease_due_soon(const dibs__lease *ls, dibsx_nsec now)
{
    dibsx_nsec soon = renew_every_ms(ls) * DIBSX_MS / SOON_PART;

    if (soon > DIBS__LEASE_SOON)
        soon = DIBS__LEASE_SOON;
    return ls->state == DIBS__LEASE_HELD && now < ls->valid_until &&
           may_renew(ls) && ls->renew_at <= now + soon;
}

dibsx_nsec dibs__lease_next(const dibs__lease *ls)
{
    if (ls->state == DIBS__LEASE_LOST)
        return ls->announced ? DIBSX_NEVER : 0;
    if (!is_believed(ls))
        return DIBSX_NEVER;
    if (may_renew(ls) && ls->renew_at < ls->valid_until)
        return ls->renew_at;
    return ls->valid_until;
}

void dibs__lease_renewing(dibs__lease *ls)
{
    assert(is_believed(ls));
    ls->in_flight++;
}

int64_t dibs__lease_renew_ms(const dibs__lease *ls, dibsx_nsec now)
{
    int64_t left_ms = dibsx_valid_ms(ls->hold_until, now);

    return (left_ms < ls->terms.ttl_ms ? left_ms : ls->terms.ttl_ms) +
           ls->terms.delay_ms;
}

/* A failed renewal leaves the old validity and is tried again soon. */
static void renewal_failed(dibs__lease *ls, dibs_status rc, dibsx_nsec now)
{
    int64_t retry_ms = ls->terms.ttl_ms / 10;

    if (rc == DIBS_UNKNOWN)
        ls->unanswered = true;
    ls->state = DIBS__LEASE_SUSPECT;
    ls->failures++;
    if (retry_ms > RETRY_MS)
        retry_ms = RETRY_MS;
    ls->renew_at = dibsx_after_ms(now, retry_ms > 0 ? retry_ms : 1);
}

void dibs__lease_renewed(dibs__lease *ls, dibsx_nsec sent_at, dibs_status rc,
                         int64_t left_ms, dibsx_nsec now)
{
    dibsx_nsec valid_until = whole_from(ls, sent_at, left_ms);

    if (ls->in_flight > 0)
        ls->in_flight--;
    if (!is_believed(ls))
        return;
    if (now >= ls->valid_until || rc == DIBS_LOST) {
        ls->state = DIBS__LEASE_LOST;
    } else if (rc == DIBS_OK) {
        ls->state = DIBS__LEASE_HELD;
        ls->failures = 0;
        ls->claimed = false;
        if (valid_until > ls->valid_until)
            ls->valid_until = valid_until;
        ls->renew_at =
            ls->terms.manual ? DIBSX_NEVER : renewal_after(ls, sent_at);
    } else {
        renewal_failed(ls, rc, now);
    }
    dibs__lease_check(ls);
}

void dibs__lease_renew_no_more(dibs__lease *ls, dibsx_nsec now)
{
    if (is_believed(ls) && ls->hold_until > now)
        ls->hold_until = now;
}

void dibs__lease_ticked(dibs__lease *ls, dibsx_nsec now)
{
    if (ls->terms.progress_ms > 0)
        ls->tick_until = dibsx_after_ms(now, ls->terms.progress_ms);
}

bool dibs__lease_converting(dibs__lease *ls)
{
    assert(is_believed(ls));
    ls->converting = ls->in_flight == 0;
    return ls->converting;
}

void dibs__lease_converted(dibs__lease *ls, dibsx_nsec sent_at, dibs_status rc,
                           const dibs__answer *ans, dibsx_nsec now)
{
    ls->converting = false;
    if (!is_believed(ls))
        return;
    if (now >= ls->valid_until || rc == DIBS_LOST) {
        ls->state = DIBS__LEASE_LOST;
    } else if (rc == DIBS_OK) {
        dibsx_nsec valid_until = whole_from(ls, sent_at, ans->left_ms);

        if (ans->fence > ls->fence)
            ls->fence = ans->fence;
        if (valid_until > ls->valid_until)
            ls->valid_until = valid_until;
    } else if (rc == DIBS_UNKNOWN) {
        ls->unanswered = true;
    }
    dibs__lease_check(ls);
}

void dibs__lease_doubt(dibs__lease *ls, dibsx_nsec now)
{
    if (is_believed(ls) && ls->renew_at > now)
        ls->renew_at = now;
}

bool dibs__lease_valid(const dibs__lease *ls, dibsx_nsec now)
{
    return is_believed(ls) && now < ls->valid_until;
}

bool dibs__lease_leave(dibs__lease *ls)
{
    bool unanswered = ls->unanswered || ls->in_flight > 0 || ls->asking;

    ls->state = DIBS__LEASE_FREE;
    ls->fence = 0;
    ls->announced = false;
    dibs__lease_check(ls);
    return unanswered;
}

void dibs__lease_check(const dibs__lease *ls)
{
    bool has_fence = is_believed(ls) || ls->state == DIBS__LEASE_LOST;

    assert((ls->fence != 0) == has_fence); /* (1) */
    assert(!is_believed(ls) || ls->held_at > 0);
    assert(ls->state == DIBS__LEASE_LOST || !ls->announced); /* (5) */
    assert(ls->state != DIBS__LEASE_QUEUED || ls->asked_at <= ls->sent_at);
    (void)has_fence;
}
