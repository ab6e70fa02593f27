/* timer.h - calls owners at the moment that they asked for.
 *
 * A timer lives inside its owner. The keeper is the thread that calls. Room is
 * reserved when the owner comes into being, so that setting a timer cannot fail.
 *
 *   (1) A timer is called once for each time that it was set, not before its
 *       moment; by then it is set to nothing, and may be set again.
 *   (2) The kernel's timer goes off at the earliest moment of all, or before.
 *
 * Locks: cl->mutex for everything here. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_CORE_TIMER_H
#define DIBS_CORE_TIMER_H

#include "base/heap.h"
#include <dibs/client.h>

typedef struct dibs__timer dibs__timer;

/* Called by the keeper. Does not let the mutex go: no timer waits for the store, or
 * for a callback of the program. */
typedef void
dibs__timer_fn(dibs_client *cl, dibs__timer *timer, dibsx_nsec now);

struct dibs__timer {
    dibsx_heap_node node; /* first, so that one is the other */
    dibs__timer_fn *fire;
};

/* Room for so many more timers; false when memory is short. Given back by an
 * owner that ends. */
bool dibs__timer_reserve(dibs_client *cl, size_t count);
void dibs__timer_unreserve(dibs_client *cl, size_t count);

/* Starts the keeper if it does not run. DIBS_NOMEM when the system has no thread
 * to give, DIBS_INVALID when the client has stopped its own. */
dibs_status dibs__timer_ready(dibs_client *cl, dibs_error *err);

/* Sets the timer to a moment; DIBSX_NEVER: to nothing. */
void dibs__timer_set(dibs_client *cl, dibs__timer *timer, dibsx_nsec at);

static inline bool dibs__timer_is_set(const dibs__timer *timer)
{
    return timer->node.place != 0;
}

/* The nodes of timers that are set to a moment by `until`, `most` of them at most: their
 * number. They may be set anew. */
size_t dibs__timer_until(const dibs_client *cl, dibsx_nsec until,
                         dibsx_heap_node **out, size_t most);

/* Calls all that are due. For the keeper. */
void dibs__timer_run(dibs_client *cl);

#endif
