/* spread.h - makes calls for several slots of a cluster, one after the other.
 *
 * A server that does not answer takes a part of the time only, and those that
 * failed last come last, so that the calls to the others are made in any case. Any
 * thread. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_REDIS_CLUSTER_SPREAD_H
#define DIBS_STORE_REDIS_CLUSTER_SPREAD_H

#include "store/redis/cluster/cluster.h"

typedef struct dibs__spread {
    dibs__cluster *cluster;
    size_t count;
    int64_t patience_ms; /* for each server */
    dibsx_nsec deadline; /* of all */

    /* The slot of a call; and the call, which ends at `until`. */
    int (*slot)(void *arg, size_t i);
    dibs_status (*call)(void *arg, size_t i, dibsx_nsec until, dibs_error *err);
    void *arg;
} dibs__spread;

/* DIBS_OK when one of the calls was DIBS_OK; otherwise their status, which is
 * DIBS_UNKNOWN if they differ. In both cases *err is of the first call, in their
 * order, that was not DIBS_OK. A call for which no time is left is not made. */
DIBS_MUST_CHECK dibs_status dibs__spread_run(const dibs__spread *sp,
                                             dibs_error *err);

#endif
