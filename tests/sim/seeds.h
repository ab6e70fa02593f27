/* seeds.h - a simulation, run seed by seed: sound, or with a mistake planted.
 *
 *   PROGRAM [SEEDS [FIRST]]         0: nothing went wrong in any of them
 *   PROGRAM --mutant N SEEDS        0: mistake N was noticed in one of them */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_TESTS_SIM_SEEDS_H
#define DIBS_TESTS_SIM_SEEDS_H

#include "base/clock.h"
#include <stdint.h>

/* Runs one seed; `planted` is 0 for none. Answers what went wrong, and in *at when;
 * NULL: nothing did. */
typedef const char *seeds_run_fn(uint64_t seed, int planted, dibsx_nsec *at);

/* The exit status of the program. `report` prints what the sound seeds amount to, and
 * answers the status in its turn. */
int seeds_main(int argc, char **argv, seeds_run_fn *run,
               int (*report)(uint64_t seeds));

#endif
