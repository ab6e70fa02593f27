/* connect.c - connects to a server.
 *
 * Owns the resolver of its host. Runs on the thread that connects. */
/* SPDX-License-Identifier: MIT */
#include "store/redis/pipe/connect.h"
#include "base/fail.h"

void dibs__connect_fini(dibs__connect *ct)
{
    dibs__resolver_free(ct->rs);
    ct->rs = NULL;
}

dibs_status
dibs__connect_open(dibs__connect *ct, bool demoted, dibsx_nsec deadline,
                   dibs__conn **out, dibs_error *err)
{
    const dibs__redis_conf *conf = ct->conf;

    *out = NULL;
    if (conf->connect_timeout_ms > 0) {
        dibsx_nsec limit =
            dibsx_after_ms(dibsx_now(), conf->connect_timeout_ms);

        deadline = limit < deadline ? limit : deadline;
    }
    if (ct->sentinel)
        return dibs__sentinel_connect(ct->sentinel, demoted, deadline,
                                      &ct->moves, out, err);
    if (ct->endpoint)
        return dibs__conn_open_at(conf, ct->endpoint, -1, deadline, out, err);
    if (conf->host && !ct->rs)
        ct->rs = dibs__resolver_new(conf->host, conf->port);
    if (conf->host && !ct->rs)
        return dibsx_nomem(err, "a connection");
    return dibs__conn_open(conf, ct->rs, deadline, out, err);
}

bool dibs__connect_has_moved(const dibs__connect *ct)
{
    return ct->sentinel && dibs__sentinel_moves(ct->sentinel) != ct->moves;
}

bool dibs__connect_is_worth_a_wait(const dibs__connect *ct, dibs_status rc,
                                   dibsx_nsec lost_at, dibsx_nsec now)
{
    int64_t limit_ms = ct->conf->connect_timeout_ms;

    return ct->sentinel && rc == DIBS_UNAVAIL &&
           (limit_ms == 0 || now < dibsx_after_ms(lost_at, limit_ms));
}
