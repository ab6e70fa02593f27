/* store_clock.h - the clock of a store between two answers that had it. Pure.
 *
 * Records say when something began and ended, on the store's clock, and an error of a moment in
 * them breaks no rule: where one would, the commit names the moment. So a node counts on from
 * an answer that it has just had, and asks only when it has none. Its answer is never
 * ahead of the store, and does not go back by a second or less, so that no end is before
 * its beginning. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_JOBS_STORE_CLOCK_H
#define DIBS_JOBS_STORE_CLOCK_H

#include "base/clock.h"

/* Zeroed storage knows nothing. */
typedef struct dibs__store_clock {
    int64_t store_us; /* of the last answer; 0: there was none */
    dibsx_nsec at;    /* when it came */
    int64_t told_us;
} dibs__store_clock;

/* An answer had the store's clock. One that was long under way is not noted: the clock may
 * have been read at any moment of it. */
void dibs__store_clock_note(dibs__store_clock *clock, int64_t store_us,
                            dibsx_nsec asked_at, dibsx_nsec at);

/* The store's clock now; 0: the store has to be asked. */
int64_t dibs__store_clock_us(dibs__store_clock *clock, dibsx_nsec now);

#endif
