/* luck.h - what a simulation leaves to chance. Included after its world, which has
 * `prng`: the code is the same for all, the types are not. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_TESTS_SIM_LUCK_H
#define DIBS_TESTS_SIM_LUCK_H

static inline bool chance(world *w, unsigned of_1000)
{
    return dibsx_prng_below(&w->prng, 1000) < of_1000;
}

/* To the microsecond. */
static inline dibsx_nsec span(world *w, int64_t low_ms, int64_t high_ms)
{
    uint64_t us = (uint64_t)(high_ms - low_ms) * 1000;

    return low_ms * DIBSX_MS +
           (dibsx_nsec)dibsx_prng_below(&w->prng, us + 1) * 1000;
}

#endif
