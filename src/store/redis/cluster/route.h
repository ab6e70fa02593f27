/* route.h - chooses the pipeline for a command; no other file does.
 *
 * One server has one pipeline, and everything goes there; likewise the primary
 * that sentinels name, which the pipeline follows. In a cluster the keys of a
 * command decide, and the route follows the cluster as it changes:
 *
 *   MOVED             the map is corrected, and the command sent to the new server
 *   ASK               it is sent there this once, with ASKING before it
 *   TRYAGAIN, CLUSTERDOWN, LOADING, NOREPLICAS, no connection, no slots yet
 *                     after a pause, which grows, it is tried again
 *
 * until the deadline, as long as it is certain that nothing was done. After
 * NOREPLICAS a command to the primary that sentinels name is tried again too: a
 * promoted replica answers so until others follow it. A command
 * that was sent and not answered is DIBS_UNKNOWN, as on one server. When no
 * server of the cluster answers at all, DIBS_UNAVAIL comes at once. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_REDIS_CLUSTER_ROUTE_H
#define DIBS_STORE_REDIS_CLUSTER_ROUTE_H

#include "store/redis/cluster/cluster.h"
#include "store/redis/pipe/pipeline.h"

typedef struct dibs__route dibs__route;

/* Touches no network. `cluster` is NULL for one server; it and `conf` are borrowed
 * until dibs__route_free(). */
DIBS_MUST_CHECK dibs_status dibs__route_new(const dibs__redis_conf *conf,
                                            dibs__cluster *cluster,
                                            dibs__request_kind kind,
                                            dibs__route **out, dibs_error *err);
void dibs__route_free(dibs__route *rt); /* NULL is a no-op */

/* For one server: as dibs__pipeline_follow() and dibs__pipeline_drop(). */
void dibs__route_follow(dibs__route *rt, struct dibs__sentinel *sentinel);
void dibs__route_drop(dibs__route *rt);

/* As dibs__pipeline_distrust(), for the server of a key. */
void dibs__route_distrust(dibs__route *rt, const char *key, size_t len);

/* The cluster; NULL for one server. */
dibs__cluster *dibs__route_cluster(const dibs__route *rt);

/* Sends a command whose word `key_at` is a key, which decides the server; 0
 * when it has none and any server will do. Statuses as those of
 * dibs__pipeline_call(). */
DIBS_MUST_CHECK dibs_status dibs__route_call(dibs__route *rt,
                                             const dibs__part *part,
                                             const dibs__words *words,
                                             int key_at, dibsx_nsec deadline,
                                             redisReply **out, dibs_error *err);

/* Sends a command to one server of the cluster and nowhere else; without a
 * cluster to the only one. */
DIBS_MUST_CHECK dibs_status dibs__route_call_at(
    dibs__route *rt, const dibs__endpoint *endpoint, const dibs__words *words,
    dibsx_nsec deadline, redisReply **out, dibs_error *err);

/* As dibs__pipeline_link() and dibs__pipeline_call_on(), for one server. In a cluster
 * there is no link, and no call is made on one. */
void dibs__route_link(dibs__route *rt, dibs__link *out);
DIBS_MUST_CHECK dibs_status
dibs__route_call_on(dibs__route *rt, uint64_t number, const dibs__words *words,
                    dibsx_nsec deadline, redisReply **out, dibs_error *err);

/* The pipeline of the only server, to post on; NULL in a cluster. */
dibs__pipeline *dibs__route_only(const dibs__route *rt);

/* As dibs__pipeline_calls(), for one server. */
struct dibs__pending;
void dibs__route_calls(dibs__route *rt, struct dibs__pending *commands,
                       size_t count);

/* Sends a command to the server at an endpoint by other means than a pipeline;
 * `asking`: with ASKING right before it. Statuses as those of
 * dibs__pipeline_call(). */
typedef dibs_status
dibs__carry_fn(void *arg, const dibs__endpoint *endpoint, bool asking,
               dibsx_nsec deadline, redisReply **out, dibs_error *err);

/* As dibs__route_call(), in a cluster; `carry` sends the command. */
DIBS_MUST_CHECK dibs_status dibs__route_carry(dibs__route *rt,
                                              const dibs__words *words,
                                              int key_at, dibs__carry_fn *carry,
                                              void *arg, dibsx_nsec deadline,
                                              redisReply **out,
                                              dibs_error *err);

/* As dibs__pipeline_unit(), to the server of a slot, once: a redirection is the
 * reply. */
DIBS_MUST_CHECK dibs_status dibs__route_unit(dibs__route *rt, int slot,
                                             const char *bytes, size_t len,
                                             int count, dibsx_nsec deadline,
                                             redisReply **out, dibs_error *err);

#endif
