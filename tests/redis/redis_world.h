/* redis_world.h - a server and clients on it, for tests that watch what becomes
 * of leases when the server fails.
 *
 * Each test has a server of its own, which the test may do to as it likes. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_TESTS_REDIS_WORLD_H
#define DIBS_TESTS_REDIS_WORLD_H

#include "server.h"

#include "base/clock.h"
#include <dibs/dibs.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
/* After those above. */
#include <cmocka.h>

/* How long to wait for what should have happened long before. */
enum { WORLD_BOUND_MS = 10000 };

/* By how much the announcement of a loss may come after the end of validity. */
enum { WORLD_LATE_MS = 100 };

typedef struct world {
    server sv;
    char url[SERVER_URL_MAX];
    dibs_client *one; /* two clients for the test */
    dibs_client *other;
} world;

int world_setup(void **state);           /* the server keeps its data */
int world_setup_forgetful(void **state); /* it keeps nothing */
int world_teardown(void **state);

#define WORLD_TEST(fn)                                                         \
    cmocka_unit_test_setup_teardown(fn, world_setup, world_teardown)
#define WORLD_TEST_FORGETFUL(fn)                                               \
    cmocka_unit_test_setup_teardown(fn, world_setup_forgetful, world_teardown)

/* Fails with the error's message unless the status is as expected. */
#define CHECK(expected, call)                                                  \
    do {                                                                       \
        dibs_error err_ = {0};                                                 \
        dibs_error *err = &err_;                                               \
        dibs_status rc_ = (call);                                              \
        if (rc_ != (expected))                                                 \
            fail_msg("%s is %s, not %s: %s", #call, dibs_status_name(rc_),     \
                     dibs_status_name(expected), err_.message);                \
        (void)err;                                                             \
    } while (0)

/* A client whose steps end after `timeout_ms` at the latest; the caller closes
 * it. */
dibs_client *world_client(const char *url, int64_t timeout_ms);

/* A handle on the client; the caller frees it. */
dibs_lock *
world_lock(dibs_client *cl, const char *name, const dibs_lock_opts *opts);

/* Tries, whatever the answer, until the lease is got or the bound has passed;
 * the last answer. */
dibs_status world_try_until(dibs_lock *lock, int64_t bound_ms);

/* Waits until the state is shown; false when it is not in time. */
bool world_await(const dibs_lock *lock, dibs_lock_state state,
                 int64_t bound_ms);

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

/* Waits for the one announcement. */
void await_loss(loss *lost, int64_t bound_ms);

/* When the lease ends if nothing renews it. */
dibsx_nsec end_of(const dibs_lock *lock);

void world_sleep_ms(int64_t span_ms);
int64_t world_ms_since(dibsx_nsec from_at);

#endif
