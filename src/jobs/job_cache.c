/* job_cache.c - see job_cache.h. */
/* SPDX-License-Identifier: MIT */
#include "jobs/job_cache.h"

#include "base/alloc.h"
#include "base/hash.h"
#include "base/table.h"
#include "jobs/arena.h"
#include <stdio.h>
#include <string.h>

typedef struct entry {
    dibsx_table_node node; /* the first, so that it is turned into the entry */
    struct entry *older, *newer; /* by their last use */
    char hash[DIBS__JOB_HASH_SIZE];
    size_t bytes;
    dibs__job *job;
} entry;

struct dibs__job_cache {
    dibsx_table table;
    entry *oldest, *newest;
    size_t bytes, most;
};

dibs__job_cache *dibs__job_cache_new(size_t most_bytes)
{
    dibs__job_cache *cache = dibsx_zalloc(sizeof(*cache));

    if (cache)
        cache->most = most_bytes;
    return cache;
}

static void take_out(dibs__job_cache *cache, entry *en)
{
    *(en->older ? &en->older->newer : &cache->oldest) = en->newer;
    *(en->newer ? &en->newer->older : &cache->newest) = en->older;
    en->older = en->newer = NULL;
}

static void put_newest(dibs__job_cache *cache, entry *en)
{
    en->older = cache->newest;
    *(cache->newest ? &cache->newest->newer : &cache->oldest) = en;
    cache->newest = en;
}

static void drop_oldest(dibs__job_cache *cache)
{
    entry *en = cache->oldest;

    take_out(cache, en);
    dibsx_table_remove(&cache->table, &en->node);
    cache->bytes -= en->bytes;
    dibs__job_free(en->job);
    dibsx_free(en);
}

void dibs__job_cache_free(dibs__job_cache *cache)
{
    if (!cache)
        return;
    while (cache->oldest)
        drop_oldest(cache);
    dibsx_table_fini(&cache->table);
    dibsx_free(cache);
}

static entry *
find_entry(const dibs__job_cache *cache, const char *job, const char *hash)
{
    uint32_t code = dibsx_hash_text(hash);

    for (dibsx_table_node *at = dibsx_table_find(&cache->table, code); at;
         at = at->next) {
        entry *en = (entry *)at;

        if (at->hash == code && strcmp(en->hash, hash) == 0 &&
            strcmp(en->job->name, job) == 0)
            return en;
    }
    return NULL;
}

dibs__job *
dibs__job_cache_find(dibs__job_cache *cache, const char *job, const char *hash)
{
    entry *en = find_entry(cache, job, hash);

    if (!en)
        return NULL;
    take_out(cache, en);
    put_newest(cache, en);
    return dibs__job_hold(en->job);
}

void dibs__job_cache_add(dibs__job_cache *cache, dibs__job *job,
                         const char *hash)
{
    size_t bytes = sizeof(entry) + dibs__arena_bytes(job->arena);
    entry *en;

    if (bytes > cache->most || find_entry(cache, job->name, hash))
        return;
    en = dibsx_zalloc(sizeof(*en));
    if (!en)
        return;
    while (cache->bytes + bytes > cache->most)
        drop_oldest(cache);
    en->job = dibs__job_hold(job);
    en->bytes = bytes;
    (void)snprintf(en->hash, sizeof(en->hash), "%s", hash);
    cache->bytes += bytes;
    dibsx_table_add(&cache->table, &en->node, dibsx_hash_text(hash));
    put_newest(cache, en);
}
