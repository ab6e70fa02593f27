/* reply.c - reading the answers of scripts. Pure. */
/* SPDX-License-Identifier: MIT */
#include "store/redis/wire/reply.h"
#include "base/fail.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

const redisReply *dibs__reply_item(const redisReply *reply, size_t i)
{
    if (!reply || reply->type != REDIS_REPLY_ARRAY || i >= reply->elements)
        return NULL;
    return reply->element[i];
}

bool dibs__reply_int(const redisReply *reply, int64_t *out)
{
    char *end;

    if (reply && reply->type == REDIS_REPLY_INTEGER) {
        *out = reply->integer;
        return true;
    }
    if (!reply || reply->type != REDIS_REPLY_STRING || reply->len == 0)
        return false;
    errno = 0;
    *out = strtoll(reply->str, &end, 10);
    return errno == 0 && *end == '\0';
}

int dibs__reply_status(const redisReply *reply)
{
    int64_t number;

    if (reply && reply->type == REDIS_REPLY_ARRAY)
        reply = dibs__reply_item(reply, 0);
    if (!reply || reply->type != REDIS_REPLY_INTEGER ||
        !dibs__reply_int(reply, &number) || number < 0 || number > DIBS_FORKED)
        return -1;
    return (int)number;
}

void dibs__reply_text(const redisReply *reply, char *out, size_t size)
{
    size_t len = 0;

    if (reply && reply->type == REDIS_REPLY_STRING) {
        len = (size_t)reply->len < size - 1 ? (size_t)reply->len : size - 1;
        memcpy(out, reply->str, len);
    }
    out[len] = '\0';
}

dibs_status dibs__reply_odd(dibs_error *err)
{
    return dibsx_fail(err, DIBS_UNKNOWN,
                      "the server gave an answer that makes no sense");
}
