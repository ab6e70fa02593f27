/* bench_redis.c - locks on a Redis server, beside the bare driver.
 *
 *     bench_redis PORT pair BLOCKS     one thread: "RATE P50 P95 P99" of the
 *                                      bare loop, the same of dibs, and the
 *                                      ratio of the two p50
 *     bench_redis PORT crew BLOCKS     64 threads on one client, names of their
 *                                      own: "RAW_RATE RATE MULTIPLE"
 *     bench_redis PORT memory LOCKS    bytes for each lock that is held: "KEYS
 *                                      SERVER CLIENT", by MEMORY USAGE of all
 *                                      keys, INFO and the allocator
 *
 * Rates are pairs of acquire and release each second, times microseconds. Both
 * sides take turns in small blocks, so that they meet the same machine; ratio
 * and multiple are medians over the blocks. The server should be idle, empty and
 * of this machine. */
/* SPDX-License-Identifier: MIT */
#include "bench/raw.h"
#include "bench/samples.h"

#include <dibs/dibs.h>
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 100, CREW = 64, CREW_RAW = 2000, CREW_PAIRS = 400 };

static dibs_client *client_open(int port)
{
    dibs_client *client;
    dibs_error err;
    char url[64];

    snprintf(url, sizeof(url), "redis://127.0.0.1:%d", port);
    if (dibs_open(url, NULL, &client, &err) != DIBS_OK)
        give_up("open", err.message);
    return client;
}

static dibs_lock *lock_new(dibs_client *client, long number, int64_t ttl_ms)
{
    dibs_lock *lock;
    dibs_error err;
    char name[32];

    snprintf(name, sizeof(name), "bench-%05ld", number);
    if (dibs_lock_new(client, name, DIBS_LOCK_OPTS(.ttl_ms = ttl_ms), &lock,
                      &err) != DIBS_OK)
        give_up("lock", err.message);
    return lock;
}

static void acquire(dibs_lock *lock)
{
    dibs_error err;

    if (dibs_lock_acquire(lock, &err) != DIBS_OK)
        give_up("acquire", err.message);
}

static void pair(dibs_lock *lock)
{
    dibs_error err;

    acquire(lock);
    if (dibs_lock_release(lock, &err) != DIBS_OK)
        give_up("release", err.message);
}

/* One block, of the bare loop when there is no lock; returns its p50. The times
 * are added to `all` too, and the time it took to `took_ns`. */
static double block(raw *r, dibs_lock *lock, samples *all, int64_t *took_ns)
{
    int64_t began = now_ns(), before = began, after = began;
    samples own;
    double p50;

    samples_init(&own, BLOCK);
    for (int i = 0; i < BLOCK; i++) {
        if (lock)
            pair(lock);
        else
            raw_pair(r);
        after = now_ns();
        samples_add(&own, after - before);
        samples_add(all, after - before);
        before = after;
    }
    *took_ns += after - began;
    samples_sort(&own);
    p50 = samples_at(&own, 50);
    samples_fini(&own);
    return p50;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median(double *numbers, size_t count)
{
    qsort(numbers, count, sizeof(*numbers), by_size);
    return numbers[count / 2];
}

static double *ratios_new(size_t blocks)
{
    double *ratios = calloc(blocks, sizeof(*ratios));

    if (!ratios)
        give_up("ratios", "out of memory");
    return ratios;
}

static void print_times(samples *s, int64_t took_ns)
{
    samples_sort(s);
    printf("%.0f %.1f %.1f %.1f ", (double)s->count * 1e9 / (double)took_ns,
           samples_at(s, 50), samples_at(s, 95), samples_at(s, 99));
}

static void measure_pairs(raw *r, dibs_client *client, size_t blocks)
{
    dibs_lock *lock = lock_new(client, 0, 0);
    double *ratios = ratios_new(blocks);
    int64_t raw_ns = 0, ours_ns = 0;
    samples raws, ours;

    samples_init(&raws, blocks * BLOCK);
    samples_init(&ours, blocks * BLOCK);
    /* The first ones start threads and fill caches. */
    for (int i = 0; i < BLOCK; i++) {
        raw_pair(r);
        pair(lock);
    }
    for (size_t i = 0; i < blocks; i++) {
        double bare = block(r, NULL, &raws, &raw_ns);

        ratios[i] = block(r, lock, &ours, &ours_ns) / bare;
    }
    print_times(&raws, raw_ns);
    print_times(&ours, ours_ns);
    printf("%.3f\n", median(ratios, blocks));
    samples_fini(&raws);
    samples_fini(&ours);
    free(ratios);
    dibs_lock_free(lock);
}

/* Threads that work when `start` is passed and meet at `end`. */
typedef struct crew {
    pthread_barrier_t start;
    pthread_barrier_t end;
    atomic_bool over;
    dibs_client *client;
    atomic_long joined; /* each takes a number for its name */
    pthread_t threads[CREW];
} crew;

static void *crew_work(void *arg)
{
    crew *cw = arg;
    dibs_lock *lock = lock_new(cw->client, atomic_fetch_add(&cw->joined, 1), 0);

    for (;;) {
        pthread_barrier_wait(&cw->start);
        if (atomic_load(&cw->over))
            break;
        for (int i = 0; i < CREW_PAIRS; i++)
            pair(lock);
        pthread_barrier_wait(&cw->end);
    }
    dibs_lock_free(lock);
    return NULL;
}

static void crew_init(crew *cw, dibs_client *client)
{
    memset(cw, 0, sizeof(*cw));
    cw->client = client;
    pthread_barrier_init(&cw->start, NULL, CREW + 1);
    pthread_barrier_init(&cw->end, NULL, CREW + 1);
    for (int i = 0; i < CREW; i++)
        if (pthread_create(&cw->threads[i], NULL, crew_work, cw))
            give_up("thread", "cannot be started");
}

static void crew_fini(crew *cw)
{
    atomic_store(&cw->over, true);
    pthread_barrier_wait(&cw->start);
    for (int i = 0; i < CREW; i++)
        pthread_join(cw->threads[i], NULL);
    pthread_barrier_destroy(&cw->start);
    pthread_barrier_destroy(&cw->end);
}

/* Pairs each second of one block. */
static double crew_rate(crew *cw)
{
    int64_t began = now_ns();

    pthread_barrier_wait(&cw->start);
    pthread_barrier_wait(&cw->end);
    return (double)CREW * CREW_PAIRS * 1e9 / (double)(now_ns() - began);
}

static double raw_rate(raw *r)
{
    int64_t began = now_ns();

    for (int i = 0; i < CREW_RAW; i++)
        raw_pair(r);
    return (double)CREW_RAW * 1e9 / (double)(now_ns() - began);
}

static void measure_crew(raw *r, dibs_client *client, size_t blocks)
{
    double *multiples = ratios_new(blocks);
    double *raws = ratios_new(blocks), *ours = ratios_new(blocks);
    crew cw;

    crew_init(&cw, client);
    (void)crew_rate(&cw); /* fills caches */
    for (size_t i = 0; i < blocks; i++) {
        raws[i] = raw_rate(r);
        ours[i] = crew_rate(&cw);
        multiples[i] = ours[i] / raws[i];
    }
    crew_fini(&cw);
    printf("%.0f %.0f %.2f\n", median(raws, blocks), median(ours, blocks),
           median(multiples, blocks));
    free(multiples);
    free(raws);
    free(ours);
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
    pair(first); /* starts threads and loads scripts */
    server = raw_info(r, "used_memory");
    bytes = allocated();
    for (size_t i = 0; i < count; i++) {
        locks[i] = lock_new(client, (long)i, 600000);
        acquire(locks[i]);
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
    raw *r;

    if (port < 1 || port > 65535 || count < 1 || count > 90000)
        give_up("usage", "bench_redis PORT pair|crew|memory 1-90000");
    r = raw_open(port);
    client = client_open(port);
    if (strcmp(argv[2], "pair") == 0)
        measure_pairs(r, client, (size_t)count);
    else if (strcmp(argv[2], "crew") == 0)
        measure_crew(r, client, (size_t)count);
    else if (strcmp(argv[2], "memory") == 0)
        measure_memory(r, client, (size_t)count);
    else
        give_up("usage", "bench_redis measures pair, crew or memory");
    dibs_close(client);
    raw_close(r);
    return 0;
}
