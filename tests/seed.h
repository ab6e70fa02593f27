/* seed.h - the seed of a whole run: what `make test SEED=N` changes. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_TESTS_SEED_H
#define DIBS_TESTS_SEED_H

#include <stdint.h>
#include <stdlib.h>

/* DIBS_SEED, or 1. */
static inline uint64_t seed_of_run(void)
{
    const char *word = getenv("DIBS_SEED");
    uint64_t seed = word ? strtoull(word, NULL, 10) : 1;

    return seed > 0 ? seed : 1;
}

/* The first of the many seeds of a simulation; those of other runs are others. */
static inline uint64_t seed_of_many(void)
{
    return (seed_of_run() - 1) * 1000000 + 1;
}

#endif
