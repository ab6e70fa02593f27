/* stats.c - the snapshot that callers get. */
/* SPDX-License-Identifier: MIT */
#include "core/stats.h"

#include "core/client.h"
#include <string.h>

void dibs_stats_get(const dibs_client *cl, dibs_stats *out)
{
    const dibs__stats *st = &cl->stats;
    dibs_stats now = {
        .size = out->size,
        .attempts = atomic_load(&st->attempts),
        .acquired = atomic_load(&st->acquired),
        .busy = atomic_load(&st->busy),
        .failed = atomic_load(&st->failed),
        .released = atomic_load(&st->released),
        .lost = atomic_load(&st->lost),
        .renewed = atomic_load(&st->renewed),
        .renewals_failed = atomic_load(&st->renewals_failed),
        .rings = atomic_load(&st->rings),
        .polls = atomic_load(&st->polls),
        .held = atomic_load(&st->held),
        .waiting = atomic_load(&st->waiting),
        .fallbacks = atomic_load(&st->fallbacks),
        .under_replicated = atomic_load(&st->under_replicated),
    };

    memcpy(out, &now, out->size < sizeof(now) ? out->size : sizeof(now));
}
