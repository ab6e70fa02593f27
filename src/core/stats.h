/* stats.h - the counters of a client. Updated without a lock from any thread. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_CORE_STATS_H
#define DIBS_CORE_STATS_H

#include <stdatomic.h>
#include <stdint.h>

typedef struct dibs__stats {
    atomic_uint_fast64_t attempts;
    atomic_uint_fast64_t acquired;
    atomic_uint_fast64_t busy;
    atomic_uint_fast64_t failed;
    atomic_uint_fast64_t released;
    atomic_uint_fast64_t lost;
    atomic_uint_fast64_t renewed;
    atomic_uint_fast64_t renewals_failed;
    atomic_uint_fast64_t rings;
    atomic_uint_fast64_t polls;
    atomic_uint_fast64_t held;
    atomic_uint_fast64_t waiting;
    atomic_uint_fast64_t fallbacks;
    atomic_uint_fast64_t under_replicated;
} dibs__stats;

static inline void dibs__count(atomic_uint_fast64_t *counter)
{
    atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
}

static inline void dibs__uncount(atomic_uint_fast64_t *counter)
{
    atomic_fetch_sub_explicit(counter, 1, memory_order_relaxed);
}

#endif
