/* vital.c - whether the threads that all others need go around. Pure. */
/* SPDX-License-Identifier: MIT */
#include "serve/vital.h"
#include <stddef.h>

const char *
dibs__vital_stuck(const dibs__serve_vitals *vitals, int64_t store_ms)
{
    if (vitals->loop_ms >= DIBS__VITAL_MS)
        return "loop";
    if (vitals->keeper_ms >= DIBS__VITAL_MS)
        return "keeper";
    return vitals->look_ms >= DIBS__VITAL_MS + store_ms ? "look" : NULL;
}
