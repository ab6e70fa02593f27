/* fuzz_reply.h - bytes as a reply of a server, for fuzz targets. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_TESTS_FUZZ_REPLY_H
#define DIBS_TESTS_FUZZ_REPLY_H

#include "fuzz.h"
#include "store/redis/wire/driver.h"
#include "store/redis/wire/resp.h"

/* As on a connection: the guard first, then the reader. */
static inline void
fuzz_reply(const uint8_t *data, size_t size, void (*each)(const redisReply *))
{
    const char *bytes = (const char *)data;
    dibs__guard guard = {0};
    redisReader *reader;
    void *reply = NULL;

    REQUIRE(dibs__hiredis_load(NULL) == DIBS_OK);
    reader = dibs__hi.redisReaderCreate();
    REQUIRE(reader);
    if (!dibs__guard_admit(&guard, bytes, size) &&
        dibs__hi.redisReaderFeed(reader, bytes, size) == REDIS_OK &&
        dibs__hi.redisReaderGetReply(reader, &reply) == REDIS_OK && reply) {
        each(reply);
        dibs__reply_free(reply);
    }
    dibs__hi.redisReaderFree(reader);
}

#endif
