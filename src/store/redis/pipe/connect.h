/* connect.h - connects: to the server of the URL, to the primary that sentinels
 * name, or to a server of a cluster. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_REDIS_PIPE_CONNECT_H
#define DIBS_STORE_REDIS_PIPE_CONNECT_H

#include "store/redis/sentinel/sentinel.h"

/* Zeroed storage with `conf` set is ready; `sentinel` or `endpoint` is set
 * where it applies. All three are borrowed until dibs__connect_fini(). One
 * thread at a time. */
typedef struct dibs__connect {
    const dibs__redis_conf *conf;
    dibs__sentinel *sentinel; /* names the primary; or */
    const dibs__endpoint
        *endpoint;      /* the server is here; both NULL: as `conf` says */
    dibs__resolver *rs; /* of the host in `conf`; NULL: not needed yet */
    uint64_t moves;     /* of the sentinel, as of the last attempt */
} dibs__connect;

void dibs__connect_fini(dibs__connect *ct);

/* Makes one attempt, of conf->connect_timeout_ms at most. `demoted`: the last
 * connection proved to be to a replica. Statuses as those of dibs__conn_open()
 * and dibs__sentinel_connect(). */
DIBS_MUST_CHECK dibs_status dibs__connect_open(dibs__connect *ct, bool demoted,
                                               dibsx_nsec deadline,
                                               dibs__conn **out,
                                               dibs_error *err);

/* Whether another server has become the primary since the last attempt. Ask
 * once the connection is where dibs__moved_fn finds it. */
bool dibs__connect_has_moved(const dibs__connect *ct);

/* Whether sentinels may choose a new primary any moment, so that waiting pays;
 * the old one has been out of reach since `lost_at`. */
bool dibs__connect_is_worth_a_wait(const dibs__connect *ct, dibs_status rc,
                                   dibsx_nsec lost_at, dibsx_nsec now);

#endif
