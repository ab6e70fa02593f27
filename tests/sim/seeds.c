/* seeds.c - the loops of seeds.h. */
/* SPDX-License-Identifier: MIT */
#include "seeds.h"
#include "seed.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t number_of(const char *text)
{
    return strtoull(text, NULL, 10);
}

static int run_mutant(seeds_run_fn *run, int planted, uint64_t seeds)
{
    dibsx_nsec at;

    for (uint64_t i = 0; i < seeds; i++) {
        uint64_t seed = seed_of_many() + i;
        const char *wrong = run(seed, planted, &at);

        if (wrong) {
            printf("mutant %d, seed %llu: %s\n", planted,
                   (unsigned long long)seed, wrong);
            return 0;
        }
    }
    printf("mutant %d was not noticed in %llu seeds\n", planted,
           (unsigned long long)seeds);
    return 1;
}

int seeds_main(int argc, char **argv, seeds_run_fn *run,
               int (*report)(uint64_t seeds))
{
    uint64_t seeds = argc > 1 ? number_of(argv[1]) : 100;
    uint64_t first = argc > 2 ? number_of(argv[2]) : seed_of_many();

    if (argc == 4 && strcmp(argv[1], "--mutant") == 0)
        return run_mutant(run, (int)number_of(argv[2]), number_of(argv[3]));
    for (uint64_t i = 0; i < seeds; i++) {
        dibsx_nsec at = 0;
        const char *wrong = run(first + i, 0, &at);

        if (wrong) {
            fprintf(stderr, "seed %llu, %.6f s: %s\n",
                    (unsigned long long)(first + i), (double)at / 1e9, wrong);
            return 1;
        }
    }
    return report(seeds);
}
