/* quorum_world.h - a quorum of five and clients on it, for tests that watch what
 * becomes of leases when nodes fail. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_TESTS_QUORUM_WORLD_H
#define DIBS_TESTS_QUORUM_WORLD_H

#include "fleet.h"
#include "redis_world.h"

enum { QUORUM_NODES = 5 };

/* Parameters of the URL: long spans for what is not about time, so that a busy
 * machine does not matter. */
extern const char quorum_params[];

typedef struct quorum {
    fleet fl;
    char url[FLEET_URL_MAX];
    dibs_client *one; /* two clients for the test */
    dibs_client *other;
    atomic_int alarms; /* that their logs were told */
} quorum;

int quorum_setup(void **state);           /* the nodes keep their data */
int quorum_setup_forgetful(void **state); /* they keep nothing */
int quorum_teardown(void **state);

#define QUORUM_TEST(fn)                                                        \
    cmocka_unit_test_setup_teardown(fn, quorum_setup, quorum_teardown)
#define QUORUM_TEST_FORGETFUL(fn)                                              \
    cmocka_unit_test_setup_teardown(fn, quorum_setup_forgetful, quorum_teardown)

/* A field of the lock at a node, and whether the node has it; free() it. */
char *quorum_field(quorum *q, size_t node, const char *name, const char *field);

/* How many nodes have the lock. */
size_t quorum_holding(quorum *q, const char *name);

/* Waits until so many have it. */
void quorum_await_holding(quorum *q, const char *name, size_t count);

/* Restarts a node as from a file of before its latest grants: it has its note of the
 * run that it was asked in, and nothing else. */
void quorum_restart_noted(quorum *q, size_t node);

/* Waits until the client can take and give back a lock that is nobody's. */
void quorum_await_ready(dibs_client *cl);

#endif
