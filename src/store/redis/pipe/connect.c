/* connect.c - how a connection to the server is made.
 *
 * Owns the resolver of its host. Runs on the thread that connects. */
/* SPDX-License-Identifier: MIT */
#include "store/redis/pipe/connect.h"
#include "base/fail.h"

void dibs__connect_fini(dibs__connect *wy)
{
    dibs__resolver_free(wy->rs);
    wy->rs = NULL;
}

dibs_status
dibs__connect_open(dibs__connect *wy, bool demoted, dibsx_nsec deadline,
                   dibs__conn **out, dibs_error *err)
{
    const dibs__redis_conf *conf = wy->conf;

    *out = NULL;
    if (conf->connect_timeout_ms > 0) {
        dibsx_nsec limit =
            dibsx_after_ms(dibsx_now(), conf->connect_timeout_ms);

        deadline = limit < deadline ? limit : deadline;
    }
    if (wy->sentinel)
        return dibs__sentinel_connect(wy->sentinel, demoted, deadline,
                                      &wy->moves, out, err);
    if (wy->place)
        return dibs__conn_open_at(conf, wy->place, -1, deadline, out, err);
    if (conf->host && !wy->rs)
        wy->rs = dibs__resolver_new(conf->host, conf->port);
    if (conf->host && !wy->rs)
        return dibsx_nomem(err, "a connection");
    return dibs__conn_open(conf, wy->rs, deadline, out, err);
}

bool dibs__connect_has_moved(const dibs__connect *wy)
{
    return wy->sentinel && dibs__sentinel_moves(wy->sentinel) != wy->moves;
}

bool dibs__connect_is_worth_a_wait(const dibs__connect *wy, dibs_status rc,
                                   dibsx_nsec lost_at, dibsx_nsec now)
{
    int64_t limit_ms = wy->conf->connect_timeout_ms;

    return wy->sentinel && rc == DIBS_UNAVAIL &&
           (limit_ms == 0 || now < dibsx_after_ms(lost_at, limit_ms));
}
