/* conn_open.c - opens a connection: connects and does the handshakes.
 *
 * Owns nothing. Runs on the thread of the caller. */
/* SPDX-License-Identifier: MIT */
#include "base/fail.h"
#include "base/forget.h"
#include "store/redis/wire/conn.h"
#include "store/redis/wire/handshake.h"

static dibs_status
open_unless(const dibs__redis_conf *conf, dibs__resolver *rs, int abort_fd,
            dibsx_nsec deadline, dibs__conn **out, dibs_error *err)
{
    dibs__conn *cn = NULL;
    dibs_status rc = dibs__conn_start(conf, rs, abort_fd, deadline, &cn, err);

    *out = NULL;
    if (rc == DIBS_OK)
        rc = dibs__handshake(cn, conf, deadline, err);
    dibsx_forget();
    if (rc == DIBS_OK) {
        dibs__conn_settle(cn);
        *out = cn;
    } else {
        dibs__conn_close(cn);
    }
    return rc;
}

dibs_status
dibs__conn_open(const dibs__redis_conf *conf, dibs__resolver *rs,
                dibsx_nsec deadline, dibs__conn **out, dibs_error *err)
{
    return open_unless(conf, rs, -1, deadline, out, err);
}

dibs_status
dibs__conn_open_at(const dibs__redis_conf *conf, const dibs__endpoint *endpoint,
                   int abort_fd, dibsx_nsec deadline, dibs__conn **out,
                   dibs_error *err)
{
    dibs__resolver *rs = dibs__resolver_new(endpoint->host, endpoint->port);
    dibs__redis_conf endpoint_conf = *conf;
    dibs__endpoint at = *endpoint;
    dibs_status rc;

    *out = NULL;
    if (!rs)
        return dibsx_nomem(err, "a connection");
    endpoint_conf.host = at.host;
    endpoint_conf.port = at.port;
    rc = open_unless(&endpoint_conf, rs, abort_fd, deadline, out, err);
    dibs__resolver_free(rs);
    return rc;
}
