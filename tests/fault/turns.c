/* turns.c - see turns.h. */
/* SPDX-License-Identifier: MIT */
#include "turns.h"

#include "jobs/follow.h"

int64_t turn_delay_ms(const char *job, const char *own,
                      const char *const *others, size_t count)
{
    return dibs__rank_delay_ms(dibs__node_rank(job, own, others, count));
}
