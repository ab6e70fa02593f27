/* fuzz_redis_topology.c - the map of a cluster as a server sends it, and referrals:
 * what is read points at members that are there, what is refused leaves nothing. */
/* SPDX-License-Identifier: MIT */
#include "fuzz_reply.h"
#include "store/redis/cluster/topology.h"

static const dibs__endpoint asked = {.host = "seed", .port = 7000};

static void check_map(const dibs__topology *map)
{
    REQUIRE(map->count <= map->room && map->count <= DIBS__MEMBERS_MAX);
    for (size_t slot = 0; slot < DIBS__SLOTS; slot++) {
        REQUIRE(map->server[slot] <= map->count);
        REQUIRE(map->server[slot] == 0 ||
                map->members[map->server[slot] - 1].master);
    }
    for (size_t i = 0; i < map->count; i++) {
        const dibs__endpoint *endpoint = &map->members[i].endpoint;

        REQUIRE(endpoint->host[0] && strlen(endpoint->host) <= DIBS__HOST_MAX);
        REQUIRE(endpoint->port >= 1 && endpoint->port <= 65535);
    }
}

static void read_map(const redisReply *reply)
{
    dibs__topology map;
    dibs_error err = {0};

    if (dibs__topology_read(reply, &asked, &map, &err) == DIBS_OK)
        check_map(&map);
    else
        REQUIRE(!map.members && map.count == 0 && *err.message);
    dibs__topology_fini(&map);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);
    dibs__endpoint to;
    int slot;

    fuzz_reply(data, size, read_map);
    if (dibs__redirect_read(text, &asked, &slot, &to)) {
        REQUIRE(slot >= 0 && slot < DIBS__SLOTS);
        REQUIRE(to.port >= 1 && to.port <= 65535 && to.host[0]);
    }
    free(text);
    return 0;
}
