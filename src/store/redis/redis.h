/* redis.h - the Redis store: one server, or a cluster. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_REDIS_REDIS_H
#define DIBS_STORE_REDIS_REDIS_H

#include "store/store.h"

/* redis://user:password@host:port/db */
extern const dibs__store_ops dibs__redis_ops;

/* rediss://: the same over TLS. */
extern const dibs__store_ops dibs__rediss_ops;

/* redis+unix:///path/to/socket */
extern const dibs__store_ops dibs__redis_unix_ops;

/* redis-sentinel://h1,h2,h3/mymaster: the primary that the sentinels name; and over
 * TLS. */
extern const dibs__store_ops dibs__redis_sentinel_ops;
extern const dibs__store_ops dibs__rediss_sentinel_ops;

/* redis-cluster://host1:port,host2,host3; and over TLS. */
extern const dibs__store_ops dibs__redis_cluster_ops;
extern const dibs__store_ops dibs__rediss_cluster_ops;

#endif
