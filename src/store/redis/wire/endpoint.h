/* endpoint.h - the host and port of a server or a sentinel. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_REDIS_WIRE_ENDPOINT_H
#define DIBS_STORE_REDIS_WIRE_ENDPOINT_H

#include <stdbool.h>
#include <string.h>

enum { DIBS__HOST_MAX = 255 }; /* the longest name of a host */

typedef struct dibs__endpoint {
    char host[DIBS__HOST_MAX + 1]; /* "": none */
    int port;
} dibs__endpoint;

/* Whether two endpoints are the same. */
static inline bool
dibs__endpoint_is(const dibs__endpoint *endpoint, const dibs__endpoint *other)
{
    return endpoint->port == other->port &&
           strcmp(endpoint->host, other->host) == 0;
}

#endif
