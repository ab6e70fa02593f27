/* connect.h - how a connection is made: to the server of the URL, to the primary that
 * sentinels name, or to a server of a cluster. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_REDIS_PIPE_CONNECT_H
#define DIBS_STORE_REDIS_PIPE_CONNECT_H

#include "store/redis/sentinel/sentinel.h"

/* Zeroed but for `conf`, and for `sentinel` or `endpoint` where they count, it is ready;
 * they are borrowed until dibs__connect_fini(). One thread at a time. */
typedef struct dibs__connect {
    const dibs__redis_conf *conf;
    dibs__sentinel *sentinel; /* says where the server is; or */
    const dibs__endpoint
        *endpoint;      /* ... this is where; both NULL: as `conf` says */
    dibs__resolver *rs; /* of the host in `conf`; NULL: not needed yet */
    uint64_t moves;     /* of the sentinel, as of the last attempt */
} dibs__connect;

void dibs__connect_fini(dibs__connect *ct);

/* One attempt, for which there is conf->connect_timeout_ms at most. `demoted`: the
 * last connection proved to be to a replica. Statuses as those of
 * dibs__conn_open() and dibs__sentinel_connect(). */
DIBS_MUST_CHECK dibs_status dibs__connect_open(dibs__connect *ct, bool demoted,
                                               dibsx_nsec deadline,
                                               dibs__conn **out,
                                               dibs_error *err);

/* Whether another server has become the primary since the last attempt: asked once
 * the connection is where dibs__moved_fn finds it. */
bool dibs__connect_has_moved(const dibs__connect *ct);

/* Whether a new primary may be chosen any moment, so that one which cannot be had
 * since `lost_at` is worth being waited for. */
bool dibs__connect_is_worth_a_wait(const dibs__connect *ct, dibs_status rc,
                                   dibsx_nsec lost_at, dibsx_nsec now);

#endif
