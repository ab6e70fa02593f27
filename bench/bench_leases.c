/* bench_leases.c - very many leases of one client, beside the bare driver.
 *
 *     bench_leases PORT renew COUNT    a round of renewals: "BARE_MS PIPELINED_MS
 *                                      CLIENT_MS RATIO COMMANDS LEASES", processor time of
 *                                      this process for scripts of 100 leases each, for one
 *                                      script for each lease, pipelined, and for dibs, over
 *                                      PIPELINED_MS; and how many leases a command renews
 *     bench_leases PORT grow COUNT     a pair: "ALONE_P50 BESIDE_P50 RATIO", of a client that
 *                                      holds nothing and of one that holds COUNT leases
 *     bench_leases PORT handoff COUNT  commands that an acquisition takes, release
 *                                      included, with 8 threads that wait for one name
 *     bench_leases PORT list COUNT     a list of COUNT leases: "BARE_MS MS RATIO", beside
 *                                      SCAN and HGETALL
 *
 * Both sides of `grow` take turns on one server. The server should be idle, empty and
 * of this machine. */
/* SPDX-License-Identifier: MIT */
#include "bench/pairs.h"
#include "bench/samples.h"
#include "bench/work.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

enum { TAKERS = 16, TURNS = 100, PAIRS = 50, WAITERS = 8 };
enum { RENEWED_TTL_MS = 30000, KEPT_TTL_MS = 6 * 3600 * 1000 };
enum { PART = 100 }; /* leases that a bare script renews */

typedef struct herd {
    dibs_client *client;
    dibs_lock **locks;
    size_t count;
    int64_t ttl_ms;
    atomic_size_t next;
} herd;

static void *take_some(void *arg)
{
    herd *hd = arg;
    size_t i;

    while ((i = atomic_fetch_add(&hd->next, 1)) < hd->count) {
        hd->locks[i] = lock_new(hd->client, (long)i, hd->ttl_ms);
        lock_acquire(hd->locks[i]);
    }
    return NULL;
}

static void *free_some(void *arg)
{
    herd *hd = arg;
    size_t i;

    while ((i = atomic_fetch_add(&hd->next, 1)) < hd->count)
        dibs_lock_free(hd->locks[i]);
    return NULL;
}

/* With threads that share the pipeline. */
static void together(herd *hd, void *(*body)(void *))
{
    pthread_t threads[TAKERS];

    atomic_store(&hd->next, 0);
    for (int i = 0; i < TAKERS; i++)
        if (pthread_create(&threads[i], NULL, body, hd) != 0)
            give_up("thread", "cannot be started");
    for (int i = 0; i < TAKERS; i++)
        pthread_join(threads[i], NULL);
}

static herd take_herd(dibs_client *client, size_t count, int64_t ttl_ms)
{
    herd hd = {.client = client, .count = count, .ttl_ms = ttl_ms};

    hd.locks = calloc(count, sizeof(dibs_lock *));
    if (!hd.locks)
        give_up("locks", "out of memory");
    together(&hd, take_some);
    return hd;
}

static void free_herd(herd *hd)
{
    together(hd, free_some);
    free(hd->locks);
}

static double cpu_ms(void)
{
    return (double)cpu_ns() / 1e6;
}

static uint64_t renewed(dibs_client *client)
{
    dibs_stats stats = {.size = sizeof(stats)};

    dibs_stats_get(client, &stats);
    if (stats.lost > 0)
        give_up("renew", "leases were lost");
    return stats.renewed;
}

static double bare_ms(raw *r, size_t count, size_t part)
{
    double from_ms = cpu_ms();

    raw_renew(r, count, part);
    return cpu_ms() - from_ms;
}

static void measure_renewals(const ground *on, size_t count)
{
    raw *r = on->bare;
    dibs_client *client = on->client;
    const struct timespec rest = {.tv_nsec = 250 * 1000 * 1000};
    double bare, pipelined, from_ms, ours;
    long long calls;
    uint64_t before;
    herd hd;

    raw_hold(r, count);
    bare = bare_ms(r, count, PART);
    pipelined = bare_ms(r, count, 1);
    raw_drop(r, count);
    hd = take_herd(client, count, RENEWED_TTL_MS);
    before = renewed(client);
    calls = raw_calls(r, "evalsha");
    from_ms = cpu_ms();
    while (renewed(client) - before < count)
        nanosleep(&rest, NULL);
    ours = cpu_ms() - from_ms;
    calls = raw_calls(r, "evalsha") - calls;
    printf("%.1f %.1f %.1f %.2f %lld %.1f\n", bare, pipelined, ours,
           ours / pipelined, calls,
           (double)(renewed(client) - before) / (double)calls);
    free_herd(&hd);
}

static double turn_us(dibs_lock *lock, samples *all)
{
    samples turn;
    double p50;

    samples_init(&turn, PAIRS);
    for (int i = 0; i < PAIRS; i++) {
        int64_t from_ns = now_ns();

        lock_pair(lock);
        samples_add(&turn, now_ns() - from_ns);
        samples_add(all, turn.ns[turn.count - 1]);
    }
    samples_sort(&turn);
    p50 = samples_at(&turn, 50);
    samples_fini(&turn);
    return p50;
}

static void measure_growth(const ground *on, size_t count)
{
    dibs_client *empty = client_open(on->url);
    herd hd = take_herd(on->client, count, KEPT_TTL_MS);
    dibs_lock *alone = lock_new(empty, (long)count + 1, 0);
    dibs_lock *beside = lock_new(on->client, (long)count + 2, 0);
    samples of_alone, of_beside, ratios;

    samples_init(&of_alone, TURNS * PAIRS);
    samples_init(&of_beside, TURNS * PAIRS);
    samples_init(&ratios, TURNS);
    for (int i = 0; i < TURNS; i++) {
        double alone_us = turn_us(alone, &of_alone);
        double beside_us = turn_us(beside, &of_beside);

        /* A ratio in thousandths, as samples are whole numbers. */
        samples_add(&ratios, (int64_t)(beside_us / alone_us * 1e6));
    }
    samples_sort(&of_alone);
    samples_sort(&of_beside);
    samples_sort(&ratios);
    printf("%.1f %.1f %.3f\n", samples_at(&of_alone, 50),
           samples_at(&of_beside, 50), samples_at(&ratios, 50) / 1e3);
    samples_fini(&ratios);
    samples_fini(&of_beside);
    samples_fini(&of_alone);
    dibs_lock_free(beside);
    dibs_lock_free(alone);
    free_herd(&hd);
    dibs_close(empty);
}

typedef struct turns {
    dibs_client *client;
    size_t count; /* for each thread */
} turns;

static void *take_turns(void *arg)
{
    const turns *tr = arg;
    dibs_lock *lock = NULL;
    dibs_error err = {0};

    if (dibs_lock_new(tr->client, "bench-handoff",
                      DIBS_LOCK_OPTS(.wait_ms = -1), &lock, &err) != DIBS_OK)
        give_up("lock", err.message);
    for (size_t i = 0; i < tr->count; i++) {
        if (dibs_lock_acquire(lock, &err) != DIBS_OK)
            give_up("acquire", err.message);
        if (dibs_lock_release(lock, &err) != DIBS_OK)
            give_up("release", err.message);
    }
    dibs_lock_free(lock);
    return NULL;
}

static void measure_handoff(const ground *on, size_t count)
{
    turns tr = {.client = on->client, .count = count / WAITERS};
    dibs_lock *first = lock_new(on->client, 0, 0);
    pthread_t threads[WAITERS];
    long long calls;

    lock_pair(first); /* starts threads and loads scripts */
    calls = raw_calls(on->bare, "evalsha");
    for (int i = 0; i < WAITERS; i++)
        if (pthread_create(&threads[i], NULL, take_turns, &tr) != 0)
            give_up("thread", "cannot be started");
    for (int i = 0; i < WAITERS; i++)
        pthread_join(threads[i], NULL);
    printf("%.2f\n", (double)(raw_calls(on->bare, "evalsha") - calls) /
                         (double)(tr.count * WAITERS));
    dibs_lock_free(first);
}

static bool count_lease(const dibs_lease_info *info, void *arg)
{
    *(size_t *)arg += info->holder_count == 1;
    return true;
}

static double ms_since(int64_t from_ns)
{
    return (double)(now_ns() - from_ns) / 1e6;
}

static void measure_list(const ground *on, size_t count)
{
    herd hd = take_herd(on->client, count, KEPT_TTL_MS);
    int64_t from_ns = now_ns();
    size_t bare = raw_list(on->bare), ours = 0;
    double theirs_ms = ms_since(from_ns), ours_ms;
    dibs_error err;

    from_ns = now_ns();
    must_succeed(dibs_lease_list(on->client, NULL, count_lease, &ours, &err),
                 &err);
    ours_ms = ms_since(from_ns);
    if (bare < count || ours < count)
        give_up("list", "leases are missing");
    printf("%.0f %.0f %.2f\n", theirs_ms, ours_ms, ours_ms / theirs_ms);
    free_herd(&hd);
}

int main(int argc, char **argv)
{
    static const work list[] = {
        {"renew", measure_renewals},
        {"grow", measure_growth},
        {"handoff", measure_handoff},
        {"list", measure_list},
        {NULL, NULL},
    };

    return measure_work(argc, argv, list, 2000000);
}
