/* backoff.c - when the next attempt to connect is due. */
/* SPDX-License-Identifier: MIT */
#include "store/redis/wire/backoff.h"

/* Bounds of the delay after the first failure and after many. */
#define FIRST (25 * DIBSX_MS)
#define LAST  (2000 * DIBSX_MS)

void dibs__backoff_init(dibs__backoff *bo, uint64_t seed)
{
    *bo = (dibs__backoff){.prng = {.state = seed}};
}

void dibs__backoff_failed(dibs__backoff *bo, dibsx_nsec now)
{
    dibsx_nsec last = bo->cap > 0 ? bo->cap : LAST;
    dibsx_nsec bound = FIRST;

    for (int i = 0; i < bo->failures && bound < last; i++)
        bound *= 2;
    if (bound < last)
        bo->failures++;
    else
        bound = last;
    bo->due_at =
        now + (dibsx_nsec)dibsx_prng_below(&bo->prng, (uint64_t)bound + 1);
}

void dibs__backoff_worked(dibs__backoff *bo)
{
    bo->failures = 0;
    bo->due_at = 0;
}
