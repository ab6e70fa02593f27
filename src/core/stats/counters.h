/* counters.h - the counters of a client. Updated without a lock from any thread. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_CORE_STATS_COUNTERS_H
#define DIBS_CORE_STATS_COUNTERS_H

#include <dibs/client.h>
#include <stdatomic.h>
#include <stdint.h>

/* Each is a field of dibs_stats as well (include/dibs/client.h). `busy` of dibs_stats is
 * not among them: it is a sum, so that no snapshot has less of it than of its parts. */
#define DIBS__COUNTERS(X)                                                      \
    X(attempts)                                                                \
    X(acquired)                                                                \
    X(failed)                                                                  \
    X(released)                                                                \
    X(lost)                                                                    \
    X(renewed)                                                                 \
    X(renewals_failed)                                                         \
    X(rings)                                                                   \
    X(polls)                                                                   \
    X(held)                                                                    \
    X(waiting)                                                                 \
    X(fallbacks)                                                               \
    X(under_replicated)                                                        \
    X(timed_out)                                                               \
    X(cancelled)

#define DIBS__COUNTER(name) atomic_uint_fast64_t name;

typedef struct dibs__stats {
    DIBS__COUNTERS(DIBS__COUNTER)
    atomic_uint_fast64_t refused; /* the rest of busy */
    atomic_uint_fast64_t slack[DIBS_SLACK_PARTS];
    atomic_uint_fast64_t slack_permille;
} dibs__stats;

static inline void dibs__count(atomic_uint_fast64_t *counter)
{
    atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
}

/* An acquire has ended with this status. */
static inline void dibs__count_outcome(dibs__stats *stats, dibs_status rc)
{
    if (rc == DIBS_OK)
        dibs__count(&stats->acquired);
    else if (rc == DIBS_BUSY)
        dibs__count(&stats->refused);
    else if (rc == DIBS_TIMEOUT)
        dibs__count(&stats->timed_out);
    else if (rc == DIBS_CANCELLED)
        dibs__count(&stats->cancelled);
    else
        dibs__count(&stats->failed);
}

static inline void dibs__uncount(atomic_uint_fast64_t *counter)
{
    atomic_fetch_sub_explicit(counter, 1, memory_order_relaxed);
}

#endif
