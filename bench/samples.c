/* samples.c - a fixed number of measured times and their percentiles. */
/* SPDX-License-Identifier: MIT */
#include "bench/samples.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

int64_t now_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

int64_t cpu_ns(void)
{
    struct timespec at;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &at);
    return (int64_t)at.tv_sec * 1000000000 + at.tv_nsec;
}

void samples_init(samples *s, size_t room)
{
    s->ns = calloc(room, sizeof(*s->ns));
    s->count = 0;
    s->room = room;
    if (!s->ns)
        give_up("samples", "out of memory");
}

void samples_fini(samples *s)
{
    free(s->ns);
}

void samples_add(samples *s, int64_t ns)
{
    assert(s->count < s->room);
    s->ns[s->count++] = ns;
}

static int by_size(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

void samples_sort(samples *s)
{
    if (s->count == 0)
        give_up("samples", "nothing was measured");
    qsort(s->ns, s->count, sizeof(*s->ns), by_size);
}

double samples_at(const samples *s, size_t percent)
{
    size_t at = s->count * percent / 100;

    return (double)s->ns[at < s->count ? at : s->count - 1] / 1000;
}

void samples_print(samples *s, int64_t took_ns)
{
    samples_sort(s);
    printf("%zu %.0f %.2f %.2f %.2f\n", s->count,
           (double)s->count * 1e9 / (double)took_ns, samples_at(s, 50),
           samples_at(s, 95), samples_at(s, 99));
}

void give_up(const char *what, const char *why)
{
    fprintf(stderr, "bench: %s: %s\n", what, why);
    exit(1);
}
