/* world.h - clients and handles as tests use them, and waiting for what becomes of
 * them. The stores they are on are made by redis_world.h and the like. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_TESTS_WORLD_H
#define DIBS_TESTS_WORLD_H

#include "check.h"

#include "base/clock.h"
#include <dibs/dibs.h>

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* How long to wait for what should have happened long before: less than the ttl
 * of a lease whose end would look the same. */
enum { WORLD_BOUND_MS = 10000 };

/* The same for a candidate: its seat counts after more than a ttl, which is longer on a
 * machine that is slow. */
enum { WORLD_SEAT_MS = 6 * WORLD_BOUND_MS };

/* By how much the announcement of a loss may come after the end of validity. */
enum { WORLD_LATE_MS = 100 };

/* What a call may take beyond what it was given, on a busy machine. */
enum { WORLD_SLACK_MS = 1000 };

/* A client whose steps end after `timeout_ms` at the latest; the caller closes
 * it. */
dibs_client *world_client(const char *url, int64_t timeout_ms);

/* Whether the store can be reached and used by this URL, in time; a reason, which
 * is shown, if not. */
dibs_status world_try_url(const char *url, int64_t timeout_ms, dibs_error *why);

/* A handle on the client; the caller frees it. */
dibs_lock *
world_lock(dibs_client *cl, const char *name, const dibs_lock_opts *opts);

/* Tries, whatever the answer, until the lease is got or the bound has passed;
 * the last answer. That another still holds it then is lateness. */
dibs_status world_try_until(dibs_lock *lock, int64_t bound_ms);

/* Waits until the state is shown. */
void world_await(const dibs_lock *lock, dibs_lock_state state,
                 int64_t bound_ms);

/* It is held and sure to be; a machine that is too slow can be why it is not. */
void world_expect_held(const dibs_lock *lock);

/* The rival is refused because of the other handle; a machine that is too slow
 * can be why that one's lease has ended. */
void world_expect_busy(dibs_lock *rival, const dibs_lock *held);

/* Waits until so many wait for the name. */
void world_await_waiters(dibs_client *cl, const char *name, size_t count);

/* Waits until the store has confirmed one more renewal of this client. */
void world_await_renewal(const dibs_client *cl);

/* How a loss was announced: for opts.on_lost and its argument. */
typedef struct loss {
    atomic_int count;
    _Atomic(dibsx_nsec) told_at;
} loss;

void note_loss(dibs_lock *lock, void *arg);

/* A handle whose loss is noted; the caller frees it. */
dibs_lock *
world_lock_told(dibs_client *cl, const char *name, int64_t ttl_ms, loss *lost);

/* Waits for the one announcement. */
void await_loss(loss *lost, int64_t bound_ms);

/* When the lease ends if nothing renews it. */
dibsx_nsec end_of(const dibs_lock *lock);

/* Writes a value until the store takes it, and waits until the watch on it, of key
 * "v", has it. Whether it was called merged. */
bool world_watch_sees(dibs_client *cl, dibs_watch *watch, const char *text);

/* Changes are told again, not only found: then one is not called merged. */
void world_watch_told(dibs_client *cl, dibs_watch *watch);

void world_sleep_ms(int64_t span_ms);
int64_t world_ms_since(dibsx_nsec from_at);

#endif
