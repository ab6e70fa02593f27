/* grounds.c - the table of grounds. */
/* SPDX-License-Identifier: MIT */
#include "ground.h"

#include <string.h>

static const ground *const grounds[] = {
    &ground_sqlite,
#ifdef CHAOS_REDIS
    &ground_redis,    &ground_sentinel_async,   &ground_sentinel_wait,
    &ground_cluster,  &ground_redlock,          &ground_redlock3,
#endif
#ifdef CHAOS_POSTGRES
    &ground_postgres, &ground_postgres_standby, &ground_postgres_sync,
#endif
};

enum { GROUNDS = sizeof(grounds) / sizeof(grounds[0]) };

const ground *ground_at(size_t i)
{
    return i < GROUNDS ? grounds[i] : NULL;
}

const ground *ground_find(const char *name)
{
    for (size_t i = 0; i < GROUNDS; i++)
        if (strcmp(grounds[i]->name, name) == 0)
            return grounds[i];
    return NULL;
}

void ground_of_url(const char *url, ground *out)
{
    static const struct {
        const char *scheme;
        const char *topology;
        int64_t ttl_ms;
    } schemes[] = {
        {"redis-sentinel:", "sentinel-async", 3000},
        {"redis-cluster:", "cluster", 3000},
        {"rediss-cluster:", "cluster", 3000},
        {"redlock:", "redlock", 1000},
        {"redis", "redis", 500},
        {"postgres", "postgres", 1000},
        {"sqlite:", "sqlite", 200},
        {"", "unknown", 1000},
    };
    size_t i = 0;

    while (strncmp(url, schemes[i].scheme, strlen(schemes[i].scheme)) != 0)
        i++;
    *out = (ground){.name = "url",
                    .topology = schemes[i].topology,
                    .local = strcmp(schemes[i].topology, "sqlite") == 0,
                    .durability = "async",
                    .ttl_ms = schemes[i].ttl_ms,
                    .wait_ms = 10 * schemes[i].ttl_ms,
                    .timeout_ms = 5000,
                    .calm_ms = 5000};
}
