/* value_reply.h - values as the scripts take and answer them. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_REDIS_VALUE_REPLY_H
#define DIBS_STORE_REDIS_VALUE_REPLY_H

#include <dibs/state.h>
#include <hiredis/hiredis.h>

/* A value: its version, the time left and its data are the items of a reply from `at`
 * on. *out is zeroed where the version is 0, and without DIBS_OK. Free it with
 * dibs_value_free(). */
DIBS_MUST_CHECK dibs_status dibs__redis_read_value(const redisReply *reply,
                                                   size_t at, dibs_value *out,
                                                   dibs_error *err);

/* The ttl of a value as servers take it; 0: for ever. */
int64_t dibs__redis_value_ttl(int64_t ttl_ms);

#endif
