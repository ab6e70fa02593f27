/* reader_machine.c - a reader of one topic, without I/O; see reader_machine.h. */
/* SPDX-License-Identifier: MIT */
#include "coord/reader_machine.h"
#include "store/topic.h"

enum { DENIED_MS = 60000 }; /* until the next ear after a refusal */

void dibs__reader_init(dibs__reader *r, dibs__reader_from from, uint64_t number)
{
    *r = (dibs__reader){.placed = from != DIBS__FROM_END,
                        .anchored = from == DIBS__FROM_POSITION,
                        .due = true};
    if (from == DIBS__FROM_POSITION)
        r->at = number;
    if (from == DIBS__FROM_TIME && number > 0) {
        r->since = number;
        r->at = number - 1;
    }
}

/* A reason to read that comes after this is a new one. */
static dibs__reader_todo begin_read(dibs__reader *r)
{
    r->due = false;
    return r->placed ? DIBS__READER_READ : DIBS__READER_BOUNDS;
}

dibs__reader_todo
dibs__reader_next(dibs__reader *r, dibsx_nsec now, dibsx_nsec *until)
{
    *until = now;
    if (r->ear_at <= now) {
        r->missed = false;
        r->ear_at = DIBSX_NEVER;
        return DIBS__READER_EAR;
    }
    if (r->due)
        return begin_read(r);
    if (r->look_at <= now)
        return DIBS__READER_BOUNDS;
    *until = r->look_at < r->ear_at ? r->look_at : r->ear_at;
    return DIBS__READER_SLEEP;
}

bool dibs__reader_told(dibs__reader *r, uint64_t position)
{
    if (r->placed && position <= r->at)
        return false;
    r->told = position;
    r->due = true;
    return true;
}

void dibs__reader_missed(dibs__reader *r)
{
    r->missed = true;
    r->eared = false;
    r->due = true;
    r->ear_at = 0;
}

void dibs__reader_eared(dibs__reader *r, dibsx_nsec sent_at, dibsx_nsec now,
                        dibs_status rc)
{
    bool heard = r->eared;

    r->eared = rc == DIBS_OK && !r->missed;
    if (r->missed) {
        r->ear_at = 0;
        return;
    }
    /* Appends before this ear came without a tell. */
    r->due = r->due || (r->eared && !heard);
    if (rc == DIBS_OK)
        r->ear_at = dibsx_after_ms(sent_at, DIBS__READER_EAR_MS);
    else
        r->ear_at = dibsx_after_ms(now, rc == DIBS_UNAVAIL || rc == DIBS_UNKNOWN
                                            ? DIBS__READER_LOOK_MS
                                            : DENIED_MS);
}

static dibs__reader_news note_range(dibs__reader *r, dibs__reader_news news,
                                    uint64_t from, uint64_t to, uint64_t at)
{
    r->gap_from = from;
    r->gap_to = to;
    r->at = at;
    r->anchored = true;
    return news;
}

dibs__reader_news
dibs__reader_bounded(dibs__reader *r, dibsx_nsec now, dibs_status rc,
                     const dibs__log_span *span)
{
    r->look_at = dibsx_after_ms(now, DIBS__READER_LOOK_MS);
    if (rc != DIBS_OK)
        return DIBS__READER_NOTHING;
    if (!r->placed) {
        r->placed = r->anchored = true;
        r->at = span->last;
        return DIBS__READER_NOTHING;
    }
    if (r->anchored && span->last < r->at) {
        r->bound = 0;
        return note_range(r, DIBS__READER_FORK, span->last, r->at, span->last);
    }
    r->bound = span->last;
    r->due = r->due || span->last > r->at;
    return DIBS__READER_NOTHING;
}

dibs__reader_news dibs__reader_read(dibs__reader *r, dibsx_nsec now,
                                    dibs_status rc, size_t count, bool more)
{
    uint64_t bound = r->bound;

    r->bound = 0;
    if (rc != DIBS_OK) {
        r->look_at = dibsx_after_ms(now, DIBS__READER_LOOK_MS);
        return DIBS__READER_NOTHING;
    }
    r->due = r->due || more;
    /* The store told of an entry that is not there: it was trimmed, or lost. */
    if (count == 0 && r->told > r->at)
        r->look_at = now;
    r->told = 0;
    if (count > 0 || bound <= r->at)
        return DIBS__READER_NOTHING;
    /* A start at the oldest entry has missed nothing yet. */
    if (!r->anchored && r->since == 0) {
        (void)note_range(r, DIBS__READER_NOTHING, 0, 0, bound);
        return DIBS__READER_NOTHING;
    }
    return note_range(r, DIBS__READER_GAP, r->at, bound, bound);
}

/* The position before an entry of an older version is not known. */
static uint64_t prior_of(const dibs__reader *r, const dibs__log_entry *entry)
{
    bool known = entry->prior != DIBS__PRIOR_UNKNOWN;

    if (known && r->anchored)
        return entry->prior;
    if (known && r->since > 0 && entry->prior > r->at)
        return entry->prior;
    return r->at;
}

dibs__reader_news
dibs__reader_show(dibs__reader *r, const dibs__log_entry *entry)
{
    uint64_t prior = prior_of(r, entry);

    if (prior > r->at)
        return note_range(r, DIBS__READER_GAP, r->at, prior, prior);
    if (prior < r->at)
        return note_range(r, DIBS__READER_FORK, prior, r->at, prior);
    r->at = entry->position;
    if (!r->anchored && (uint64_t)entry->store_wall_us < r->since)
        return DIBS__READER_NOTHING;
    r->anchored = true;
    return DIBS__READER_EVENT;
}
