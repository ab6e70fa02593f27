/* samples.h - a fixed number of measured times and their percentiles. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_BENCH_SAMPLES_H
#define DIBS_BENCH_SAMPLES_H

#include <stddef.h>
#include <stdint.h>

typedef struct samples {
    int64_t *ns;
    size_t count;
    size_t room;
} samples;

/* How dibs is opened: on a busy machine a step may take long, and a measure goes on. */
#define PATIENT DIBS_CLIENT_OPTS(.timeout_ms = 60000)

/* CLOCK_MONOTONIC, which all processes of a machine share. */
int64_t now_ns(void);

/* The processor time that this process has had, all threads together. */
int64_t cpu_ns(void);

/* Room for `room` samples; exits when there is no memory. Free with
 * samples_fini(). */
void samples_init(samples *s, size_t room);
void samples_fini(samples *s);
void samples_add(samples *s, int64_t ns); /* at most `room` times */

/* Sorts the samples, of which there must be some; before samples_at(). */
void samples_sort(samples *s);
double samples_at(const samples *s, size_t percent); /* in microseconds */

/* Prints "count per_second p50 p95 p99", times in microseconds, on one line;
 * `took_ns` is how long all of it took. Sorts the samples. */
void samples_print(samples *s, int64_t took_ns);

/* Prints what failed and exits. */
void give_up(const char *what, const char *why) __attribute__((noreturn));

#endif
