/* bench_handoff.c - hand-offs of one lock among those who wait for it, beside the least
 * that they can cost.
 *
 *     bench_handoff PORT WAITERS BLOCKS [HOLD_US [processes]]
 *
 * Prints "BARE_P50 BARE_P99 BARE_SERVER P50 P99 SERVER RATIO COMMANDS JAIN LONGEST": how
 * long it takes from before the release until the next holder has the lock, processor time of
 * the server a hand-off, all in us; the ratio of the two p50, the median over the blocks; the
 * commands of dibs a hand-off, joining the queue again included; Jain's index of the turns of
 * its waiters, 1 when all had as many, the least of the blocks; and the longest wait of one, in
 * us. Waiters are threads that share one client, or processes, each with a client of its own,
 * which it opens for each block. A holder keeps the lock for HOLD_US (0). Both sides take turns in blocks.
 * The server should be of this machine. */
/* SPDX-License-Identifier: MIT */
#include "bench/pairs.h"
#include "bench/raw.h"
#include "bench/raw_waiter.h"
#include "bench/samples.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { WAITERS_MAX = 128, TURNS = 20, LEAST = 1000 };

typedef struct setting {
    int port;
    int waiters;
    size_t blocks;
    int64_t hold_us;
    int processes; /* each waiter is one */
} setting;

/* One side, and all that was measured. A waiter's handle is made by open(), in its own
 * process. */
typedef struct party {
    void *(*open)(const setting *on, int i);
    void (*acquire)(void *handle);
    void (*release)(void *handle);
    void (*close)(void *handle);
    samples all;
    double server_us; /* in all, as the rest */
    double commands;
    double grants;
    double jain; /* the least */
    int64_t longest_ns;
} party;

typedef struct seat {
    size_t had; /* turns that were noted */
    int64_t asked_ns, longest_ns;
} seat;

/* A block of one side, in memory that all processes share. */
typedef struct turns {
    size_t count, done, grants;
    atomic_int begun; /* waiters that ask */
    atomic_llong released_ns;
    pthread_mutex_t mutex; /* the lock orders the rest, at the server */
    seat seats[WAITERS_MAX];
    int64_t ns[]; /* of each turn that was noted */
} turns;

typedef struct waiter {
    const setting *on;
    const party *pt;
    turns *tr;
    void *handle;
    int number;
} waiter;

static dibs_client
    *client; /* of all threads of this process; leave() closes it */

static void leave(void)
{
    if (client)
        dibs_close(client);
}

static size_t turns_of(const setting *on)
{
    size_t count = (size_t)on->waiters * TURNS;

    return count > LEAST ? count : LEAST;
}

static size_t size_of(const setting *on)
{
    return sizeof(turns) + turns_of(on) * sizeof(int64_t);
}

static turns *turns_new(const setting *on)
{
    turns *tr = mmap(NULL, size_of(on), PROT_READ | PROT_WRITE,
                     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pthread_mutexattr_t attr;

    if (tr == MAP_FAILED)
        give_up("block", "out of memory");
    pthread_mutexattr_init(&attr);
    pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
    pthread_mutex_init(&tr->mutex, &attr);
    pthread_mutexattr_destroy(&attr);
    tr->count = turns_of(on);
    return tr;
}

static void turns_free(turns *tr, const setting *on)
{
    pthread_mutex_destroy(&tr->mutex);
    munmap(tr, size_of(on));
}

/* The holder notes how long the hand-off to it took, once all ask. False: there were
 * enough. */
static int note_turn(waiter *wt)
{
    turns *tr = wt->tr;
    seat *st = &tr->seats[wt->number];
    int64_t at_ns = now_ns(), from_ns = atomic_load(&tr->released_ns);
    int more;

    pthread_mutex_lock(&tr->mutex);
    tr->grants++;
    if (from_ns > 0 && atomic_load(&tr->begun) == wt->on->waiters &&
        tr->done < tr->count) {
        tr->ns[tr->done++] = at_ns - from_ns;
        st->had++;
        if (st->longest_ns < at_ns - st->asked_ns)
            st->longest_ns = at_ns - st->asked_ns;
    }
    more = tr->done < tr->count;
    pthread_mutex_unlock(&tr->mutex);
    return more;
}

static void hold(int64_t hold_us)
{
    const struct timespec span = {.tv_sec = hold_us / 1000000,
                                  .tv_nsec = hold_us % 1000000 * 1000};

    if (hold_us > 0)
        clock_nanosleep(CLOCK_MONOTONIC, 0, &span, NULL);
}

static void *take_turns(void *arg)
{
    waiter *wt = arg;
    turns *tr = wt->tr;
    int more = 1;

    atomic_fetch_add(&tr->begun, 1);
    while (more) {
        tr->seats[wt->number].asked_ns = now_ns();
        wt->pt->acquire(wt->handle);
        more = note_turn(wt);
        hold(wt->on->hold_us);
        atomic_store(&tr->released_ns, now_ns());
        wt->pt->release(wt->handle);
    }
    return NULL;
}

static void run_threads(waiter *waiters, int count)
{
    pthread_t ids[WAITERS_MAX];

    for (int i = 0; i < count; i++)
        waiters[i].handle = waiters[i].pt->open(waiters[i].on, i);
    for (int i = 0; i < count; i++)
        if (pthread_create(&ids[i], NULL, take_turns, &waiters[i]) != 0)
            give_up("thread", "cannot be started");
    for (int i = 0; i < count; i++)
        pthread_join(ids[i], NULL);
    for (int i = 0; i < count; i++)
        waiters[i].pt->close(waiters[i].handle);
}

static void run_processes(waiter *waiters, int count)
{
    int status, failed = 0;

    fflush(stdout);
    for (int i = 0; i < count; i++) {
        pid_t pid = fork();

        if (pid < 0)
            give_up("process", "cannot be started");
        if (pid == 0) {
            waiters[i].handle = waiters[i].pt->open(waiters[i].on, i);
            take_turns(&waiters[i]);
            waiters[i].pt->close(waiters[i].handle);
            leave();
            _exit(0);
        }
    }
    for (int i = 0; i < count; i++)
        if (wait(&status) < 0 || status != 0)
            failed = 1;
    if (failed)
        give_up("process", "a waiter failed");
}

static void note_fairness(party *pt, const seat *seats, int waiters)
{
    double sum = 0, squares = 0, jain;

    for (int i = 0; i < waiters; i++) {
        sum += (double)seats[i].had;
        squares += (double)seats[i].had * (double)seats[i].had;
        if (pt->longest_ns < seats[i].longest_ns)
            pt->longest_ns = seats[i].longest_ns;
    }
    jain = sum * sum / (squares * waiters);
    if (pt->jain == 0 || jain < pt->jain)
        pt->jain = jain;
}

/* Returns the p50. */
static double run_block(const setting *on, party *pt, raw *r)
{
    turns *tr = turns_new(on);
    double from_us = raw_cpu_us(r), p50;
    long long calls = raw_calls(r, "evalsha");
    waiter waiters[WAITERS_MAX];
    samples block;

    for (int i = 0; i < on->waiters; i++)
        waiters[i] = (waiter){.on = on, .pt = pt, .tr = tr, .number = i};
    if (on->processes)
        run_processes(waiters, on->waiters);
    else
        run_threads(waiters, on->waiters);
    note_fairness(pt, tr->seats, on->waiters);
    pt->server_us += raw_cpu_us(r) - from_us;
    pt->commands += (double)(raw_calls(r, "evalsha") - calls);
    pt->grants += (double)tr->grants;
    samples_init(&block, tr->done);
    for (size_t i = 0; i < tr->done; i++) {
        samples_add(&block, tr->ns[i]);
        samples_add(&pt->all, tr->ns[i]);
    }
    samples_sort(&block);
    p50 = samples_at(&block, 50);
    samples_fini(&block);
    turns_free(tr, on);
    return p50;
}

static void *open_bare(const setting *on, int i)
{
    return raw_waiter_open(on->port, i);
}

static void close_bare(void *handle)
{
    raw_waiter_close(handle);
}

static dibs_client *client_at(int port)
{
    char url[64];

    snprintf(url, sizeof(url), "redis://127.0.0.1:%d", port);
    return client_open(url);
}

static void *open_ours(const setting *on, int i)
{
    dibs_lock *lock;
    dibs_error err;

    (void)i;
    if (!client)
        client = client_at(on->port);
    if (dibs_lock_new(client, "bench-handoff", DIBS_LOCK_OPTS(.wait_ms = -1),
                      &lock, &err) != DIBS_OK)
        give_up("lock", err.message);
    return lock;
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

static void close_ours(void *lock)
{
    dibs_lock_free(lock);
}

static void measure_both(const setting *on, party *bare, party *ours, raw *r)
{
    samples ratios;

    samples_init(&ratios, on->blocks);
    for (size_t i = 0; i < on->blocks; i++) {
        double bare_us = run_block(on, bare, r);
        double ours_us = run_block(on, ours, r);

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

static setting read_setting(int argc, char **argv)
{
    long numbers[4] = {0};

    for (int i = 0; i < 4 && i + 1 < argc; i++)
        numbers[i] = strtol(argv[i + 1], NULL, 10);
    if (argc < 4 || argc > 6 || numbers[0] < 1 || numbers[0] > 65535 ||
        numbers[1] < 2 || numbers[1] > WAITERS_MAX || numbers[2] < 1 ||
        numbers[2] > 10000 || numbers[3] < 0 || numbers[3] > 1000000 ||
        (argc == 6 && strcmp(argv[5], "processes") != 0))
        give_up("usage", "bench_handoff PORT WAITERS(2-128) BLOCKS(1-10000) "
                         "[HOLD_US(0-1000000) [processes]]");
    return (setting){.port = (int)numbers[0],
                     .waiters = (int)numbers[1],
                     .blocks = (size_t)numbers[2],
                     .hold_us = numbers[3],
                     .processes = argc == 6};
}

int main(int argc, char **argv)
{
    const setting on = read_setting(argc, argv);
    party bare = {open_bare, raw_waiter_acquire, raw_waiter_release, close_bare,
                  .commands = 0};
    party ours = {open_ours, acquire_ours, release_ours, close_ours,
                  .commands = 0};
    raw *r = raw_open(on.port);

    samples_init(&bare.all, on.blocks * turns_of(&on));
    samples_init(&ours.all, on.blocks * turns_of(&on));
    measure_both(&on, &bare, &ours, r);
    samples_fini(&bare.all);
    samples_fini(&ours.all);
    leave();
    raw_close(r);
    return 0;
}
