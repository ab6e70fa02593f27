/* setback.h - the clock of a store that was set back, as a node sees it beside its own
 * boot clock. Pure.
 *
 *   B1  A step back of more than DIBS__SETBACK_S between two looks is news, once.
 *   B2  It is over when the clock shows again what it would have shown without the step.
 *       Nothing runs twice meanwhile, and jobs wait.
 *
 * A clock that is slewed makes no such step. A node that joined after a step knows nothing of
 * it. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_JOBS_SETBACK_H
#define DIBS_JOBS_SETBACK_H

#include "base/clock.h"

enum { DIBS__SETBACK_S = 60 };

typedef struct dibs__setback {
    int64_t store_us; /* the latest look; 0: none yet */
    dibsx_nsec seen_at;
    int64_t until_us; /* what it has to show again; 0: it was not set back */
} dibs__setback;

typedef enum dibs__clock_news {
    DIBS__CLOCK_GOES,
    DIBS__CLOCK_BACK,
    DIBS__CLOCK_AGAIN /* it has caught up */
} dibs__clock_news;

/* The clock of the store at a moment of this node. */
dibs__clock_news
dibs__setback_note(dibs__setback *b, int64_t store_us, dibsx_nsec now);

/* How far it was behind at the latest look; 0: it is not. */
int64_t dibs__setback_us(const dibs__setback *b);

#endif
