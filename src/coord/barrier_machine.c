/* barrier_machine.c - the machine of barrier_machine.h. */
/* SPDX-License-Identifier: MIT */
#include "coord/barrier_machine.h"
#include <assert.h>

enum { WITHDRAWALS = 2 };

void dibs__party_init(dibs__barrier_party *bp, uint32_t need, int64_t ttl_ms,
                      int64_t poll_ms, int64_t spread_ms, bool breaks)
{
    *bp = (dibs__barrier_party){.id_number = 1,
                                .need = need,
                                .ttl_ms = ttl_ms,
                                .poll_ms = poll_ms,
                                .spread_ms = spread_ms,
                                .breaks = breaks};
}

static void lose_seat(dibs__barrier_party *bp)
{
    bp->state = DIBS__PARTY_OUT;
    bp->id_number++;
    bp->fence = bp->after = 0;
}

static void end_call(dibs__barrier_party *bp, dibs_status rc)
{
    bp->calling = false;
    bp->rc = rc;
    bp->gen = bp->rung_gen = 0;
    bp->state = DIBS__PARTY_IN;
    if (rc == DIBS_OK)
        bp->passed = bp->after;
    if (rc == DIBS_LOST)
        lose_seat(bp);
}

void dibs__party_call(dibs__barrier_party *bp, dibsx_nsec until, dibsx_nsec now)
{
    assert(!bp->calling);
    bp->calling = true;
    bp->until = until;
    bp->wake_at = now;
    bp->gen = bp->rung_gen = 0;
    bp->full_at = 0;
    bp->silences = 0;
    bp->asked = bp->missed = false;
    if (bp->lost)
        end_call(bp, DIBS_LOST);
    bp->lost = false;
}

void dibs__party_cancel(dibs__barrier_party *bp, dibsx_nsec now)
{
    bp->asked = true;
    if (bp->calling && bp->until > now)
        bp->until = now;
}

static bool has_seat(const dibs__barrier_party *bp)
{
    return bp->state != DIBS__PARTY_OUT && bp->state != DIBS__PARTY_SITTING;
}

/* Ends a call, and does not use the seat again. */
static void drop_call(dibs__barrier_party *bp, dibs_status rc)
{
    end_call(bp, rc);
    if (rc != DIBS_LOST)
        lose_seat(bp);
}

/* Time is up: a call that has no seat is over at once, others withdraw. */
static void give_up(dibs__barrier_party *bp, dibsx_nsec now)
{
    if (!has_seat(bp)) {
        drop_call(bp, bp->full_at ? DIBS_BUSY : DIBS_TIMEOUT);
    } else if (bp->state != DIBS__PARTY_LEAVING) {
        bp->state = DIBS__PARTY_LEAVING;
        bp->wake_at = now;
    }
}

static void
fill_request(dibs__barrier_party *bp, dibs__meet_verb verb, dibs__meet *out)
{
    bp->flying = true;
    bp->sent = verb;
    out->verb = verb;
    out->fence = bp->fence;
    out->after = bp->after;
    out->need = bp->need;
    out->ttl_ms = bp->ttl_ms;
    out->flags = DIBS__MEET_FIXED;
    if (bp->breaks)
        out->flags |= DIBS__MEET_BREAK;
}

static dibs__party_todo send_for_call(dibs__barrier_party *bp, dibs__meet *out)
{
    if (!has_seat(bp)) {
        bp->state = DIBS__PARTY_SITTING;
        fill_request(bp, DIBS__SIT, out);
    } else if (bp->state == DIBS__PARTY_LEAVING) {
        fill_request(bp, DIBS__WITHDRAW, out);
    } else {
        bp->state = DIBS__PARTY_ASKING;
        fill_request(bp, DIBS__ARRIVE, out);
    }
    return DIBS__PARTY_SEND;
}

dibs__party_todo dibs__party_next(dibs__barrier_party *bp, dibsx_nsec now,
                                  dibs__meet *out, dibsx_nsec *until)
{
    *until = DIBSX_NEVER;
    if (bp->flying)
        return DIBS__PARTY_SLEEP;
    if (bp->calling && bp->asked && now >= bp->until)
        give_up(bp, now);
    if (bp->calling && now >= bp->wake_at)
        return send_for_call(bp, out);
    if (bp->calling) {
        *until = bp->wake_at < bp->until ? bp->wake_at : bp->until;
        return DIBS__PARTY_SLEEP;
    }
    return DIBS__PARTY_DONE;
}

/* See (7). */
static void
sat(dibs__barrier_party *bp, const dibs__meet *answer, dibsx_nsec now)
{
    if (answer->rc == DIBS_OK) {
        bp->fence = bp->after = answer->number;
        bp->state = DIBS__PARTY_ASKING;
        bp->wake_at = now;
    } else if (answer->rc != DIBS_BUSY) {
        drop_call(bp, answer->rc);
    } else if (bp->full_at == 0) {
        bp->full_at = now;
    } else if (now >= dibsx_after_ms(bp->full_at, bp->ttl_ms)) {
        drop_call(bp, DIBS_BUSY);
    }
}

/* The next poll comes when the first seat could have ended, if that is sooner. */
static void await_ring(dibs__barrier_party *bp, int64_t left_ms, dibsx_nsec now)
{
    dibsx_nsec at = dibsx_after_ms(now, left_ms + 1 + bp->spread_ms);

    bp->state = DIBS__PARTY_WAITING;
    if (left_ms > 0 && at < bp->wake_at)
        bp->wake_at = at;
    if (bp->missed)
        bp->wake_at = now;
}

static void
counted(dibs__barrier_party *bp, const dibs__meet *answer, dibsx_nsec now)
{
    switch (answer->rc) {
    case DIBS_BUSY:
        bp->gen = answer->number;
        if (bp->rung_gen == bp->gen) {
            bp->after = bp->gen;
            end_call(bp, bp->rung_opened ? DIBS_OK : DIBS_STALE);
        } else if (bp->state == DIBS__PARTY_ASKING) {
            await_ring(bp, answer->left_ms, now);
        }
        break;
    case DIBS_OK:
    case DIBS_STALE:
    case DIBS_TIMEOUT:
        bp->after = answer->number;
        end_call(bp, answer->rc);
        break;
    default:
        end_call(bp, answer->rc == DIBS_MISMATCH ? DIBS_MISMATCH : DIBS_LOST);
    }
}

/* See (8). */
static void hear_nothing(dibs__barrier_party *bp, dibsx_nsec now)
{
    if (bp->sent != DIBS__WITHDRAW)
        return;
    bp->wake_at = now;
    if (++bp->silences == WITHDRAWALS)
        drop_call(bp, DIBS_UNKNOWN);
}

void dibs__party_answered(dibs__barrier_party *bp, const dibs__meet *answer,
                          dibsx_nsec now)
{
    bp->flying = false;
    bp->wake_at = dibsx_after_ms(now, bp->poll_ms);
    if (!answer || bp->sent != DIBS__SIT || answer->rc != DIBS_OK)
        bp->asked = true;
    if (!answer)
        hear_nothing(bp, now);
    else if (bp->sent == DIBS__SIT)
        sat(bp, answer, now);
    else
        counted(bp, answer, now);
    bp->missed = false;
}

void dibs__party_rung(dibs__barrier_party *bp, uint64_t gen, bool opened)
{
    if (!bp->calling)
        return;
    if (bp->state == DIBS__PARTY_WAITING && !bp->flying && gen == bp->gen) {
        bp->after = gen;
        end_call(bp, opened ? DIBS_OK : DIBS_STALE);
        return;
    }
    bp->rung_gen = gen;
    bp->rung_opened = opened;
}

void dibs__party_missed(dibs__barrier_party *bp, dibsx_nsec at)
{
    if (bp->flying)
        bp->missed = true;
    else if (bp->calling && bp->state == DIBS__PARTY_WAITING &&
             at < bp->wake_at)
        bp->wake_at = at;
}

void dibs__party_unseated(dibs__barrier_party *bp, uint64_t fence,
                          dibsx_nsec now)
{
    if (fence != bp->fence)
        return;
    if (bp->calling) {
        dibs__party_missed(bp, now);
        return;
    }
    lose_seat(bp);
    bp->lost = true;
}
