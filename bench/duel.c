/* duel.c - times of two sides that take turns, and their ratio. */
/* SPDX-License-Identifier: MIT */
#include "bench/duel.h"

#include <stdio.h>

void duel_init(duel *du, size_t rounds)
{
    samples_init(&du->bare, rounds);
    samples_init(&du->ours, rounds);
    samples_init(&du->ratios, rounds);
}

void duel_add(duel *du, int64_t bare, int64_t ours)
{
    samples_add(&du->bare, bare);
    samples_add(&du->ours, ours);
    samples_add(&du->ratios,
                bare > 0 ? (int64_t)((double)ours * 1000 / (double)bare) : 0);
}

double samples_median(samples *s)
{
    double p50;

    samples_sort(s);
    p50 = samples_at(s, 50);
    samples_fini(s);
    return p50;
}

void duel_print(duel *du)
{
    printf("%.0f %.0f %.3f", samples_median(&du->bare),
           samples_median(&du->ours), samples_median(&du->ratios));
}
