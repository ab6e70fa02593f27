/* belief.c - see belief.h. Owns nothing; any thread. */
/* SPDX-License-Identifier: MIT */
#include "exec/belief.h"

enum { MARGIN_MIN_MS = 40, MARGIN_MAX_MS = 1000 };

int64_t dibs__belief_margin_ms(int64_t ttl_ms, dibsx_nsec late)
{
    int64_t margin_ms = ttl_ms / 50, most_ms = ttl_ms / 5;
    if (margin_ms > MARGIN_MAX_MS)
        margin_ms = MARGIN_MAX_MS;
    if (margin_ms < MARGIN_MIN_MS)
        margin_ms = MARGIN_MIN_MS;
    margin_ms += 2 * (late / DIBSX_MS);
    return margin_ms < most_ms ? margin_ms : most_ms;
}
