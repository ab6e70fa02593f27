/* bench_redis.c - locks on a Redis server, beside the bare driver.
 *
 *     bench_redis PORT pair BLOCKS     one thread, beside a bare hiredis loop
 *     bench_redis PORT unix BLOCKS     the same on the unix socket of the server
 *     bench_redis PORT unawaited BLOCKS  one thread that does not wait for its releases,
 *                                      beside one that does
 *     bench_redis PORT crew BLOCKS     64 threads, beside that loop
 *     bench_redis PORT async BLOCKS    64 lockers on one thread with an event loop,
 *                                      beside a bare loop with 16 on the way
 *     bench_redis PORT cpu, cpu-crew, cpu-async BLOCKS
 *                                      processor time of the client for a pair, of one
 *                                      thread, the 64 threads and the 64 lockers, beside
 *                                      the bare loops
 *     bench_redis PORT memory LOCKS    bytes for each lock that is held: "KEYS
 *                                      SERVER CLIENT", by MEMORY USAGE of all
 *                                      keys, INFO and the allocator
 *
 * bench/pairs.h has the form of the other output. The server should be idle, empty
 * and of this machine. */
/* SPDX-License-Identifier: MIT */
#include "bench/lockers.h"
#include "bench/pairs.h"
#include "bench/samples.h"
#include "bench/work.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    CREW = 64,
    BARE_PAIRS = 2000,
    FLYING = 16,
    LOCKER_PAIRS = 50,
    SOCKET_PATH = 108
};

static void bare_pair(void *r)
{
    raw_pair(r);
}

static void measure_pair(const ground *on, size_t blocks)
{
    dibs_lock *lock = lock_new(on->client, 0, 0);

    measure_pairs(&(side){bare_pair, on->bare}, &(side){lock_pair, lock},
                  blocks);
    dibs_lock_free(lock);
}

static void measure_unix(const ground *on, size_t blocks)
{
    char path[SOCKET_PATH], url[SOCKET_PATH + 16];
    ground near = {.bare = raw_open_unix(on->bare, path, sizeof(path))};

    snprintf(url, sizeof(url), "redis+unix://%s", path);
    near.client = client_open(url);
    measure_pair(&near, blocks);
    dibs_close(near.client);
    raw_close(near.bare);
}

static void measure_unawaited(const ground *on, size_t blocks)
{
    dibs_lock *awaited = lock_new(on->client, 0, 0);
    dibs_lock *unawaited = lock_new(on->client, 1, 0);

    measure_pairs(&(side){lock_pair, awaited},
                  &(side){lock_pair_unawaited, unawaited}, blocks);
    dibs_lock_free(unawaited);
    dibs_lock_free(awaited);
}

static void measure_threads(const ground *on, size_t blocks)
{
    measure_crew(&(side){bare_pair, on->bare}, BARE_PAIRS, on->client, CREW,
                 blocks);
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

static void measure_async(const ground *on, size_t blocks)
{
    lockers *ls = lockers_new(on->client, CREW);

    measure_rates(&(side){bare_lockers, on->bare}, &(side){our_lockers, ls},
                  CREW * LOCKER_PAIRS, blocks);
    lockers_free(ls);
}

/* Both sides do BARE_PAIRS with one call. */
static void bare_many(void *r)
{
    for (int i = 0; i < BARE_PAIRS; i++)
        raw_pair(r);
}

static void our_many(void *lock)
{
    for (int i = 0; i < BARE_PAIRS; i++)
        lock_pair(lock);
}

static void cpu_of_pair(const ground *on, size_t blocks)
{
    dibs_lock *lock = lock_new(on->client, 0, 0);

    measure_cpu(&(side){bare_many, on->bare}, BARE_PAIRS,
                &(side){our_many, lock}, BARE_PAIRS, blocks);
    dibs_lock_free(lock);
}

static void cpu_of_threads(const ground *on, size_t blocks)
{
    side sides[CREW];
    crew *cw;

    for (int i = 0; i < CREW; i++)
        sides[i] = (side){lock_pair, lock_new(on->client, i, 0)};
    cw = crew_new(sides, CREW, LOCKER_PAIRS);
    measure_cpu(&(side){bare_lockers, on->bare}, CREW * LOCKER_PAIRS,
                &(side){crew_turn, cw}, CREW * LOCKER_PAIRS, blocks);
    crew_free(cw);
    for (int i = 0; i < CREW; i++)
        dibs_lock_free(sides[i].arg);
}

static void cpu_of_lockers(const ground *on, size_t blocks)
{
    lockers *ls = lockers_new(on->client, CREW);

    measure_cpu(&(side){bare_lockers, on->bare}, CREW * LOCKER_PAIRS,
                &(side){our_lockers, ls}, CREW * LOCKER_PAIRS, blocks);
    lockers_free(ls);
}

static size_t allocated(void)
{
    struct mallinfo2 info = mallinfo2();

    return info.uordblks + info.hblkhd;
}

static void measure_memory(const ground *on, size_t count)
{
    dibs_lock **locks = calloc(count, sizeof(dibs_lock *));
    dibs_lock *first = lock_new(on->client, 99999, 0);
    long long server, usage;
    size_t bytes, keys;

    if (!locks)
        give_up("locks", "out of memory");
    lock_pair(first); /* starts threads and loads scripts */
    server = raw_info(on->bare, "used_memory");
    bytes = allocated();
    for (size_t i = 0; i < count; i++) {
        locks[i] = lock_new(on->client, (long)i, 600000);
        lock_acquire(locks[i]);
    }
    bytes = allocated() - bytes;
    server = raw_info(on->bare, "used_memory") - server;
    usage = raw_usage(on->bare, &keys);
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
    static const work list[] = {
        {"pair", measure_pair},           {"unix", measure_unix},
        {"unawaited", measure_unawaited}, {"crew", measure_threads},
        {"async", measure_async},         {"cpu", cpu_of_pair},
        {"cpu-crew", cpu_of_threads},     {"cpu-async", cpu_of_lockers},
        {"memory", measure_memory},       {NULL, NULL},
    };

    return measure_work(argc, argv, list, 90000);
}
