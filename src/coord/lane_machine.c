/* lane_machine.c - a consumer of a queue; see lane_machine.h. Pure. */
/* SPDX-License-Identifier: MIT */
#include "coord/lane_machine.h"
#include <assert.h>

enum { DRIFT_PART = 100, DRIFT_MS = 2, TEND_PART = 3, RETRY_PART = 6 };

/* So long a lane is valid for certain that lives for span_ms from sent_at or later. */
static dibsx_nsec valid_from(dibsx_nsec sent_at, int64_t span_ms)
{
    return dibsx_after_ms(sent_at, span_ms - span_ms / DRIFT_PART - DRIFT_MS);
}

void dibs__consumer_init(dibs__consumer *c, int64_t ttl_ms)
{
    *c = (dibs__consumer){.ttl_ms = ttl_ms,
                          .place_ms = ttl_ms < DIBS__LANE_PLACE_MS
                                          ? ttl_ms
                                          : DIBS__LANE_PLACE_MS};
}

void dibs__consumer_open(dibs__consumer *c, uint64_t lane)
{
    assert(c->state != DIBS__LANE_OPEN && c->count == 0);
    c->state = DIBS__LANE_OPEN;
    c->lane = lane;
    c->number = c->stamp = c->top = 0;
    c->asking = c->doubt = false;
    c->valid_until = DIBSX_NEVER;
    c->tends_since = DIBSX_NEVER;
    c->renewed_at = c->tended_at = 0;
}

bool dibs__consumer_is_valid(const dibs__consumer *c, dibsx_nsec now)
{
    return c->state == DIBS__LANE_OPEN && c->valid_until > now;
}

bool dibs__consumer_believes(const dibs__consumer *c,
                             const dibs__lane_item *item, dibsx_nsec now)
{
    return dibs__consumer_is_valid(c, now) && !item->settling;
}

void dibs__consumer_end(dibs__consumer *c)
{
    c->state = DIBS__LANE_ENDED;
    c->asking = c->doubt = false;
    c->valid_until = 0;
}

void dibs__consumer_look(dibs__consumer *c, dibsx_nsec now)
{
    if (c->state == DIBS__LANE_OPEN && c->valid_until <= now)
        dibs__consumer_end(c);
}

void dibs__consumer_ask(dibs__consumer *c, bool places, dibsx_nsec now,
                        dibs__lane_ask *out)
{
    dibsx_nsec least;

    assert(c->state == DIBS__LANE_OPEN && !c->asking);
    c->number++;
    c->asking = true;
    c->doubt = false;
    c->span_ms = c->count == 0 && places ? c->place_ms : c->ttl_ms;
    *out = (dibs__lane_ask){.lane = c->lane,
                            .number = c->number,
                            .seen = c->stamp,
                            .span_ms = c->span_ms,
                            .opens = c->number == 1};
    if (c->count > 0)
        return;
    c->tends_since = DIBSX_NEVER;
    least = valid_from(now, c->span_ms);
    if (!out->opens && c->valid_until > least)
        c->valid_until = least;
}

void dibs__consumer_settle(dibs__consumer *c, dibs__lane_item *item)
{
    assert(c->asking && c->number > 1 && !item->settling);
    (void)c;
    item->settling = true;
}

size_t dibs__consumer_heard(dibs__consumer *c, dibs__token *out, size_t max)
{
    size_t count = 0;

    for (dibs__lane_item *item = c->first; item && count < max;
         item = item->next)
        if (item->rung) {
            item->rung = false;
            out[count++] = item->token;
        }
    return count;
}

void dibs__consumer_drop(dibs__consumer *c, dibs__lane_item *item)
{
    dibs__lane_item **at = &c->first;

    while (*at && *at != item)
        at = &(*at)->next;
    if (!*at)
        return;
    *at = item->next;
    c->count--;
}

static void unsettle_items(dibs__consumer *c)
{
    for (dibs__lane_item *item = c->first; item; item = item->next)
        item->settling = false;
}

static void drop_settled(dibs__consumer *c)
{
    dibs__lane_item **at = &c->first;

    while (*at)
        if ((*at)->settling) {
            *at = (*at)->next;
            c->count--;
        } else {
            at = &(*at)->next;
        }
}

bool dibs__asked_doubt(dibs_status rc)
{
    return rc == DIBS_UNKNOWN || rc == DIBS_NOMEM || rc == DIBS_INTERNAL;
}

/* A try that cannot have left, or that has had no answer. */
static dibs__asked fail_try(dibs__consumer *c, dibs_status rc)
{
    c->doubt = c->doubt || dibs__asked_doubt(rc);
    if (c->doubt)
        return DIBS__ASKED_AGAIN;
    c->asking = false;
    c->number--;
    unsettle_items(c);
    return DIBS__ASKED_NOT;
}

dibs__asked
dibs__consumer_answered(dibs__consumer *c, dibsx_nsec sent_at, dibsx_nsec now,
                        dibs_status rc, uint64_t stamp)
{
    dibsx_nsec until = valid_from(sent_at, c->span_ms);
    bool doubt = c->doubt;

    if (c->state != DIBS__LANE_OPEN || !c->asking)
        return DIBS__ASKED_UNSURE;
    if (rc == DIBS_LOST) {
        dibs__consumer_end(c);
        return doubt ? DIBS__ASKED_UNSURE : DIBS__ASKED_LOST;
    }
    if (rc != DIBS_OK && c->valid_until > now)
        return fail_try(c, rc);
    if (rc != DIBS_OK) {
        doubt = doubt || dibs__asked_doubt(rc);
        dibs__consumer_end(c);
        return doubt ? DIBS__ASKED_UNSURE : DIBS__ASKED_LOST;
    }
    drop_settled(c);
    c->asking = c->doubt = false;
    c->stamp = stamp;
    c->renewed_at = sent_at;
    if (c->tends_since == DIBSX_NEVER)
        c->tends_since = now;
    if (c->valid_until > now &&
        (c->valid_until == DIBSX_NEVER || c->valid_until < until))
        c->valid_until = until;
    dibs__consumer_look(c, now);
    return DIBS__ASKED_DONE;
}

bool dibs__consumer_take(dibs__consumer *c, dibs__lane_item *item,
                         dibsx_nsec now, dibs__lane_item **older)
{
    *older = NULL;
    if (!dibs__consumer_is_valid(c, now))
        return false;
    for (dibs__lane_item *at = c->first; at; at = at->next) {
        if (at->token.id != item->token.id || at->settling)
            continue;
        if (at->token.fence >= item->token.fence)
            return false;
        *older = at;
        break;
    }
    if (*older)
        dibs__consumer_drop(c, *older);
    item->settling = item->rung = false;
    item->next = c->first;
    c->first = item;
    c->count++;
    if (item->token.fence > c->top)
        c->top = item->token.fence;
    return true;
}

bool dibs__consumer_rung(dibs__consumer *c, dibs__lane_item *item,
                         dibsx_nsec now, dibs__lane_item **older)
{
    *older = NULL;
    if (c->number < 2 || item->token.fence <= c->top ||
        !dibs__consumer_take(c, item, now, older))
        return false;
    item->rung = true;
    return true;
}

dibsx_nsec dibs__consumer_tend_at(const dibs__consumer *c)
{
    dibsx_nsec span = c->place_ms * DIBSX_MS, due, soonest;

    if (c->state != DIBS__LANE_OPEN || c->count == 0 || c->asking)
        return DIBSX_NEVER;
    due = dibsx_after_ms(c->renewed_at, c->ttl_ms / TEND_PART);
    if (c->valid_until - span * (TEND_PART - 1) / TEND_PART < due)
        due = c->valid_until - span * (TEND_PART - 1) / TEND_PART;
    soonest = c->tended_at + span / RETRY_PART;
    return due > soonest ? due : soonest;
}

void dibs__consumer_tend(dibs__consumer *c, dibsx_nsec now)
{
    c->tended_at = now;
}

void dibs__consumer_tended(dibs__consumer *c, dibsx_nsec sent_at,
                           dibsx_nsec now, dibs_status rc)
{
    dibsx_nsec until = valid_from(sent_at, c->ttl_ms);

    dibs__consumer_look(c, now);
    if (c->state != DIBS__LANE_OPEN)
        return;
    if (rc == DIBS_LOST)
        dibs__consumer_end(c);
    if (rc != DIBS_OK || sent_at <= c->tends_since || c->valid_until >= until)
        return;
    c->valid_until = until;
    c->renewed_at = sent_at;
}

void dibs__consumer_check(const dibs__consumer *c)
{
    size_t count = 0, settling = 0;

    for (const dibs__lane_item *item = c->first; item; item = item->next) {
        count++;
        settling += item->settling;
        assert(item->token.fence <= c->top);
        for (const dibs__lane_item *other = item->next; other;
             other = other->next)
            assert(other->token.id != item->token.id || other->settling ||
                   item->settling); /* (5) */
    }
    assert(count == c->count);
    assert(!c->asking || c->state == DIBS__LANE_OPEN); /* (1), (3) */
    assert(!c->doubt || c->asking);                    /* (1) */
    assert(c->state != DIBS__LANE_OPEN || settling == 0 || c->asking); /* (4) */
    assert(c->state == DIBS__LANE_OPEN || c->valid_until == 0);        /* (3) */
    assert(c->number > (uint64_t)c->asking || count == 0);             /* (7) */
    (void)count;
    (void)settling;
}
