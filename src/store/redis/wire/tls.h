/* tls.h - TLS over a connected socket, with OpenSSL.
 *
 * The peer and its name are verified unless the configuration says `insecure`.
 * OpenSSL is loaded when the first connection needs it. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_REDIS_WIRE_TLS_H
#define DIBS_STORE_REDIS_WIRE_TLS_H

#include "base/clock.h"
#include "store/redis/wire/conf.h"
#include <sys/types.h>

typedef struct dibs__tls dibs__tls;

/* Shakes hands until the deadline. `fd` stays the caller's and outlives it.
 *   DIBS_DENIED   the certificate of either side was not accepted
 *   DIBS_REFUSED  the server does not speak TLS, or none that is new enough
 *   DIBS_INVALID  a file of the configuration cannot be used
 *   DIBS_UNAVAIL  anything else; the deadline too */
DIBS_MUST_CHECK dibs_status dibs__tls_open(const dibs__redis_conf *conf, int fd,
                                           dibsx_nsec deadline, dibs__tls **out,
                                           dibs_error *err);
void dibs__tls_close(dibs__tls *tls); /* NULL is a no-op */

/* Whether a read would find bytes without the socket being readable. */
bool dibs__tls_pending(dibs__tls *tls);

/* Neither blocks: the number of bytes, 0 when it must be tried again after the
 * socket is ready, -1 when the connection is of no more use and err says why. A
 * write that was to be tried again is repeated with the same bytes. One thread
 * may read while another writes. */
ssize_t dibs__tls_read(dibs__tls *tls, void *out, size_t len, dibs_error *err);
ssize_t
dibs__tls_write(dibs__tls *tls, const void *bytes, size_t len, dibs_error *err);

#endif
