/* cluster.h - the servers of a cluster: which one serves a slot, and pipelines
 * to them.
 *
 * Any server of the cluster can give the map. It is fetched when it is first
 * needed, and again when a server redirects or fails. A peer has a pipeline for
 * each kind of request, made when it is first used, and lives while it is in the
 * map or a call is under way on it. Any thread. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_REDIS_CLUSTER_CLUSTER_H
#define DIBS_STORE_REDIS_CLUSTER_CLUSTER_H

#include "store/redis/cluster/topology.h"
#include "store/redis/pipe/pipeline.h"
#include "store/request_kind.h"

typedef struct dibs__cluster dibs__cluster;
typedef struct dibs__peer dibs__peer; /* a server, and pipelines to it */

/* Touches no network. `conf` is borrowed until dibs__cluster_free(), when no call
 * is under way. */
DIBS_MUST_CHECK dibs_status dibs__cluster_new(const dibs__redis_conf *conf,
                                              dibs__cluster **out,
                                              dibs_error *err);
void dibs__cluster_free(dibs__cluster *cl); /* NULL is a no-op */

/* Fetches the map when there is none, or when it is in doubt and was not
 * fetched just now. DIBS_UNAVAIL when no server answers: the whole cluster is
 * out of reach. DIBS_DENIED, DIBS_REFUSED and DIBS_NOMEM as those of a
 * pipeline. */
DIBS_MUST_CHECK dibs_status dibs__cluster_learn(dibs__cluster *cl,
                                                dibsx_nsec deadline,
                                                dibs_error *err);

/* The map may be wrong: learn fetches it again. */
void dibs__cluster_doubt(dibs__cluster *cl);

/* A server has named the server of a slot; the rest of the map is in doubt. */
void dibs__cluster_moved(dibs__cluster *cl, int slot, const dibs__endpoint *to);

/* The peer that serves a slot, or the one at an endpoint. NULL: none, or memory
 * is short. Give it back with dibs__peer_drop(). */
dibs__peer *dibs__cluster_serves(dibs__cluster *cl, int slot);
dibs__peer *dibs__cluster_at(dibs__cluster *cl, const dibs__endpoint *endpoint);
void dibs__peer_drop(dibs__cluster *cl, dibs__peer *peer);

/* The endpoint of the server of a slot; false when none serves it. */
bool dibs__cluster_home(dibs__cluster *cl, int slot, dibs__endpoint *out);

/* A number for the server that serves a slot, 0 for none, and whether the last
 * use of that server failed. */
int dibs__cluster_standing(dibs__cluster *cl, int slot, bool *failing);

/* Notes how a use of the peer ended. */
void dibs__peer_failed(dibs__cluster *cl, dibs__peer *peer, bool failed);

const dibs__endpoint *dibs__peer_endpoint(const dibs__peer *peer);

/* Its pipeline; NULL when memory is short. */
dibs__pipeline *dibs__peer_pipeline(dibs__cluster *cl, dibs__peer *peer,
                                    dibs__request_kind kind);

/* A copy of the map, to be freed with dibs__topology_fini(). */
DIBS_MUST_CHECK dibs_status dibs__cluster_map(dibs__cluster *cl,
                                              dibs__topology *out,
                                              dibs_error *err);

/* A server, with each call the next of the map, or of the URL while there is no
 * map; and whether an endpoint is in the map. */
void dibs__cluster_next(dibs__cluster *cl, dibs__endpoint *out);
bool dibs__cluster_has(dibs__cluster *cl, const dibs__endpoint *endpoint);

#endif
