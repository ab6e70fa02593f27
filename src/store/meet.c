/* meet.c - the roster rule of meet.h. Pure. */
/* SPDX-License-Identifier: MIT */
#include "store/meet.h"
#include "store/lease_args.h"
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t draw_number(dibs__roster *ro)
{
    uint64_t wall_us = (uint64_t)ro->now_wall_us;

    ro->watermark = ro->watermark + 1 > wall_us ? ro->watermark + 1 : wall_us;
    return ro->watermark;
}

static int64_t after_ms(int64_t now_us, int64_t span_ms)
{
    int64_t span_us, until_us;

    if (__builtin_mul_overflow(span_ms, (int64_t)1000, &span_us) ||
        __builtin_add_overflow(now_us, span_us, &until_us))
        return INT64_MAX;
    return until_us;
}

/* Begins the next generation, and tells that this one opened or broke. */
static void next_generation(dibs__roster *ro, bool opened)
{
    dibs__meet_news *news = &ro->news[ro->news_count++];

    assert(ro->news_count <= 2);
    news->opened = opened;
    news->gen = ro->head.gen;
    if (!opened) {
        memmove(ro->broken + 1, ro->broken,
                sizeof(ro->broken) - sizeof(ro->broken[0]));
        ro->broken[0] = ro->head.gen;
        if (ro->broken_count < DIBS__BROKEN_KEPT)
            ro->broken_count++;
    }
    ro->head.gen = draw_number(ro);
    ro->head.here = 0;
    ro->changed = true;
}

/* No seat outlives the roster. It is put off rarely, so that few steps write. */
static void keep_roster(dibs__roster *ro, int64_t ttl_ms)
{
    if (ro->kept_until_us >= after_ms(ro->now_us, 2 * ttl_ms))
        return;
    ro->kept_until_us = after_ms(ro->now_us, 4 * ttl_ms);
    ro->changed = true;
}

/* Makes the roster what a step needs; `need` 0 of a group. */
static void
found_roster(dibs__roster *ro, dibs__roster_kind kind, uint32_t need)
{
    if (ro->head.gen == 0 || kind == DIBS__ROSTER_LATCH)
        ro->head.gen = draw_number(ro);
    ro->head.kind = kind;
    ro->head.need = need;
    ro->head.here = 0;
    ro->kept_until_us = 0;
    ro->changed = true;
}

bool dibs__meet_begin(dibs__roster *ro, const dibs__meet *item, const char *run)
{
    bool strict = (item->flags & DIBS__MEET_STRICT) || ro->run[0];

    ro->changed = ro->forgets = false;
    ro->news_count = 0;
    if (ro->head.gen != 0 && ro->head.kind == DIBS__ROSTER_LATCH &&
        ro->kept_until_us <= ro->now_wall_us) {
        memset(&ro->head, 0, sizeof(ro->head));
        ro->forgets = ro->changed = true;
    }
    if (!strict || strcmp(ro->run, run) == 0)
        return false;
    snprintf(ro->run, sizeof(ro->run), "%s", run);
    ro->changed = ro->head.gen != 0;
    return ro->seats > 0;
}

void dibs__meet_ended(dibs__roster *ro, uint32_t ended, uint32_t used)
{
    if (ended == 0)
        return;
    ro->seats -= ended < ro->seats ? ended : ro->seats;
    ro->changed = true;
    if (used > 0 && ro->head.here > 0)
        next_generation(ro, false);
}

/* Answers what has become of a generation in which a call was counted. */
static void
answer_outcome(const dibs__roster *ro, uint64_t gen, dibs__meet *item)
{
    item->number = gen;
    item->rc = gen == ro->head.gen ? DIBS_BUSY : DIBS_OK;
    if (ro->broken_count == DIBS__BROKEN_KEPT &&
        gen < ro->broken[DIBS__BROKEN_KEPT - 1])
        item->rc = DIBS_LOST;
    for (uint32_t i = 0; i < ro->broken_count; i++)
        if (ro->broken[i] == gen)
            item->rc = DIBS_STALE;
}

static bool is_late(const dibs__roster *ro, const dibs__meet *item)
{
    return item->by_us > 0 && ro->now_us > item->by_us;
}

static dibs_status
take_seat(dibs__roster *ro, dibs__seat *seat, dibs__meet *item)
{
    bool fixed = item->flags & DIBS__MEET_FIXED;
    dibs__roster_kind kind = fixed ? DIBS__ROSTER_BARRIER : DIBS__ROSTER_GROUP;
    uint32_t need = fixed ? item->need : 0;
    int64_t first_ms = item->ttl_ms < DIBS__UNUSED_SEAT_MS
                           ? item->ttl_ms
                           : DIBS__UNUSED_SEAT_MS;

    if (is_late(ro, item))
        return DIBS_TIMEOUT;
    if (ro->head.gen == 0 ||
        (ro->seats == 0 && ro->head.kind != DIBS__ROSTER_LATCH &&
         (ro->head.kind != kind || ro->head.need != need)))
        found_roster(ro, kind, need);
    if (ro->head.kind != kind || ro->head.need != need)
        return DIBS_MISMATCH;
    if (seat->mark == DIBS__SEAT_NONE) {
        if (fixed && ro->seats >= need)
            return DIBS_BUSY;
        seat->mark = DIBS__SEAT_PUT;
        seat->kind = DIBS__SEAT_NEW;
        seat->fence = seat->rec = draw_number(ro);
        seat->from = 0;
        seat->counts_us = after_ms(ro->now_us, item->settle_ms);
        seat->until_us = after_ms(ro->now_us, first_ms);
        snprintf(seat->who, sizeof(seat->who), "%s",
                 item->who ? item->who : "");
        ro->seats++;
        ro->changed = true;
        keep_roster(ro, item->ttl_ms);
    }
    item->number = seat->fence;
    return DIBS_OK;
}

static dibs_status
count_id(dibs__roster *ro, dibs__seat *seat, dibs__meet *item)
{
    if (ro->head.gen == 0 ||
        (ro->seats == 0 && ro->head.kind != DIBS__ROSTER_LATCH)) {
        if (item->after != 0)
            return DIBS_STALE;
        found_roster(ro, DIBS__ROSTER_LATCH, item->need);
    }
    if (ro->head.kind != DIBS__ROSTER_LATCH || ro->head.need != item->need)
        return DIBS_MISMATCH;
    item->number = ro->head.gen;
    if (item->after != 0 && item->after != ro->head.gen)
        return DIBS_STALE;
    if (ro->head.here >= ro->head.need)
        return DIBS_OK;
    if (seat->mark != DIBS__SEAT_NONE)
        return DIBS_BUSY;
    memset(seat, 0, sizeof(*seat));
    seat->mark = DIBS__SEAT_PUT;
    seat->kind = DIBS__SEAT_COUNTED;
    seat->rec = ro->head.gen;
    seat->until_us = INT64_MAX;
    ro->kept_until_us = after_ms(ro->now_wall_us, item->ttl_ms);
    ro->changed = true;
    if (++ro->head.here < ro->head.need)
        return DIBS_BUSY;
    ro->news[ro->news_count].opened = true;
    ro->news[ro->news_count++].gen = ro->head.gen;
    return DIBS_OK;
}

static dibs_status look_at(const dibs__roster *ro, const dibs__meet *item)
{
    const dibs__roster_head *head = &ro->head;

    if (head->gen == 0)
        return DIBS_NOTFOUND;
    if (head->need != 0 && item->need != 0 && head->need != item->need)
        return DIBS_MISMATCH;
    return head->kind == DIBS__ROSTER_LATCH && head->here < head->need
               ? DIBS_BUSY
               : DIBS_OK;
}

static dibs_status reset_latch(dibs__roster *ro, dibs__meet *item)
{
    if (ro->head.gen == 0)
        return DIBS_NOTFOUND;
    if (ro->head.kind != DIBS__ROSTER_LATCH)
        return DIBS_MISMATCH;
    ro->forgets = true;
    found_roster(ro, DIBS__ROSTER_LATCH, ro->head.need);
    ro->kept_until_us = after_ms(ro->now_wall_us, item->ttl_ms);
    item->number = ro->head.gen;
    return DIBS_OK;
}

static void
leave_seat(dibs__roster *ro, dibs__seat *seat, const dibs__meet *item)
{
    bool here = seat->kind == DIBS__SEAT_ARRIVED && seat->rec == ro->head.gen;
    bool quiet = (item->flags & DIBS__MEET_QUIET) && !here;

    seat->mark = DIBS__SEAT_GONE;
    dibs__meet_ended(ro, 1, seat->kind != DIBS__SEAT_NEW && !quiet);
}

/* The call before passed an opening that the store has lost since: its arrival is
 * still there and gathers. */
static bool passed_what_was_lost(const dibs__roster *ro, const dibs__seat *seat,
                                 const dibs__meet *item)
{
    return seat->kind == DIBS__SEAT_ARRIVED && seat->rec == item->after &&
           seat->rec == ro->head.gen;
}

static dibs_status arrive(dibs__roster *ro, dibs__seat *seat, dibs__meet *item)
{
    if (passed_what_was_lost(ro, seat, item))
        return DIBS_LOST;
    if (seat->rec == item->after) {
        seat->from = item->after;
        seat->rec = ro->head.gen;
        seat->kind = DIBS__SEAT_ARRIVED;
        ro->changed = true;
        if (++ro->head.here >= ro->head.need)
            next_generation(ro, true);
    }
    if (seat->from != item->after)
        return DIBS_LOST;
    if (seat->kind == DIBS__SEAT_IDLE) {
        item->number = seat->rec;
        return DIBS_TIMEOUT;
    }
    answer_outcome(ro, seat->rec, item);
    return item->rc;
}

static dibs_status
withdraw(dibs__roster *ro, dibs__seat *seat, dibs__meet *item)
{
    bool begun = seat->rec != item->after;

    if (passed_what_was_lost(ro, seat, item) ||
        (begun && seat->from != item->after))
        return DIBS_LOST;
    item->number = seat->rec;
    if (begun && seat->kind == DIBS__SEAT_IDLE)
        return DIBS_TIMEOUT;
    if (begun && seat->rec != ro->head.gen) {
        answer_outcome(ro, seat->rec, item);
        return item->rc;
    }
    if (begun) {
        if (item->flags & DIBS__MEET_BREAK)
            next_generation(ro, false);
        else
            ro->head.here--;
        ro->changed = true;
    }
    seat->from = item->after;
    seat->kind = DIBS__SEAT_IDLE;
    seat->rec = item->number = draw_number(ro);
    return DIBS_TIMEOUT;
}

/* An item of a party that has a seat. */
static dibs_status
use_seat(dibs__roster *ro, dibs__seat *seat, dibs__meet *item)
{
    int64_t until_us = after_ms(ro->now_us, item->ttl_ms);

    if (item->verb == DIBS__KEEP && is_late(ro, item))
        return DIBS_TIMEOUT;
    if (seat->mark == DIBS__SEAT_NONE || seat->kind == DIBS__SEAT_COUNTED ||
        seat->fence != item->fence)
        return DIBS_LOST;
    if (ro->head.need != 0 && item->need != 0 && ro->head.need != item->need)
        return DIBS_MISMATCH;
    if (item->verb == DIBS__LEAVE) {
        leave_seat(ro, seat, item);
        return DIBS_OK;
    }
    if (item->verb != DIBS__KEEP && ro->head.kind != DIBS__ROSTER_BARRIER)
        return DIBS_MISMATCH;
    keep_roster(ro, item->ttl_ms);
    seat->mark = DIBS__SEAT_PUT;
    if (seat->until_us < until_us)
        seat->until_us = until_us;
    if (seat->kind == DIBS__SEAT_NEW)
        seat->kind = DIBS__SEAT_IDLE;
    if (item->verb == DIBS__KEEP)
        return DIBS_OK;
    return item->verb == DIBS__ARRIVE ? arrive(ro, seat, item)
                                      : withdraw(ro, seat, item);
}

bool dibs__meet_credible(const dibs__meet *item)
{
    return item->verb != DIBS__KEEP || item->left_ms <= DIBS__LEASE_MAX_MS;
}

void dibs__meet_apply(dibs__roster *ro, dibs__seat *seat, dibs__meet *item)
{
    item->number = 0;
    switch (item->verb) {
    case DIBS__SIT:
        item->rc = take_seat(ro, seat, item);
        break;
    case DIBS__COUNT:
        item->rc = count_id(ro, seat, item);
        break;
    case DIBS__LOOK:
        item->rc = look_at(ro, item);
        break;
    case DIBS__RESET:
        item->rc = reset_latch(ro, item);
        break;
    default:
        item->rc = use_seat(ro, seat, item);
    }
    if (item->number == 0)
        item->number = ro->head.gen;
    item->here = ro->head.here;
    item->live = ro->seats;
    item->parties = ro->head.need;
    item->left_ms = 0;
    item->clock_us = ro->now_us;
}

void dibs__meet_broken_write(const dibs__roster *ro,
                             char out[DIBS__BROKEN_TEXT])
{
    size_t len = 0;

    out[0] = '\0';
    for (uint32_t i = 0; i < ro->broken_count; i++)
        len += (size_t)snprintf(out + len, DIBS__BROKEN_TEXT - len,
                                "%s%" PRIu64, i > 0 ? " " : "", ro->broken[i]);
}

bool dibs__meet_broken_read(dibs__roster *ro, const char *text)
{
    ro->broken_count = 0;
    while (*text) {
        char *end;

        if (ro->broken_count == DIBS__BROKEN_KEPT || *text < '0' || *text > '9')
            return false;
        ro->broken[ro->broken_count++] = strtoull(text, &end, 10);
        text = *end == ' ' ? end + 1 : end;
    }
    return true;
}
