/* wake.c - see wake.h. */
/* SPDX-License-Identifier: MIT */
#include "jobs/wake.h"

#include "jobs/follow.h"

void dibs__wake_init(dibs__wake *w, int64_t look_ms, int64_t listen_ms)
{
    *w = (dibs__wake){.look_ms = look_ms, .listen_ms = listen_ms};
}

dibsx_nsec dibs__wake_until(const dibs__wake *w)
{
    return w->look_at < w->listen_at ? w->look_at : w->listen_at;
}

static void look_by(dibs__wake *w, dibsx_nsec at)
{
    if (at < w->look_at)
        w->look_at = at;
}

void dibs__wake_listened(dibs__wake *w, dibsx_nsec now, bool hears)
{
    if (hears && !w->hears)
        look_by(w, now);
    w->hears = hears;
    w->listen_at =
        dibsx_after_ms(now, hears ? w->listen_ms : DIBS__WAKE_DEAF_MS);
}

void dibs__wake_rang(dibs__wake *w, dibsx_nsec now, bool missed)
{
    dibsx_nsec at = dibsx_after_ms(w->looked_at, DIBS__WAKE_RINGS_MS);

    if (missed) {
        w->hears = false;
        w->listen_at = now;
    }
    look_by(w, at > now ? at : now);
}

void dibs__wake_looking(dibs__wake *w, dibsx_nsec now)
{
    int64_t ms = w->look_ms;

    if (!w->hears && ms > DIBS__WAKE_DEAF_MS)
        ms = DIBS__WAKE_DEAF_MS;
    w->looked_at = now;
    w->look_at = dibsx_after_ms(now, ms);
}

void dibs__wake_within(dibs__wake *w, dibsx_nsec now, int64_t ms)
{
    look_by(w, ms > 0 ? dibsx_after_ms(now, ms) : now);
}

int64_t dibs__wake_turn_us(size_t rank, int64_t due_us, int64_t now_us)
{
    int64_t turn_us = due_us + dibs__rank_delay_ms(rank) * 1000;

    return turn_us > now_us ? turn_us - now_us : 0;
}
