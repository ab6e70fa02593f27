/* serve.h - `dibs serve`: the HTTP daemon, and the access tokens of its callers.
 * All that the command sees of it. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_SERVE_SERVE_H
#define DIBS_SERVE_SERVE_H

#include "serve/token.h"
#include <dibs/dibs.h>

#define DIBS__SERVE_LISTEN "127.0.0.1:3427"

/* Which requests the log has lines about. */
typedef enum dibs__serve_access_log {
    DIBS__SERVE_LOG_ALL,
    DIBS__SERVE_LOG_ERRORS,
    DIBS__SERVE_LOG_NONE
} dibs__serve_access_log;

/* Whether the daemon executes jobs. */
typedef enum dibs__serve_engine_use {
    DIBS__SERVE_ENGINE_AUTO, /* with jobs files */
    DIBS__SERVE_ENGINE_ON,
    DIBS__SERVE_ENGINE_OFF
} dibs__serve_engine_use;

/* Settings that SIGHUP changes. */
typedef struct dibs__serve_live {
    char *hosts; /* NULL: none; freed with dibsx_free() */
    unsigned address_max, handshake_rate, token_rate;
    dibs_log_level log_level;
} dibs__serve_live;

/* Reads them again, from where the settings came from. Main thread. */
typedef dibs_status
dibs__serve_reread_fn(const void *arg, dibs__serve_live *out, dibs_error *err);

/* Texts are borrowed until the daemon has ended. */
typedef struct dibs__serve_opts {
    dibs__serve_reread_fn *reread;
    const void *reread_arg;
    const char *url;
    const char *data_url; /* of what is no lock; NULL: there too */
    const char *prefix;   /* may be NULL */
    int64_t timeout_ms;   /* of one step of the store */
    bool share_stats;
    dibs_log_level log_level;
    const char *listen;   /* "127.0.0.1:3427,[::1]:3427,unix:/run/x.sock" */
    unsigned socket_mode; /* of such a file, 0600 */
    const char *tls_cert; /* file; NULL: without TLS */
    const char *tls_key;  /* NULL: in the same file */
    const char *tls_client_ca;   /* may be NULL */
    const char *metrics_listen;  /* metrics without a token; may be NULL */
    bool metrics_open;           /* elsewhere than on loopback too */
    const char *metrics_classes; /* "tenant:*:sync,user-*"; may be NULL */
    const char *trusted_proxies; /* "10.0.0.0/8,::1"; may be NULL */
    unsigned address_max;        /* connections of one address */
    unsigned handshake_rate;     /* of one address, a second; 0: no limit */
    unsigned token_rate;         /* requests a second; 0: without limit */
    const char *base_path;       /* "/dibs"; NULL or "/": none */
    const char *hosts;  /* names of this server, with commas; may be NULL */
    const char *tokens; /* file; NULL: the default one, made if missing */
    bool plaintext;     /* elsewhere than on loopback too: behind a proxy */
    bool json;          /* log lines as JSON */
    dibs__serve_access_log access;
    unsigned connections_max;
    unsigned streams_max; /* of them; 0: half */
    unsigned sessions_max;
    unsigned session_leases; /* of one session */
    bool ready_needs_store;
    int64_t look_every_ms;
    int64_t start_wait_ms;
    int64_t drain_delay_ms; /* answering, but not ready */
    int64_t drain_ms;       /* for requests and commands under way */
    const char *jobs;       /* files, with commas; may be NULL */
    dibs__serve_engine_use engine;
    const char *board;  /* NULL: that of the files, or main */
    const char *labels; /* of the node, with commas; may be NULL */
    unsigned slots;     /* commands at a time */
    int64_t node_ttl_ms;
    const char *sweep_prefix; /* of the locks of its sweeps */
    int64_t retry_every_ms, timeout_every_ms, resume_every_ms, cleanup_every_ms;
} dibs__serve_opts;

/* Serves until SIGTERM or SIGINT. Blocks these and SIGHUP on the calling thread. */
DIBS_MUST_CHECK dibs_status dibs__serve_run(const dibs__serve_opts *opts,
                                            dibs_error *err);

/* Checks the settings and the token file, and changes nothing. */
DIBS_MUST_CHECK dibs_status dibs__serve_check(const dibs__serve_opts *opts,
                                              dibs_error *err);

#endif
