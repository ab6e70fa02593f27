/* conf.h - the configuration of a Redis server, from its URL.
 *
 *     redis://user:password@host:port/db?param=value
 *     rediss://...            the same over TLS
 *     redis+unix:///path/to/socket?db=0
 *     redis-cluster://user:password@host1:port,host2,host3
 *     rediss-cluster://...    the same over TLS
 *     redis-sentinel://user:password@h1:26379,h2,h3/mymaster/db
 *     rediss-sentinel://...   the same over TLS
 *     host:6379,password=...,ssl=True,abortConnect=False,connectTimeout=5000
 *
 * Parameters: password_file, user, db, client_name, connect_timeout (a
 * duration), lazy=1, strict=1, and for TLS: ca, cert, key, sni, insecure=1. With
 * Sentinel, where user and password are those of the servers: tls=1 (as
 * rediss-), sentinel_tls=0, sentinel_user, sentinel_password,
 * sentinel_password_file.
 *
 * A URL without a host uses REDIS_URL, or else REDIS_HOST and REDIS_PORT, or
 * else localhost. Parts that the URL gives itself override these. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_REDIS_WIRE_CONF_H
#define DIBS_STORE_REDIS_WIRE_CONF_H

#include "base/url.h"

typedef struct dibs__redis_conf {
    char *host;
    int port;
    char *path; /* of a unix socket; then host is NULL */
    char *user; /* NULL: the default user */
    char *password;
    int db;
    char *client_name;
    int64_t connect_timeout_ms; /* 0: only the step's deadline */
    bool strict;                /* refuse what the audit calls a danger */
    bool lazy;                  /* see dibs__store */
    bool unbatched; /* each command is sent by itself; see pipeline.h */
    bool tls;
    bool insecure;
    char *ca; /* file or folder; NULL: the system's */
    char *cert;
    char *key; /* NULL: in the file of the certificate */
    char *sni; /* the name to ask for and to verify; NULL: the host */

    /* The endpoints to ask for the server: sentinels, which call it `primary`;
     * or servers of a cluster, when that is NULL. None: `host` or `path` is the
     * server. */
    dibsx_url_host seeds[DIBSX_URL_HOSTS];
    size_t seed_count;
    char *primary;
    char *sentinel_user;
    char *sentinel_password;
    bool sentinel_tls; /* with `tls`: the sentinels speak it too */
} dibs__redis_conf;

/* Reads a parsed URL. Secrets come from the URL, a file or the environment
 * (DIBS_REDIS_PASSWORD, REDISCLI_AUTH, DIBS_REDIS_SENTINEL_PASSWORD) and are
 * never part of a message. Free with dibs__redis_conf_fini(). */
DIBS_MUST_CHECK dibs_status dibs__redis_conf_read(const dibsx_url *url,
                                                  dibs__redis_conf *conf,
                                                  dibs_error *err);
void dibs__redis_conf_fini(dibs__redis_conf *conf);

/* Whether a text is a StackExchange.Redis connection string; and that string as
 * a URL, for dibsx_url_parse(). Free the URL with dibsx_free(). */
bool dibs__redis_is_stackexchange(const char *text);
DIBS_MUST_CHECK dibs_status dibs__redis_stackexchange_url(const char *text,
                                                          char **out,
                                                          dibs_error *err);

#endif
