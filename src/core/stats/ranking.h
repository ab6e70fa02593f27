/* ranking.h - names in the order of their contention. Pure.
 *
 * Owns the most contended DIBS__RANKING_MAX of any number. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_CORE_STATS_RANKING_H
#define DIBS_CORE_STATS_RANKING_H

#include "core/stats/acquire_counts.h"

enum { DIBS__RANKING_MAX = 4096 };

typedef struct dibs__ranked {
    dibs_name_stats stats; /* its name and its distributions are its own */
    uint64_t waited_us;    /* by all together */
} dibs__ranked;

/* Zeroed storage is an empty ranking. */
typedef struct dibs__ranking {
    dibs__ranked *items;
    size_t count;
    size_t room;
} dibs__ranking;

void dibs__ranking_fini(dibs__ranking *rk);

/* False when memory is short. */
bool dibs__ranking_add(dibs__ranking *rk, const char *name,
                       const dibs__counts *counts, uint64_t waiting);

/* Shows the most contended first: by how often, then by how long, then by name. */
void dibs__ranking_show(dibs__ranking *rk, dibs_name_stats_fn *each, void *arg);

#endif
