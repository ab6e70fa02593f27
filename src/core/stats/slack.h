/* slack.h - counts how late renewals are. Pure, but for the counters. Any thread. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_CORE_STATS_SLACK_H
#define DIBS_CORE_STATS_SLACK_H

#include "core/machine/lease.h"
#include "core/stats/counters.h"

/* The rest of a lease, in thousandths of its ttl. -1: it is a claim, which has its
 * own time, or is over. */
static inline int64_t
dibs__slack_permille(const dibs__lease *ls, dibsx_nsec now)
{
    const int64_t ttl_us = ls->terms.ttl_ms * 1000;
    const int64_t left_us = (ls->valid_until - now) / 1000;

    if (ls->claimed || left_us <= 0 || ttl_us <= 0)
        return -1;
    return left_us < ttl_us ? left_us * 1000 / ttl_us : 1000;
}

/* The store has confirmed a renewal of the lease, which has its old end yet. */
static inline void
dibs__slack_count(dibs__stats *stats, const dibs__lease *ls, dibsx_nsec now)
{
    const int64_t permille = dibs__slack_permille(ls, now);

    if (permille < 0)
        return;
    dibs__count(&stats->slack[permille > 0 ? (permille - 1) / 100 : 0]);
    atomic_fetch_add_explicit(&stats->slack_permille, (uint64_t)permille,
                              memory_order_relaxed);
}

#endif
