/* topology.h - a primary, two replicas and three sentinels, for a test.
 *
 * Real processes on loopback ports, with short limits, so that a failover takes a
 * second or two. Replicas follow as a user of their own, so that the primary can
 * be made to refuse them while it serves everybody else. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_TESTS_REDIS_TOPOLOGY_H
#define DIBS_TESTS_REDIS_TOPOLOGY_H

#include "server.h"

enum {
    TOPOLOGY_SERVERS = 3,
    TOPOLOGY_SENTINELS = 3,
    TOPOLOGY_HOSTS = TOPOLOGY_SERVERS + TOPOLOGY_SENTINELS
};

#define TOPOLOGY_NAME "mymaster"

typedef struct topology {
    server servers[TOPOLOGY_SERVERS];
    server sentinels[TOPOLOGY_SENTINELS];
    char ports[TOPOLOGY_SERVERS][8]; /* of the servers, as text */
    int primary; /* which of the servers, as of the last look */
} topology;

/* False when it does not come up; why is on stderr. `args`: further ones of each
 * server, up to a NULL; may be NULL. End with topology_stop(). */
bool topology_start(topology *tp, const char *const *args);

/* The same, each on a host of its own: the servers', then the sentinels'. */
bool topology_start_at(topology *tp, const char *const *args,
                       const char *const hosts[TOPOLOGY_HOSTS]);
void topology_stop(topology *tp);

/* redis-sentinel://... */
void topology_url(const topology *tp, char out[SERVER_URL_MAX]);

/* From now on nothing that the primary does reaches a replica; it goes on to
 * serve. What it does afterwards is lost with it. */
void topology_cut(topology *tp);

/* The primary takes its replicas back, which catch up. */
bool topology_mend(topology *tp);

/* Waits until a sentinel names another primary than `before`; false when none does
 * in time. */
bool topology_await_switch(topology *tp, int before);

/* Asks a sentinel for a failover, and waits for the switch. On a busy machine sentinels
 * give one up now and then. */
bool topology_fail_over(topology *tp, int sentinel);

/* Waits until all but `away` follow the primary. */
bool topology_await_followed(const topology *tp, int away);

/* Starts servers that were killed as replicas of the primary, and waits until all
 * replicas follow and the sentinels are ready for the next failover. */
bool topology_heal(topology *tp);

#endif
