/* bench_postgres.c - locks on a PostgreSQL server, beside the bare driver.
 *
 *     bench_postgres pair BLOCKS URL   one thread: "RATE P50 P95 P99" of
 *                                      pg_try_advisory_lock and unlock through
 *                                      libpq, the same of dibs, and the ratio of
 *                                      the two p50
 *     bench_postgres crew BLOCKS URL   32 threads on one client, names of their
 *                                      own: "RATE_OF_ONE RATE MULTIPLE"
 *
 * Rates are pairs of acquire and release each second, times microseconds. Both
 * sides take turns in small blocks, so that they meet the same machine; ratio
 * and multiple are medians over the blocks. */
/* SPDX-License-Identifier: MIT */
#include "bench/samples.h"

#include <dibs/dibs.h>
#include <libpq-fe.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 100, CREW = 32, CREW_PAIRS = 400, ONE_PAIRS = 300 };

static void run(PGconn *pq, const char *sql)
{
    PGresult *result = PQexec(pq, sql);

    if (PQresultStatus(result) != PGRES_TUPLES_OK)
        give_up(sql, PQerrorMessage(pq));
    PQclear(result);
}

/* The least that a lock can cost here: it lives in the memory of the server, for
 * as long as the connection does. */
static void raw_pair(PGconn *pq)
{
    run(pq, "SELECT pg_try_advisory_lock(1)");
    run(pq, "SELECT pg_advisory_unlock(1)");
}

static dibs_lock *lock_new(dibs_client *client, long number)
{
    dibs_lock *lock;
    dibs_error err;
    char name[32];

    snprintf(name, sizeof(name), "bench-%05ld", number);
    if (dibs_lock_new(client, name, NULL, &lock, &err) != DIBS_OK)
        give_up("lock", err.message);
    return lock;
}

static void pair(dibs_lock *lock)
{
    dibs_error err;

    if (dibs_lock_acquire(lock, &err) != DIBS_OK)
        give_up("acquire", err.message);
    if (dibs_lock_release(lock, &err) != DIBS_OK)
        give_up("release", err.message);
}

/* One block, of the bare loop when there is no lock; returns its p50. The times
 * are added to `all` too, and the time it took to `took_ns`. */
static double block(PGconn *pq, dibs_lock *lock, samples *all, int64_t *took_ns)
{
    int64_t began = now_ns(), before = began, after = began;
    samples own;
    double p50;

    samples_init(&own, BLOCK);
    for (int i = 0; i < BLOCK; i++) {
        if (lock)
            pair(lock);
        else
            raw_pair(pq);
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

static double *numbers_new(size_t count)
{
    double *numbers = calloc(count, sizeof(*numbers));

    if (!numbers)
        give_up("numbers", "out of memory");
    return numbers;
}

static void print_times(samples *s, int64_t took_ns)
{
    samples_sort(s);
    printf("%.0f %.1f %.1f %.1f ", (double)s->count * 1e9 / (double)took_ns,
           samples_at(s, 50), samples_at(s, 95), samples_at(s, 99));
}

static void measure_pairs(PGconn *pq, dibs_client *client, size_t blocks)
{
    dibs_lock *lock = lock_new(client, 0);
    double *ratios = numbers_new(blocks);
    int64_t raw_ns = 0, ours_ns = 0;
    samples raws, ours;

    samples_init(&raws, blocks * BLOCK);
    samples_init(&ours, blocks * BLOCK);
    /* The first ones start threads and fill caches. */
    for (int i = 0; i < BLOCK; i++) {
        raw_pair(pq);
        pair(lock);
    }
    for (size_t i = 0; i < blocks; i++) {
        double bare = block(pq, NULL, &raws, &raw_ns);

        ratios[i] = block(pq, lock, &ours, &ours_ns) / bare;
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
    dibs_lock *lock = lock_new(cw->client, atomic_fetch_add(&cw->joined, 1));

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

static double rate_of_one(dibs_lock *lock)
{
    int64_t began = now_ns();

    for (int i = 0; i < ONE_PAIRS; i++)
        pair(lock);
    return (double)ONE_PAIRS * 1e9 / (double)(now_ns() - began);
}

static void measure_crew(dibs_client *client, size_t blocks)
{
    double *multiples = numbers_new(blocks);
    double *ones = numbers_new(blocks), *many = numbers_new(blocks);
    dibs_lock *lock = lock_new(client, CREW);
    crew cw;

    crew_init(&cw, client);
    (void)crew_rate(&cw); /* connects, and fills caches */
    for (size_t i = 0; i < blocks; i++) {
        ones[i] = rate_of_one(lock);
        many[i] = crew_rate(&cw);
        multiples[i] = many[i] / ones[i];
    }
    crew_fini(&cw);
    printf("%.0f %.0f %.2f\n", median(ones, blocks), median(many, blocks),
           median(multiples, blocks));
    dibs_lock_free(lock);
    free(multiples);
    free(ones);
    free(many);
}

int main(int argc, char **argv)
{
    long count = argc == 4 ? strtol(argv[2], NULL, 10) : 0;
    dibs_client *client;
    dibs_error err;
    PGconn *pq;

    if (count < 1 || count > 10000)
        give_up("usage", "bench_postgres pair|crew 1-10000 URL");
    pq = PQconnectdb(argv[3]);
    if (PQstatus(pq) != CONNECTION_OK)
        give_up("connect", PQerrorMessage(pq));
    if (dibs_open(argv[3], NULL, &client, &err) != DIBS_OK)
        give_up("open", err.message);
    if (strcmp(argv[1], "pair") == 0)
        measure_pairs(pq, client, (size_t)count);
    else if (strcmp(argv[1], "crew") == 0)
        measure_crew(client, (size_t)count);
    else
        give_up("usage", "bench_postgres measures pair or crew");
    dibs_close(client);
    PQfinish(pq);
    return 0;
}
