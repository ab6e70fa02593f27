/* bench_redis.c - locks on a Redis server, beside the bare driver.
 *
 *     bench_redis PORT pair BLOCKS     one thread, beside a bare hiredis loop
 *     bench_redis PORT crew BLOCKS     64 threads, beside that loop
 *     bench_redis PORT async BLOCKS    64 lockers on one thread with an event loop,
 *                                      beside a bare loop with 16 on the way
 *     bench_redis PORT memory LOCKS    bytes for each lock that is held: "KEYS
 *                                      SERVER CLIENT", by MEMORY USAGE of all
 *                                      keys, INFO and the allocator
 *
 * bench/pairs.h has the form of the other output. The server should be idle, empty
 * and of this machine. */
/* SPDX-License-Identifier: MIT */
#include "bench/lockers.h"
#include "bench/pairs.h"
#include "bench/raw.h"
#include "bench/samples.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CREW = 64, BARE_PAIRS = 2000, FLYING = 16, LOCKER_PAIRS = 50 };

static void bare_pair(void *r)
{
    raw_pair(r);
}

static void measure_pair(raw *r, dibs_client *client, size_t blocks)
{
    dibs_lock *lock = lock_new(client, 0, 0);

    measure_pairs(&(side){bare_pair, r}, &(side){lock_pair, lock}, blocks);
    dibs_lock_free(lock);
}

static void bare_lockers(void *r)
{
    for (int i = 0; i < LOCKER_PAIRS; i++)
        raw_pairs(r, CREW, FLYING);
}

static void our_lockers(void *ls)
{
    lockers_work(ls, LOCKER_PAIRS);
}

static void measure_async(raw *r, dibs_client *client, size_t blocks)
{
    lockers *ls = lockers_new(client, CREW);

    measure_rates(&(side){bare_lockers, r}, &(side){our_lockers, ls},
                  CREW * LOCKER_PAIRS, blocks);
    lockers_free(ls);
}

static size_t allocated(void)
{
    struct mallinfo2 info = mallinfo2();

    return info.uordblks + info.hblkhd;
}

static void measure_memory(raw *r, dibs_client *client, size_t count)
{
    dibs_lock **locks = calloc(count, sizeof(dibs_lock *));
    dibs_lock *first = lock_new(client, 99999, 0);
    long long server, usage;
    size_t bytes, keys;

    if (!locks)
        give_up("locks", "out of memory");
    lock_pair(first); /* starts threads and loads scripts */
    server = raw_info(r, "used_memory");
    bytes = allocated();
    for (size_t i = 0; i < count; i++) {
        locks[i] = lock_new(client, (long)i, 600000);
        lock_acquire(locks[i]);
    }
    bytes = allocated() - bytes;
    server = raw_info(r, "used_memory") - server;
    usage = raw_usage(r, &keys);
    if (keys < count)
        give_up("memory", "locks are missing");
    printf("%.0f %.0f %.0f\n", (double)usage / (double)count,
           (double)server / (double)count, (double)bytes / (double)count);
    for (size_t i = 0; i < count; i++)
        dibs_lock_free(locks[i]);
    dibs_lock_free(first);
    free(locks);
}

int main(int argc, char **argv)
{
    int port = argc == 4 ? (int)strtol(argv[1], NULL, 10) : 0;
    long count = argc == 4 ? strtol(argv[3], NULL, 10) : 0;
    dibs_client *client;
    char url[64];
    raw *r;

    if (port < 1 || port > 65535 || count < 1 || count > 90000)
        give_up("usage", "bench_redis PORT pair|crew|async|memory 1-90000");
    r = raw_open(port);
    snprintf(url, sizeof(url), "redis://127.0.0.1:%d", port);
    client = client_open(url);
    if (strcmp(argv[2], "pair") == 0)
        measure_pair(r, client, (size_t)count);
    else if (strcmp(argv[2], "crew") == 0)
        measure_crew(&(side){bare_pair, r}, BARE_PAIRS, client, CREW,
                     (size_t)count);
    else if (strcmp(argv[2], "async") == 0)
        measure_async(r, client, (size_t)count);
    else if (strcmp(argv[2], "memory") == 0)
        measure_memory(r, client, (size_t)count);
    else
        give_up("usage", "bench_redis measures pair, crew, async or memory");
    dibs_close(client);
    raw_close(r);
    return 0;
}
