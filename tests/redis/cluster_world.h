/* cluster_world.h - a real cluster for a test: masters with a replica each, on
 * loopback ports, with a short node timeout.
 *
 * Nodes are numbered as they were started; who is a master changes with
 * failovers. As with server.h, a cluster is started from a thread that lives as
 * long as the test. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_TESTS_CLUSTER_WORLD_H
#define DIBS_TESTS_CLUSTER_WORLD_H

#include "server.h"

#include <stdint.h>

enum { CLUSTER_MASTERS = 3, CLUSTER_NODES = 2 * CLUSTER_MASTERS };

typedef struct cluster_world {
    server sv[CLUSTER_NODES];
    char bus[CLUSTER_NODES][16]; /* ports on which they speak to each other */
    char id[CLUSTER_NODES][64];
} cluster_world;

/* False when it does not come up; why is on stderr. End with cluster_stop(). */
bool cluster_start(cluster_world *cw);

/* The same, each on a host of its own. */
bool cluster_start_at(cluster_world *cw,
                      const char *const hosts[CLUSTER_NODES]);
void cluster_stop(cluster_world *cw);

/* The URL that names three of the nodes. */
void cluster_url(const cluster_world *cw, char out[SERVER_URL_MAX]);

/* The node that serves a slot; -1 when none says that it does. */
int cluster_server_of(const cluster_world *cw, int slot);

/* Ends a master as a crash does and waits until its replica serves in its place;
 * then starts it again, and waits until it follows. What it had answered was
 * passed on before it ended. *failover_ms is how long nobody served. */
bool cluster_crash(cluster_world *cw, int node, int64_t *failover_ms);

/* The same, whatever has not been passed on. */
bool cluster_kill(cluster_world *cw, int node, int64_t *failover_ms);

/* Stops a master until its replica serves in its place, and lets it go on. */
bool cluster_stall(cluster_world *cw, int node);

/* Waits until another node than this one serves a slot; until this one follows
 * another in a cluster that is well. */
bool cluster_await_other(const cluster_world *cw, int slot, int node);
bool cluster_await_follower(const cluster_world *cw, int node);

/* Waits until every node finds the cluster well. */
bool cluster_await_well(const cluster_world *cw);

/* Moves a slot to another master, key by key, with a pause before each key. */
bool cluster_move(cluster_world *cw, int slot, int to, int pause_ms);

/* The halves of it, for tests that look at what happens between them. */
bool cluster_move_begin(cluster_world *cw, int slot, int from, int to);
bool cluster_move_keys(cluster_world *cw, int slot, int from, int to,
                       int pause_ms);
bool cluster_move_end(cluster_world *cw, int slot, int from, int to);

#endif
