/* reply.h - reading the answers of scripts. Pure. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_REDIS_WIRE_REPLY_H
#define DIBS_STORE_REDIS_WIRE_REPLY_H

#include <dibs/types.h>
#include <hiredis/hiredis.h>

/* An item of a list; NULL when it is no list or has none there. */
const redisReply *dibs__reply_item(const redisReply *reply, size_t i);

/* A whole number, which may come as text; false when it is none. */
bool dibs__reply_int(const redisReply *reply, int64_t *out);

/* A status as scripts answer it: a number, or a list that begins with one. -1
 * when it is neither. */
int dibs__reply_status(const redisReply *reply);

/* Copies text, cut to fit; "" when there is none. */
void dibs__reply_text(const redisReply *reply, char *out, size_t size);

/* The server answered what no script of ours does: it may have done anything. */
dibs_status dibs__reply_odd(dibs_error *err);

#endif
