/* lag.h - how long a thread has owed a sign of life.
 *
 * A thread that sleeps until it has something to do notes no moments by itself. Others
 * ask, wake it, and see later whether it has answered. Any thread. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_BASE_LAG_H
#define DIBS_BASE_LAG_H

#include "base/clock.h"
#include <stdatomic.h>

typedef struct dibsx_lag {
    _Atomic(dibsx_nsec) asked_at; /* 0: it has answered */
} dibsx_lag;

/* Asks, unless a question is open: then how long that has been open. The asker wakes
 * the thread. */
static inline dibsx_nsec dibsx_lag_ask(dibsx_lag *lag, dibsx_nsec now)
{
    dibsx_nsec asked_at = 0;

    return atomic_compare_exchange_strong(&lag->asked_at, &asked_at, now)
               ? 0
               : now - asked_at;
}

/* The thread itself, each time that it goes around. */
static inline void dibsx_lag_answer(dibsx_lag *lag)
{
    atomic_store(&lag->asked_at, 0);
}

#endif
