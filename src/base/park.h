/* park.h - a place on which one thread sleeps until another posts to it.
 *
 * Cheaper than a condition variable in two ways that a pipeline feels: the
 * sleeper needs no mutex to go on, and a post to one that does not sleep yet is
 * no system call. The place may be gone as soon as it was posted to, so waking
 * it looks at its address only. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_BASE_PARK_H
#define DIBS_BASE_PARK_H

#include "base/clock.h"
#include <stdatomic.h>
#include <stdbool.h>

/* Zeroed storage is a place that nothing was posted to. */
typedef struct dibsx_park {
    atomic_int word;
} dibsx_park;

/* As if nothing had been posted; for who sleeps there, and nobody else. */
void dibsx_park_clear(dibsx_park *park);

/* The posted value, or 0. */
int dibsx_park_look(dibsx_park *park);

/* Sleeps until something is posted or the moment comes; what was posted, or 0.
 * One thread at a time. */
int dibsx_park_wait(dibsx_park *park, dibsx_nsec until);

/* Posts `what`, which is positive. True when the sleeper must be woken. */
bool dibsx_park_post(dibsx_park *park, int what);
void dibsx_park_wake(dibsx_park *park);

#endif
