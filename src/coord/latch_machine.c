/* latch_machine.c - the machine of latch_machine.h. */
/* SPDX-License-Identifier: MIT */
#include "coord/latch_machine.h"
#include "store/topic.h"

void dibs__latch_init(dibs__latch *la, uint64_t seed)
{
    *la = (dibs__latch){.span_ms = DIBS__LATCH_FIRST_MS,
                        .ear_at = DIBSX_NEVER,
                        .prng = {.state = seed}};
}

dibs__latch_todo
dibs__latch_next(const dibs__latch *la, dibsx_nsec now, dibsx_nsec *until)
{
    *until = la->look_at < la->ear_at ? la->look_at : la->ear_at;
    if (la->open)
        return DIBS__LATCH_OPEN;
    if (la->ear_at <= now)
        return DIBS__LATCH_EAR;
    return la->look_at <= now ? DIBS__LATCH_LOOK : DIBS__LATCH_SLEEP;
}

void dibs__latch_looks(dibs__latch *la)
{
    la->missed = false;
}

/* Spread, so that many that wait do not ask at once. */
static int64_t next_span(dibs__latch *la)
{
    int64_t span_ms = la->span_ms;

    la->span_ms =
        2 * span_ms < DIBS__LATCH_LAST_MS ? 2 * span_ms : DIBS__LATCH_LAST_MS;
    return span_ms * 3 / 4 +
           (int64_t)dibsx_prng_below(&la->prng, (uint64_t)span_ms / 2);
}

void dibs__latch_looked(dibs__latch *la, dibsx_nsec now, dibs_status rc,
                        uint64_t generation)
{
    if (rc == DIBS_OK)
        la->open = true;
    if (rc == DIBS_BUSY)
        la->generation = generation;
    if (rc != DIBS_BUSY && rc != DIBS_NOTFOUND) {
        la->look_at = dibsx_after_ms(now, DIBS__LATCH_AWAY_MS);
        return;
    }
    if (la->ear_at == DIBSX_NEVER && !la->listens)
        la->ear_at = now; /* The first look. */
    la->look_at = la->missed ? now : dibsx_after_ms(now, next_span(la));
}

void dibs__latch_ears(dibs__latch *la)
{
    la->cut = false;
}

/* A store that forbids listening is not asked again. */
void dibs__latch_eared(dibs__latch *la, dibsx_nsec sent_at, dibsx_nsec now,
                       dibs_status rc)
{
    if (rc == DIBS_OK && la->cut)
        return; /* Another ear follows. */
    if (rc == DIBS_OK) {
        if (!la->listens)
            la->look_at = now;
        la->listens = true;
        la->ear_at = dibsx_after_ms(sent_at, DIBS__EAR_MS / 2);
        return;
    }
    la->listens = rc == DIBS_DENIED;
    la->ear_at = rc == DIBS_DENIED ? DIBSX_NEVER
                                   : dibsx_after_ms(now, DIBS__LATCH_AWAY_MS);
}

void dibs__latch_told(dibs__latch *la, uint64_t generation)
{
    if (generation == la->generation) {
        la->open = true;
    } else {
        la->missed = true;
        la->look_at = 0;
    }
}

void dibs__latch_missed(dibs__latch *la)
{
    bool asks = la->ear_at != DIBSX_NEVER;

    la->missed = la->cut = true;
    la->look_at = 0;
    if (asks) {
        la->listens = false;
        la->ear_at = 0;
    }
}
