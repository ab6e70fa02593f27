/* resolve.h - host names to addresses, within a deadline.
 *
 * The system's resolver may block for long and cannot be stopped, so it runs on
 * a thread of its own, which is left behind when the time is up; a later caller
 * waits for that one instead of starting another. When there is no answer, the
 * last good one is used. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_REDIS_WIRE_RESOLVE_H
#define DIBS_STORE_REDIS_WIRE_RESOLVE_H

#include "store/redis/wire/socket.h"

typedef struct dibs__resolver dibs__resolver;

/* `host` is copied. NULL when memory is short. Free with
 * dibs__resolver_free(). */
dibs__resolver *dibs__resolver_new(const char *host, int port);
void dibs__resolver_free(dibs__resolver *rs); /* NULL is a no-op */

/* Writes up to DIBS__ADDRESS_MAX addresses, one at least. DIBS_UNAVAIL when
 * there are none. One thread at a time. */
DIBS_MUST_CHECK dibs_status dibs__resolve(dibs__resolver *rs,
                                          dibsx_nsec deadline,
                                          dibs__address *out, size_t *count,
                                          dibs_error *err);

#endif
