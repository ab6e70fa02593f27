/* place.h - where a server or a sentinel is. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_REDIS_PLACE_H
#define DIBS_STORE_REDIS_PLACE_H

#include <stdbool.h>
#include <string.h>

enum { DIBS__HOST_MAX = 255 }; /* the longest name of a host */

typedef struct dibs__place {
    char host[DIBS__HOST_MAX + 1]; /* "": nowhere */
    int port;
} dibs__place;

/* Whether two places are one. */
static inline bool
dibs__place_is(const dibs__place *place, const dibs__place *other)
{
    return place->port == other->port && strcmp(place->host, other->host) == 0;
}

#endif
