/* backoff.h - when the next attempt to connect is due. Pure.
 *
 * Full jitter: the delay is drawn evenly from nothing up to a bound that doubles
 * with each failure in a row, so that clients cut off together do not come back
 * together. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_REDIS_WIRE_BACKOFF_H
#define DIBS_STORE_REDIS_WIRE_BACKOFF_H

#include "base/clock.h"
#include "base/rand.h"

typedef struct dibs__backoff {
    dibsx_prng prng;
    int failures; /* in a row */
    dibsx_nsec due_at;
    dibsx_nsec cap; /* the bound after many failures; 0: as init has it */
} dibs__backoff;

void dibs__backoff_init(dibs__backoff *bo, uint64_t seed);

/* An attempt failed, or a connection broke. */
void dibs__backoff_failed(dibs__backoff *bo, dibsx_nsec now);

/* A connection has served a command. */
void dibs__backoff_worked(dibs__backoff *bo);

#endif
