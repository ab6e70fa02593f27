/* bench_handoff.c - hand-offs of one lock among threads that wait for it, beside the
 * least that they can cost.
 *
 *     bench_handoff PORT THREADS BLOCKS
 *
 * Prints "BARE_P50 BARE_P99 BARE_SERVER P50 P99 SERVER RATIO COMMANDS JAIN LONGEST": how
 * long it takes from before the release until the next holder has the lock, processor time of
 * the server a hand-off, all in us; the ratio of the two p50, the median over the blocks; the
 * commands of dibs a hand-off, joining the queue again included; Jain's index of the turns of
 * its threads, 1 when all had as many, the least of the blocks; and the longest wait of a
 * thread, in us. All threads of dibs share one client. Both sides take turns in blocks. The server should be of this machine. */
/* SPDX-License-Identifier: MIT */
#include "bench/pairs.h"
#include "bench/raw.h"
#include "bench/raw_waiter.h"
#include "bench/samples.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREADS_MAX = 128, TURNS = 20, LEAST = 1000 };

/* One side: its handles, one for each thread, and all that was measured. */
typedef struct party {
    void (*acquire)(void *handle);
    void (*release)(void *handle);
    void *handles[THREADS_MAX];
    samples all;
    double server_us; /* in all, as the rest */
    double commands;
    double grants;
    double jain; /* the least */
    int64_t longest_ns;
} party;

/* A block of one side. */
typedef struct turns {
    const party *pt;
    size_t count, done, grants;
    int threads;
    atomic_int begun; /* threads that have asked once */
    atomic_llong released_ns;
    samples block;
    pthread_mutex_t mutex; /* the lock orders the rest, at the server */
} turns;

typedef struct seat {
    turns *turns;
    void *handle;
    int64_t asked_ns;
    size_t had; /* turns that were noted */
    int64_t longest_ns;
} seat;

/* The holder notes how long the hand-off to it took, once all threads wait. False:
 * there were enough. */
static int note_turn(turns *tr, seat *st)
{
    int64_t at_ns = now_ns(), from_ns = atomic_load(&tr->released_ns);
    int more;

    pthread_mutex_lock(&tr->mutex);
    tr->grants++;
    if (from_ns > 0 && atomic_load(&tr->begun) == tr->threads &&
        tr->done < tr->count) {
        samples_add(&tr->block, at_ns - from_ns);
        tr->done++;
        st->had++;
        if (st->longest_ns < at_ns - st->asked_ns)
            st->longest_ns = at_ns - st->asked_ns;
    }
    more = tr->done < tr->count;
    pthread_mutex_unlock(&tr->mutex);
    return more;
}

static void *take_turns(void *arg)
{
    seat *st = arg;
    turns *tr = st->turns;
    int more = 1;

    atomic_fetch_add(&tr->begun, 1);
    while (more) {
        st->asked_ns = now_ns();
        tr->pt->acquire(st->handle);
        more = note_turn(tr, st);
        atomic_store(&tr->released_ns, now_ns());
        tr->pt->release(st->handle);
    }
    return NULL;
}

static void note_fairness(party *pt, const seat *seats, int threads)
{
    double sum = 0, squares = 0, jain;

    for (int i = 0; i < threads; i++) {
        sum += (double)seats[i].had;
        squares += (double)seats[i].had * (double)seats[i].had;
        if (pt->longest_ns < seats[i].longest_ns)
            pt->longest_ns = seats[i].longest_ns;
    }
    jain = sum * sum / (squares * threads);
    if (pt->jain == 0 || jain < pt->jain)
        pt->jain = jain;
}

/* Returns the p50. */
static double run_block(party *pt, raw *r, int threads)
{
    size_t count = (size_t)threads * TURNS;
    turns tr = {.pt = pt,
                .count = count > LEAST ? count : LEAST,
                .threads = threads};
    double from_us = raw_cpu_us(r), p50;
    long long calls = raw_calls(r, "evalsha");
    pthread_t ids[THREADS_MAX];
    seat seats[THREADS_MAX];

    samples_init(&tr.block, tr.count);
    pthread_mutex_init(&tr.mutex, NULL);
    for (int i = 0; i < threads; i++) {
        seats[i] = (seat){.turns = &tr, .handle = pt->handles[i]};
        if (pthread_create(&ids[i], NULL, take_turns, &seats[i]) != 0)
            give_up("thread", "cannot be started");
    }
    for (int i = 0; i < threads; i++)
        pthread_join(ids[i], NULL);
    note_fairness(pt, seats, threads);
    pt->server_us += raw_cpu_us(r) - from_us;
    pt->commands += (double)(raw_calls(r, "evalsha") - calls);
    pt->grants += (double)tr.grants;
    for (size_t i = 0; i < tr.block.count; i++)
        samples_add(&pt->all, tr.block.ns[i]);
    samples_sort(&tr.block);
    p50 = samples_at(&tr.block, 50);
    pthread_mutex_destroy(&tr.mutex);
    samples_fini(&tr.block);
    return p50;
}

static void acquire_ours(void *lock)
{
    lock_acquire(lock);
}

static void release_ours(void *lock)
{
    dibs_error err;

    if (dibs_lock_release(lock, &err) != DIBS_OK)
        give_up("release", err.message);
}

static dibs_lock *waiter_new(dibs_client *client)
{
    dibs_lock *lock;
    dibs_error err;

    if (dibs_lock_new(client, "bench-handoff", DIBS_LOCK_OPTS(.wait_ms = -1),
                      &lock, &err) != DIBS_OK)
        give_up("lock", err.message);
    return lock;
}

static void
measure_both(raw *r, party *bare, party *ours, int threads, size_t blocks)
{
    samples ratios;

    samples_init(&ratios, blocks);
    for (size_t i = 0; i < blocks; i++) {
        double bare_us = run_block(bare, r, threads);
        double ours_us = run_block(ours, r, threads);

        /* In thousandths, as samples are whole numbers. */
        samples_add(&ratios, (int64_t)(ours_us / bare_us * 1e6));
    }
    samples_sort(&ratios);
    samples_sort(&bare->all);
    samples_sort(&ours->all);
    printf("%.1f %.1f %.1f %.1f %.1f %.1f %.2f %.2f %.3f %.0f\n",
           samples_at(&bare->all, 50), samples_at(&bare->all, 99),
           bare->server_us / bare->grants, samples_at(&ours->all, 50),
           samples_at(&ours->all, 99), ours->server_us / ours->grants,
           samples_at(&ratios, 50) / 1e3, ours->commands / ours->grants,
           ours->jain, (double)ours->longest_ns / 1e3);
    samples_fini(&ratios);
}

int main(int argc, char **argv)
{
    long port = argc == 4 ? strtol(argv[1], NULL, 10) : 0;
    long threads = argc == 4 ? strtol(argv[2], NULL, 10) : 0;
    long blocks = argc == 4 ? strtol(argv[3], NULL, 10) : 0;
    party bare = {raw_waiter_acquire, raw_waiter_release, .commands = 0};
    party ours = {acquire_ours, release_ours, .commands = 0};
    dibs_client *client;
    size_t room;
    char url[64];
    raw *r;

    if (port < 1 || port > 65535 || threads < 2 || threads > THREADS_MAX ||
        blocks < 1 || blocks > 10000)
        give_up("usage", "bench_handoff PORT THREADS(2-128) BLOCKS(1-10000)");
    snprintf(url, sizeof(url), "redis://127.0.0.1:%ld", port);
    r = raw_open((int)port);
    client = client_open(url);
    room = (size_t)blocks * ((size_t)threads * TURNS + LEAST);
    samples_init(&bare.all, room);
    samples_init(&ours.all, room);
    for (int i = 0; i < threads; i++) {
        bare.handles[i] = raw_waiter_open((int)port, i);
        ours.handles[i] = waiter_new(client);
    }
    measure_both(r, &bare, &ours, (int)threads, (size_t)blocks);
    for (int i = 0; i < threads; i++) {
        raw_waiter_close(bare.handles[i]);
        dibs_lock_free(ours.handles[i]);
    }
    samples_fini(&bare.all);
    samples_fini(&ours.all);
    dibs_close(client);
    raw_close(r);
    return 0;
}
