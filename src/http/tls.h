/* tls.h - TLS 1.2 and 1.3 for the connections of a server. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_HTTP_TLS_H
#define DIBS_HTTP_TLS_H

#include <dibs/types.h>
#include <sys/types.h>

/* A certificate with its key, which may be replaced while connections go on. */
typedef struct dibs__http_tls dibs__http_tls;

/* Files in PEM. `client_ca` may be NULL; else clients may show a certificate of that
 * authority, and one of another authority is refused. */
typedef struct dibs__http_tls_files {
    const char *cert;
    const char *key; /* NULL: in the same file */
    const char *client_ca;
} dibs__http_tls_files;

/* End with dibs__http_tls_free(), after the stop of the servers that use it. */
DIBS_MUST_CHECK dibs_status dibs__http_tls_new(
    const dibs__http_tls_files *files, dibs__http_tls **out, dibs_error *err);
void dibs__http_tls_free(dibs__http_tls *tls);

/* Reads the files again: for connections from now on. The open ones keep what
 * they have. A failure changes nothing. Any thread. */
DIBS_MUST_CHECK dibs_status dibs__http_tls_reload(
    dibs__http_tls *tls, const dibs__http_tls_files *files, dibs_error *err);

/* -- For the server: one connection. Loop thread. */

typedef struct dibs__http_seal dibs__http_seal;

/* NULL: there is no memory. End with dibs__http_seal_free(). */
dibs__http_seal *dibs__http_seal_new(dibs__http_tls *tls, int fd);
void dibs__http_seal_free(dibs__http_seal *seal);

/* As recv() and send() without waiting; the handshake is part of them. EAGAIN: when
 * `*wants` (POLLIN or POLLOUT) is there; EPROTO: it is no TLS that can be used. */
ssize_t
dibs__http_seal_read(dibs__http_seal *seal, void *out, size_t size, int *wants);
ssize_t dibs__http_seal_write(dibs__http_seal *seal, const void *bytes,
                              size_t len, int *wants);

/* Says that no more will be written. */
void dibs__http_seal_end(dibs__http_seal *seal);

/* Whether bytes that have come may be read without waiting; whether the handshake is
 * over. */
bool dibs__http_seal_pending(const dibs__http_seal *seal);
bool dibs__http_seal_ready(const dibs__http_seal *seal);

/* The common name in the client's certificate; "" if it showed none. */
void dibs__http_seal_name(const dibs__http_seal *seal, char *out, size_t size);

#endif
