/* parse.h - reads replies of sentinels, any of which may be wrong. Pure. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_REDIS_SENTINEL_PARSE_H
#define DIBS_STORE_REDIS_SENTINEL_PARSE_H

#include "store/redis/wire/endpoint.h"
#include <hiredis/hiredis.h>

/* An endpoint, of two replies, which may be NULL. False when it makes no
 * sense. */
bool dibs__sentinel_read_endpoint(const redisReply *host,
                                  const redisReply *port, dibs__endpoint *out);

/* The value of a key in a list of keys and values; NULL when it is not there. */
const redisReply *
dibs__sentinel_field(const redisReply *pairs, const char *key);

/* The new primary, of "NAME OLD-HOST OLD-PORT HOST PORT" as +switch-master has it.
 * False when it is about another name, or makes no sense. */
bool dibs__sentinel_read_switch(const char *line, const char *name,
                                dibs__endpoint *out);

#endif
