/* duel.h - times of two sides that take turns, and their ratio. One thread. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_BENCH_DUEL_H
#define DIBS_BENCH_DUEL_H

#include "bench/samples.h"

typedef struct duel {
    samples bare, ours;
    samples ratios; /* in thousandths */
} duel;

/* Room for so many rounds; duel_print() frees it. A `bare` of 0 was not measured. */
void duel_init(duel *du, size_t rounds);
void duel_add(duel *du, int64_t bare, int64_t ours);

/* Prints "BARE OURS RATIO", the medians, without an end of the line: times in
 * microseconds. Frees the samples. */
void duel_print(duel *du);

/* The median, in microseconds. Frees the samples. */
double samples_median(samples *s);

#endif
