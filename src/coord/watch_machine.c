/* watch_machine.c - a watch of one value, without I/O; see watch_machine.h. */
/* SPDX-License-Identifier: MIT */
#include "coord/watch_machine.h"
#include "base/fail.h"
#include "store/topic.h"
#include <string.h>

enum { DENIED_MS = 60000 }; /* until the next ear after a refusal */

void dibs__watch_init(dibs__watch *w)
{
    *w = (dibs__watch){.fresh = true,
                       .due = true,
                       .expires_at = DIBSX_NEVER,
                       .lives_until = DIBSX_NEVER,
                       .look_at = DIBSX_NEVER};
}

static dibsx_nsec earlier(dibsx_nsec a, dibsx_nsec b)
{
    return a < b ? a : b;
}

/* A reason to look that comes after this is a new one. */
static dibs__watch_todo begin_look(dibs__watch *w, bool fetch)
{
    w->due = false;
    w->other = false;
    w->look_at = DIBSX_NEVER;
    return fetch ? DIBS__WATCH_FETCH : DIBS__WATCH_LOOK;
}

/* A look that is due by the clock comes before an ear, which may take a while. */
dibs__watch_todo
dibs__watch_next(dibs__watch *w, dibsx_nsec now, dibsx_nsec *until)
{
    dibsx_nsec look_at = earlier(w->look_at, w->expires_at);

    *until = now;
    if (w->other)
        return begin_look(w, true);
    if (look_at <= now)
        return begin_look(w, w->fresh);
    if (w->ear_at <= now) {
        w->missed = false;
        return DIBS__WATCH_EAR;
    }
    if (w->due)
        return begin_look(w, w->fresh || w->tell_count > 0);
    *until = earlier(look_at, w->ear_at);
    return DIBS__WATCH_SLEEP;
}

/* A tell of what is known, or of something older, comes late. That of a delete may
 * be about a value that is on its way. */
static bool is_late(const dibs__watch *w, uint64_t version)
{
    return version != 0 && version <= w->known;
}

bool dibs__watch_told(dibs__watch *w, uint64_t version)
{
    if (!w->fresh && is_late(w, version))
        return false;
    if (w->tell_count == DIBS__WATCH_TELLS) {
        memmove(w->tells, w->tells + 1,
                (DIBS__WATCH_TELLS - 1) * sizeof(w->tells[0]));
        w->tell_count--;
        w->unsure = true;
    }
    w->tells[w->tell_count++] = version;
    w->due = true;
    return true;
}

void dibs__watch_missed(dibs__watch *w)
{
    w->missed = true;
    w->unsure = true;
    w->due = true;
    w->ear_until = 0;
    w->ear_at = 0;
}

void dibs__watch_eared(dibs__watch *w, dibsx_nsec sent_at, dibsx_nsec now,
                       dibs_status rc)
{
    if (rc != DIBS_OK) {
        w->ear_at = dibsx_after_ms(now, dibsx_is_away(rc) ? DIBS__WATCH_LOOK_MS
                                                          : DENIED_MS);
        return;
    }
    /* The connection that it was about is lost already: another ear follows. */
    if (w->missed)
        return;
    /* Changes between the end of the last one and this one were not told. */
    if (now > w->ear_until) {
        w->ear_since = now;
        w->unsure = true;
        w->due = true;
    }
    w->ear_until = dibsx_after_ms(sent_at, DIBS__EAR_MS);
    w->ear_at = dibsx_after_ms(sent_at, DIBS__WATCH_EAR_MS);
}

/* The store read the head between the two moments, and rounded its expiry up. */
static void note_expiry(dibs__watch *w, const dibs__value_head *head,
                        dibsx_nsec sent_at, dibsx_nsec now)
{
    bool expires = head->version != 0 && head->expires_ms >= 0;

    w->expires_at = DIBSX_NEVER;
    w->lives_until = DIBSX_NEVER;
    if (!expires)
        return;
    w->expires_at = dibsx_after_ms(now, head->expires_ms);
    w->lives_until = dibsx_after_ms(sent_at, head->expires_ms - 1);
}

/* The next look, after one that was answered or failed now. */
static void plan_look(dibs__watch *w, dibsx_nsec now)
{
    w->look_at = dibsx_after_ms(now, DIBS__WATCH_LOOK_MS);
    if (w->expires_at <= now)
        w->expires_at = w->look_at;
}

/* A version that is still the same has not changed, and from this look on the store
 * tells all changes. Where nothing is, something may have come and gone. */
void dibs__watch_looked(dibs__watch *w, dibsx_nsec sent_at, dibsx_nsec now,
                        dibs_status rc, const dibs__value_head *head)
{
    if (rc != DIBS_OK || w->fresh) {
        plan_look(w, now);
        return;
    }
    w->look_at = dibsx_after_ms(now, DIBS__WATCH_LOOK_MS);
    w->other = head->version != w->known;
    if (w->other)
        return;
    note_expiry(w, head, sent_at, now);
    if (w->known != 0 && w->tell_count == 0 && sent_at >= w->ear_since &&
        now <= w->ear_until)
        w->unsure = false;
}

/* Drops the tells up to that of this version. True when it was the first of all, and
 * none is missing. */
static bool settle_tells(dibs__watch *w, uint64_t version)
{
    size_t found = w->tell_count;
    bool alone;

    while (found > 0 && w->tells[found - 1] != version)
        found--;
    alone = found == 1 && !w->unsure && version != 0;
    /* Without a tell of its own, those that are there may be older or newer. An
     * absence has no version: which of several was read is not known. */
    w->unsure = version == 0 || (found == 0 && w->tell_count > 0);
    w->tell_count = found == 0 ? 0 : w->tell_count - found;
    memmove(w->tells, w->tells + found, w->tell_count * sizeof(w->tells[0]));
    return alone;
}

bool dibs__watch_fetched(dibs__watch *w, dibsx_nsec sent_at, dibsx_nsec now,
                         dibs_status rc, const dibs__value_head *head,
                         dibs__watch_news *news)
{
    bool alone, changed;

    *news = (dibs__watch_news){.merged = false};
    if (rc != DIBS_OK && rc != DIBS_NOTFOUND) {
        plan_look(w, now);
        return false;
    }
    w->look_at = dibsx_after_ms(now, DIBS__WATCH_LOOK_MS);
    w->unsure = w->unsure || now > w->ear_until;
    alone = settle_tells(w, head->version) && now < w->lives_until;
    changed = w->fresh || head->version != w->known;
    news->merged = !w->fresh && !alone;
    news->back = !w->fresh && head->version != 0 && head->version < w->known;
    w->fresh = false;
    w->known = head->version;
    note_expiry(w, head, sent_at, now);
    return changed;
}
