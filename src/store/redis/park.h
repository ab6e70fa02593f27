/* park.h - a place on which one thread sleeps until another posts to it.
 *
 * Cheaper than a condition variable in two ways that a pipeline feels: the
 * sleeper needs no mutex to go on, and a post to one that does not sleep yet is
 * no system call. The place may be gone as soon as it was posted to, so waking
 * it looks at its address only. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_REDIS_PARK_H
#define DIBS_STORE_REDIS_PARK_H

#include "base/clock.h"
#include <stdatomic.h>

/* Zeroed storage is a place that nothing was posted to. */
typedef struct dibs__park {
    atomic_int word;
} dibs__park;

/* What was posted, 0 when nothing was. */
int dibs__park_look(dibs__park *park);

/* Sleeps until something is posted or the moment comes; what was posted, or 0.
 * One thread at a time. */
int dibs__park_wait(dibs__park *park, dibsx_nsec until);

/* Posts `what`, which is positive. True when the sleeper must be woken. */
bool dibs__park_post(dibs__park *park, int what);
void dibs__park_wake(dibs__park *park);

#endif
