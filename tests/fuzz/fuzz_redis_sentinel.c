/* fuzz_redis_sentinel.c - what sentinels say: the places that are read are places,
 * and nothing is read beyond what came. */
/* SPDX-License-Identifier: MIT */
#include "fuzz_reply.h"
#include "store/redis/sentinel/parse.h"
#include "store/redis/wire/reply.h"

static void check_place(const dibs__endpoint *place)
{
    REQUIRE(place->host[0] && strlen(place->host) <= DIBS__HOST_MAX);
    REQUIRE(place->port >= 1 && place->port <= 65535);
}

/* An address, a list of keys and values, and a list of such. */
static void read_reply(const redisReply *reply)
{
    const redisReply *item = reply;
    dibs__endpoint place;

    if (dibs__sentinel_read_endpoint(dibs__reply_item(reply, 0),
                                     dibs__reply_item(reply, 1), &place))
        check_place(&place);
    for (size_t i = 0; item; item = dibs__reply_item(reply, i++))
        if (dibs__sentinel_read_endpoint(dibs__sentinel_field(item, "ip"),
                                         dibs__sentinel_field(item, "port"),
                                         &place))
            check_place(&place);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);
    dibs__endpoint place;

    fuzz_reply(data, size, read_reply);
    if (dibs__sentinel_read_switch(text, "mymaster", &place))
        check_place(&place);
    free(text);
    return 0;
}
