/* counters.c - the snapshot that callers get. */
/* SPDX-License-Identifier: MIT */
#include "core/stats/counters.h"

#include "core/client.h"
#include <string.h>

#define READ(name) .name = atomic_load(&st->name),

void dibs_stats_get(const dibs_client *cl, dibs_stats *out)
{
    const dibs__stats *st = &cl->stats;
    dibs_stats now = {.size = out->size, DIBS__COUNTERS(READ)};

    now.busy = atomic_load(&st->refused) + now.timed_out + now.cancelled;
    for (size_t i = 0; i < DIBS_SLACK_PARTS; i++)
        now.slack[i] = atomic_load(&st->slack[i]);
    now.slack_permille = atomic_load(&st->slack_permille);
    memcpy(out, &now, out->size < sizeof(now) ? out->size : sizeof(now));
}
