/* raw_waiter.h - a lock with a queue by the bare driver: the least that a hand-off to
 * a waiter can cost.
 *
 * A waiter has two connections: one asks, one listens to a channel of its own, on
 * which it gets the lock. No fence, no time for a place in the queue, no names of
 * holders. A failure ends the program. One thread for each waiter. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_BENCH_RAW_WAITER_H
#define DIBS_BENCH_RAW_WAITER_H

typedef struct raw_waiter raw_waiter;

/* The number makes it another than the others. Close with raw_waiter_close(). */
raw_waiter *raw_waiter_open(int port, int number);
void raw_waiter_close(raw_waiter *waiter);

/* A script that takes the lock or joins the queue; then it listens. A script that
 * gives the lock to the first of the queue and tells it. */
void raw_waiter_acquire(void *waiter);
void raw_waiter_release(void *waiter);

#endif
