/* driver.h - the hiredis library, loaded when the first server is spoken to.
 *
 * Nothing links to libhiredis: its functions are called through the table
 * below, `dibs__hi.redisReaderFeed(...)`. Only its reader is used. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_REDIS_WIRE_DRIVER_H
#define DIBS_STORE_REDIS_WIRE_DRIVER_H

#include <dibs/types.h>
#include <hiredis/hiredis.h>

#define DIBS__HIREDIS_CALLS(X)                                                 \
    X(freeReplyObject)                                                         \
    X(redisReaderCreate)                                                       \
    X(redisReaderFeed)                                                         \
    X(redisReaderFree)                                                         \
    X(redisReaderGetReply)

#define DIBS__HIREDIS_SLOT(call) __typeof__(call) *call;

typedef struct dibs__hiredis_calls {
    DIBS__HIREDIS_CALLS(DIBS__HIREDIS_SLOT)
} dibs__hiredis_calls;

/* Filled by dibs__hiredis_load(), constant afterwards. */
extern dibs__hiredis_calls dibs__hi;

/* Any thread; the first success is for good. DIBS_UNAVAIL: not installed, and
 * err says what to install. */
DIBS_MUST_CHECK dibs_status dibs__hiredis_load(dibs_error *err);

void dibs__reply_free(redisReply *reply); /* NULL is a no-op */

#endif
