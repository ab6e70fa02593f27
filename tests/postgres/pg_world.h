/* pg_world.h - a server and clients on it, for tests that watch what becomes of
 * leases when the server fails. One server for all tests of a program: a cluster
 * takes a while to make, and what a test does to it is undone by a restart. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_TESTS_POSTGRES_WORLD_H
#define DIBS_TESTS_POSTGRES_WORLD_H

#include "server.h"
#include "world.h"

/* What most clients here give their calls; and WORLD_BOUND_MS for a server that
 * takes a while to come back. */
enum { WORLD_STEP_MS = 3000, PG_BOUND_MS = 20000 };

extern pg_server world_sv;

/* For the group, and for each test. */
int world_begin(void **state);
int world_end(void **state);

#endif
