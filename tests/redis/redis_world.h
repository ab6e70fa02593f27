/* redis_world.h - a server and clients on it, for tests that watch what becomes
 * of leases when the server fails.
 *
 * Each test has a server of its own, which the test may do to as it likes. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_TESTS_REDIS_WORLD_H
#define DIBS_TESTS_REDIS_WORLD_H

#include "server.h"
#include "world.h"

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

#endif
