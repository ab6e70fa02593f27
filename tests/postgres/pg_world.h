/* pg_world.h - a server and clients on it, for tests that watch what becomes of
 * leases when the server fails. One server for all tests of a program: a cluster
 * takes a while to make, and what a test does to it is undone by a restart. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_TESTS_POSTGRES_WORLD_H
#define DIBS_TESTS_POSTGRES_WORLD_H

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

/* How long to wait for what should have happened long before, and what a call may
 * take beyond what it was given, on a busy machine. */
enum { WORLD_BOUND_MS = 20000, WORLD_SLACK_MS = 1000, WORLD_STEP_MS = 3000 };

extern pg_server world_sv;

/* For the group, and for each test. */
int world_begin(void **state);
int world_end(void **state);

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

/* A client whose steps end after WORLD_STEP_MS; the caller closes it. */
dibs_client *world_client(const char *url);

/* A handle on the client; the caller frees it. */
dibs_lock *
world_lock(dibs_client *cl, const char *name, const dibs_lock_opts *opts);

/* Tries, whatever the answer, until the lease is got or the bound has passed;
 * the last answer. */
dibs_status world_try_until(dibs_lock *lock, int64_t bound_ms);

void world_sleep_ms(int64_t span_ms);
int64_t world_ms_since(dibsx_nsec from_at);

#endif
