/* bench_cost.c - what the work of clients costs a Redis server: its processor time.
 *
 *     bench_cost PORT pair COUNT   microseconds of the server for an acquire and a
 *                                  release of a free name, one after the other
 *     bench_cost PORT renew COUNT  for the renewal of one of COUNT leases
 *     bench_cost PORT wait COUNT   for a second of one of COUNT waiters, each of which
 *                                  waits for a name that another client holds
 *     bench_cost PORT turn COUNT   for a turn of one of 8 waiters for one name: its
 *                                  acquire, from place to grant, and its release
 *     bench_cost PORT report COUNT for a report of a breaker, after a call
 *
 * By the server's own account of its process (INFO cpu), which has no other clients. */
/* SPDX-License-Identifier: MIT */
#include "bench/breakers.h"
#include "bench/pairs.h"
#include "bench/samples.h"
#include "bench/work.h"

#include <dibs/async.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { LEASE_TTL_MS = 6000, HELD_TTL_MS = 600000, WAITED_S = 4, TURNERS = 8 };

static const struct timespec rest = {.tv_nsec = 100 * 1000 * 1000};

static void measure_pair(const ground *on, size_t count)
{
    dibs_lock *lock = lock_new(on->client, 0, 0);
    double from_us;

    lock_pair(lock); /* starts threads and loads scripts */
    from_us = raw_cpu_us(on->bare);
    for (size_t i = 0; i < count; i++)
        lock_pair(lock);
    printf("%.2f\n", (raw_cpu_us(on->bare) - from_us) / (double)count);
    dibs_lock_free(lock);
}

static dibs_lock **hold_all(dibs_client *client, size_t count, int64_t ttl_ms)
{
    dibs_lock **locks = calloc(count, sizeof(dibs_lock *));

    if (!locks)
        give_up("locks", "out of memory");
    for (size_t i = 0; i < count; i++) {
        locks[i] = lock_new(client, (long)i, ttl_ms);
        lock_acquire(locks[i]);
    }
    return locks;
}

static void free_all(dibs_lock **locks, size_t count)
{
    for (size_t i = 0; i < count; i++)
        dibs_lock_free(locks[i]);
    free(locks);
}

static uint64_t renewed(dibs_client *client)
{
    dibs_stats stats = {.size = sizeof(stats)};

    dibs_stats_get(client, &stats);
    return stats.renewed;
}

/* Over rounds of renewals of all, of which the first follows the order of acquires. */
static void measure_renewals(const ground *on, size_t count)
{
    dibs_lock **locks = hold_all(on->client, count, LEASE_TTL_MS);
    uint64_t from, until;
    double from_us;

    from = renewed(on->client);
    from_us = raw_cpu_us(on->bare);
    do {
        nanosleep(&rest, NULL);
        until = renewed(on->client);
    } while (until - from < 2 * (uint64_t)count);
    printf("%.2f\n", (raw_cpu_us(on->bare) - from_us) / (double)(until - from));
    free_all(locks, count);
}

/* No name is given up while it is measured. */
static void
on_granted(dibs_lock *lock, dibs_status rc, const dibs_error *why, void *arg)
{
    (void)lock, (void)arg;
    if (rc != DIBS_CANCELLED)
        give_up("wait", rc == DIBS_OK ? "a name that is held was granted"
                                      : why->message);
}

static void measure_waiters(const ground *on, size_t count)
{
    dibs_client *other = client_open(on->url);
    dibs_lock **held = hold_all(other, count, HELD_TTL_MS);
    dibs_lock **locks = calloc(count, sizeof(dibs_lock *));
    const struct timespec span = {.tv_sec = WAITED_S};
    double from_us;
    dibs_error err;
    char name[32];

    if (!locks)
        give_up("locks", "out of memory");
    for (size_t i = 0; i < count; i++) {
        snprintf(name, sizeof(name), "bench-%05zu", i);
        if (dibs_lock_new(on->client, name, DIBS_LOCK_OPTS(.wait_ms = -1),
                          &locks[i], &err) != DIBS_OK ||
            dibs_lock_acquire_async(locks[i], on_granted, NULL, &err) !=
                DIBS_OK)
            give_up("wait", err.message);
    }
    nanosleep(&span, NULL); /* until all have a place */
    from_us = raw_cpu_us(on->bare);
    nanosleep(&span, NULL);
    printf("%.2f\n",
           (raw_cpu_us(on->bare) - from_us) / (double)(count * WAITED_S));
    free_all(locks, count);
    free_all(held, count);
    dibs_close(other);
}

typedef struct turns {
    dibs_client *client;
    size_t count; /* of each */
} turns;

static void *take_turns(void *arg)
{
    const turns *tr = arg;
    dibs_lock *lock = NULL;
    dibs_error err;

    if (dibs_lock_new(tr->client, "bench-turn", DIBS_LOCK_OPTS(.wait_ms = -1),
                      &lock, &err) != DIBS_OK)
        give_up("lock", err.message);
    for (size_t i = 0; i < tr->count; i++)
        lock_pair(lock);
    dibs_lock_free(lock);
    return NULL;
}

static void measure_turns(const ground *on, size_t count)
{
    turns tr = {.client = on->client, .count = count / TURNERS + 1};
    pthread_t threads[TURNERS];
    double from_us = raw_cpu_us(on->bare);

    for (int i = 0; i < TURNERS; i++)
        if (pthread_create(&threads[i], NULL, take_turns, &tr) != 0)
            give_up("thread", "cannot be started");
    for (int i = 0; i < TURNERS; i++)
        pthread_join(threads[i], NULL);
    printf("%.2f\n",
           (raw_cpu_us(on->bare) - from_us) / (double)(tr.count * TURNERS));
}

static void measure_reports(const ground *on, size_t count)
{
    dibs_breaker *breaker = breaker_new(on->client, NULL);
    double from_us;

    breaker_report(breaker);
    from_us = raw_cpu_us(on->bare);
    for (size_t i = 0; i < count; i++)
        breaker_report(breaker);
    printf("%.2f\n", (raw_cpu_us(on->bare) - from_us) / (double)count);
    dibs_breaker_free(breaker);
}

int main(int argc, char **argv)
{
    static const work list[] = {
        {"pair", measure_pair},      {"renew", measure_renewals},
        {"wait", measure_waiters},   {"turn", measure_turns},
        {"report", measure_reports}, {NULL, NULL},
    };

    return measure_work(argc, argv, list, 100000);
}
