/* pairs.h - acquire and release, beside what they are held against.
 *
 * Rates are pairs each second, times microseconds. Both sides take turns in small
 * blocks, so that they meet the same machine; ratio and multiple are medians over
 * the blocks. A failure ends the program. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_BENCH_PAIRS_H
#define DIBS_BENCH_PAIRS_H

#include <dibs/dibs.h>

/* How a pair is done. */
typedef struct side {
    void (*pair)(void *arg);
    void *arg;
} side;

dibs_client *client_open(const char *url);

/* Ends the program when a call did not end with DIBS_OK. */
void must_succeed(dibs_status rc, const dibs_error *err);

/* "bench-NUMBER", with five digits; a `ttl_ms` of 0 is the default. */
dibs_lock *lock_new(dibs_client *client, long number, int64_t ttl_ms);
void lock_acquire(dibs_lock *lock);
void lock_pair(void *lock);
void lock_pair_unawaited(void *lock); /* nobody waits for the release */

/* One thread: prints "RATE P50 P95 P99" of the bare driver, the same of dibs, and
 * the ratio of the two p50. */
void measure_pairs(const side *bare, const side *ours, size_t blocks);

/* Both do `pairs` pairs at each call: prints "RATE_OF_BARE RATE RATIO". */
void measure_rates(const side *bare, const side *ours, int pairs,
                   size_t blocks);

/* Processor time of this process for a pair: prints "BARE OURS RATIO". `bare` does so many
 * pairs at each call, `ours` so many. */
void measure_cpu(const side *bare, int bare_pairs, const side *ours,
                 int our_pairs, size_t blocks);

/* Up to CREW_MAX threads, each of which does so many pairs of its side in a turn;
 * crew_turn() has all of them do one. Free it with crew_free(). */
enum { CREW_MAX = 64 };
typedef struct crew crew;
crew *crew_new(const side *sides, int count, int pairs);
void crew_turn(void *crew);
void crew_free(crew *cw);

/* A crew on one client, with locks of their own, beside one that does `pairs` in each
 * block: prints "RATE_OF_ONE RATE MULTIPLE". */
void measure_crew(const side *one, int pairs, dibs_client *client, int threads,
                  size_t blocks);

#endif
