/* wake.h - when a node looks at its board, and which node goes first. Pure.
 *
 * A node does not poll. It sleeps until the first number of the indexes, or until the bell
 * of its board rings: a commit that makes work for others rings it. A ring may be lost, so
 * a node also looks by itself now and then.
 *
 *   W1  While the store answers, a look begins `look_ms` after the last one at the latest,
 *       whatever was heard; and within a second while the node cannot hear.
 *   W2  A ring that comes after a look has begun makes another look.
 *   W3  Of several nodes the first by rank ticks at once, and each of the others after a
 *       delay of its own, if the tick is still due then. So a tick waits for no node, and
 *       most ticks cost one commit. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_JOBS_WAKE_H
#define DIBS_JOBS_WAKE_H

#include "base/clock.h"

enum {
    DIBS__WAKE_DEAF_MS = 1000, /* between looks of a node that cannot hear */
    DIBS__WAKE_RINGS_MS = 10   /* looks for rings are not closer together */
};

typedef struct dibs__wake {
    int64_t look_ms, listen_ms;
    bool hears;
    dibsx_nsec look_at, looked_at;
    dibsx_nsec listen_at;
} dibs__wake;

/* Both are due at once. */
void dibs__wake_init(dibs__wake *w, int64_t look_ms, int64_t listen_ms);

/* Until when there is nothing to do. */
dibsx_nsec dibs__wake_until(const dibs__wake *w);

/* The node asked the store to be heard. One that could not hear before has to look. */
void dibs__wake_listened(dibs__wake *w, dibsx_nsec now, bool hears);

/* The bell rang; `missed`: rings may have been lost, and the node listens again. */
void dibs__wake_rang(dibs__wake *w, dibsx_nsec now, bool missed);

/* A look begins. The next one is when W1 asks for it, or sooner if one of the next asks. */
void dibs__wake_looking(dibs__wake *w, dibsx_nsec now);

/* Look again so many milliseconds from now at the latest. */
void dibs__wake_within(dibs__wake *w, dibsx_nsec now, int64_t ms);

/* W3: how long the node with this rank leaves a tick alone that is due since `due_us`. 0:
 * it is its turn. Both are of the store's clock. */
int64_t dibs__wake_turn_us(size_t rank, int64_t due_us, int64_t now_us);

#endif
