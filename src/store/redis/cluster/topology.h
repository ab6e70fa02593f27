/* topology.h - which server of a cluster serves which slot. Pure.
 *
 * Read from the reply to CLUSTER SLOTS, which any server may get wrong: a reply
 * that makes no sense is refused, and every count is bounded. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_REDIS_CLUSTER_TOPOLOGY_H
#define DIBS_STORE_REDIS_CLUSTER_TOPOLOGY_H

#include "store/redis/cluster/slot.h"
#include "store/redis/wire/endpoint.h"
#include <dibs/types.h>
#include <hiredis/hiredis.h>

enum { DIBS__MEMBERS_MAX = 2048 }; /* the most servers of a cluster */

typedef struct dibs__server {
    dibs__endpoint endpoint;
    bool master;
    int replicas; /* of a master */
} dibs__server;

/* Zeroed storage is a map without servers. */
typedef struct dibs__topology {
    dibs__server *members;
    size_t count;
    size_t room;
    bool nomem;                   /* memory was short for a further member */
    uint16_t server[DIBS__SLOTS]; /* index of the master, plus 1; 0: none */
} dibs__topology;

/* Reads the reply of the server at `asked`, whose host stands for hosts that
 * the reply leaves empty. DIBS_REFUSED when it makes no sense, DIBS_NOMEM;
 * `out` is then empty. Free with dibs__topology_fini(). */
DIBS_MUST_CHECK dibs_status dibs__topology_read(const redisReply *reply,
                                                const dibs__endpoint *asked,
                                                dibs__topology *out,
                                                dibs_error *err);
void dibs__topology_fini(dibs__topology *tp);

/* The member at an endpoint, added if it is new; -1 when there is no room. */
int dibs__topology_add(dibs__topology *tp, const dibs__endpoint *endpoint);

/* The number of slots that are served. */
int dibs__topology_covered(const dibs__topology *tp);

/* The slot and the endpoint of a "MOVED 3999 host:port" or "ASK ..."; the host
 * is that of `asked` when it names none. False when the text is neither, or
 * names no endpoint. */
bool dibs__redirect_read(const char *error, const dibs__endpoint *asked,
                         int *slot, dibs__endpoint *to);

#endif
