/* fuzz_redis_sentinel.c - what sentinels say: the places that are read are places,
 * and nothing is read beyond what came. */
/* SPDX-License-Identifier: MIT */
#include "fuzz_reply.h"
#include "store/redis/sentinel/parse.h"
#include "store/redis/wire/reply.h"

static void check_endpoint(const dibs__endpoint *endpoint)
{
    REQUIRE(endpoint->host[0] && strlen(endpoint->host) <= DIBS__HOST_MAX);
    REQUIRE(endpoint->port >= 1 && endpoint->port <= 65535);
}

/* An address, a list of keys and values, and a list of such. */
static void read_reply(const redisReply *reply)
{
    const redisReply *item = reply;
    dibs__endpoint endpoint;

    if (dibs__sentinel_read_endpoint(dibs__reply_item(reply, 0),
                                     dibs__reply_item(reply, 1), &endpoint))
        check_endpoint(&endpoint);
    for (size_t i = 0; item; item = dibs__reply_item(reply, i++))
        if (dibs__sentinel_read_endpoint(dibs__sentinel_field(item, "ip"),
                                         dibs__sentinel_field(item, "port"),
                                         &endpoint))
            check_endpoint(&endpoint);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);
    dibs__endpoint endpoint;

    fuzz_reply(data, size, read_reply);
    if (dibs__sentinel_read_switch(text, "mymaster", &endpoint))
        check_endpoint(&endpoint);
    free(text);
    return 0;
}
