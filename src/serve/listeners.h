/* listeners.h - where the daemon listens: addresses, sockets of the file system, those
 * that the service manager has opened; and the certificate. Main thread. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_SERVE_LISTENERS_H
#define DIBS_SERVE_LISTENERS_H

#include "http/server.h"
#include "serve/log.h"
#include "serve/serve.h"

/* The kind of a listener: which requests it takes. */
typedef enum dibs__serve_at {
    DIBS__SERVE_AT_PORT,
    DIBS__SERVE_AT_SOCKET, /* of the file system: its user needs no token */
    DIBS__SERVE_AT_METRICS /* metrics and probes alone, without a token */
} dibs__serve_at;

typedef struct dibs__serve_listeners {
    dibs__http_listener items[DIBS__HTTP_LISTENERS_MAX];
    size_t count;
    dibs__http_tls *tls;                       /* NULL: none */
    char paths[DIBS__HTTP_LISTENERS_MAX][108]; /* to be removed at the end */
} dibs__serve_listeners;

/* Checks addresses, the certificate and the rule that other machines are reached with
 * TLS and tokens alone. Opens nothing. */
DIBS_MUST_CHECK dibs_status
dibs__serve_listeners_check(const dibs__serve_opts *opts, dibs_error *err);

/* Opens all of them, after the check. End with dibs__serve_listeners_fini(), also after
 * a failure. */
DIBS_MUST_CHECK dibs_status dibs__serve_listeners_open(
    dibs__serve_listeners *ls, const dibs__serve_opts *opts,
    dibs__serve_log *log, dibs_error *err);

/* The first address for requests, as a browser has it: "http://127.0.0.1:3427". False:
 * there is none. */
DIBS_MUST_CHECK bool dibs__serve_listeners_url(const dibs__serve_listeners *ls,
                                               char *out, size_t size);

/* Forgets the sockets, which the server has taken. */
void dibs__serve_listeners_taken(dibs__serve_listeners *ls);

/* Reads the certificate again; connections that are there go on. A no-op without. */
DIBS_MUST_CHECK dibs_status dibs__serve_listeners_reload(
    dibs__serve_listeners *ls, const dibs__serve_opts *opts, dibs_error *err);

/* Removes the sockets of the file system, while somebody still listens on them: with the
 * last one gone, another daemon may take the path. */
void dibs__serve_listeners_unlink(dibs__serve_listeners *ls);

void dibs__serve_listeners_fini(dibs__serve_listeners *ls);

#endif
