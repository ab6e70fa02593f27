/* fuzz_redis_sentinel.c - what sentinels say: the places that are read are places,
 * and nothing is read beyond what came. */
/* SPDX-License-Identifier: MIT */
#include "fuzz.h"
#include "store/redis/driver.h"
#include "store/redis/reply.h"
#include "store/redis/resp.h"
#include "store/redis/sentinel_read.h"

static void check_place(const dibs__place *place)
{
    REQUIRE(place->host[0] && strlen(place->host) <= DIBS__HOST_MAX);
    REQUIRE(place->port >= 1 && place->port <= 65535);
}

/* An address, a list of keys and values, and a list of such. */
static void read_reply(const redisReply *reply)
{
    const redisReply *item = reply;
    dibs__place place;

    if (dibs__sentinel_read_place(dibs__reply_item(reply, 0),
                                  dibs__reply_item(reply, 1), &place))
        check_place(&place);
    for (size_t i = 0; item; item = dibs__reply_item(reply, i++))
        if (dibs__sentinel_read_place(dibs__sentinel_field(item, "ip"),
                                      dibs__sentinel_field(item, "port"),
                                      &place))
            check_place(&place);
}

/* As on a connection: the guard first, then the reader. */
static void read_bytes(const char *bytes, size_t len)
{
    redisReader *reader = dibs__hi.redisReaderCreate();
    dibs__guard guard = {0};
    void *reply = NULL;

    REQUIRE(reader);
    if (!dibs__guard_admit(&guard, bytes, len) &&
        dibs__hi.redisReaderFeed(reader, bytes, len) == REDIS_OK &&
        dibs__hi.redisReaderGetReply(reader, &reply) == REDIS_OK && reply) {
        read_reply(reply);
        dibs__reply_free(reply);
    }
    dibs__hi.redisReaderFree(reader);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);
    dibs__place place;

    REQUIRE(dibs__hiredis_load(NULL) == DIBS_OK);
    read_bytes((const char *)data, size);
    if (dibs__sentinel_read_switch(text, "mymaster", &place))
        check_place(&place);
    free(text);
    return 0;
}
