/* pairs.c - acquire and release, beside what they are held against.
 *
 * Owns the threads of a crew. */
/* SPDX-License-Identifier: MIT */
#include "bench/pairs.h"
#include "bench/samples.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

enum { BLOCK = 100, CREW_PAIRS = 400 };

#define BUSY_NS INT64_C(40000000000)

dibs_client *client_open(const char *url)
{
    dibs_client *client;
    dibs_error err;

    if (dibs_open(url, PATIENT, &client, &err) != DIBS_OK)
        give_up("open", err.message);
    return client;
}

void must_succeed(dibs_status rc, const dibs_error *err)
{
    if (rc != DIBS_OK)
        give_up("call", err->message);
}

dibs_lock *lock_new(dibs_client *client, long number, int64_t ttl_ms)
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

/* Servers of a busy machine may be late. The figures have such pairs too. */
static bool is_late(dibs_status rc)
{
    return rc == DIBS_UNAVAIL || rc == DIBS_UNKNOWN || rc == DIBS_LOST;
}

/* A quorum may refuse it for a while: on a busy machine one of its servers has not had the
 * last release, and others are late or stopped. Its lease ends with the ttl. */
void lock_acquire(dibs_lock *lock)
{
    int64_t until_ns = now_ns() + BUSY_NS;
    dibs_error err;
    dibs_status rc;

    do
        rc = dibs_lock_acquire(lock, &err);
    while ((rc == DIBS_BUSY || is_late(rc)) && now_ns() < until_ns);
    if (rc != DIBS_OK)
        give_up("acquire", err.message);
}

void lock_pair(void *lock)
{
    dibs_error err;
    dibs_status rc;

    lock_acquire(lock);
    rc = dibs_lock_release(lock, &err);
    if (rc != DIBS_OK && !is_late(rc))
        give_up("release", err.message);
}

void lock_pair_unawaited(void *lock)
{
    dibs_error err;

    lock_acquire(lock);
    if (dibs_lock_release_async(lock, NULL, NULL, &err) != DIBS_OK)
        give_up("release", err.message);
}

/* Returns the p50 of one block. The times are added to `all` too, and the time it
 * took to `took_ns`. */
static double block(const side *sd, samples *all, int64_t *took_ns)
{
    int64_t began = now_ns(), before = began, after = began;
    samples own;
    double p50;

    samples_init(&own, BLOCK);
    for (int i = 0; i < BLOCK; i++) {
        sd->pair(sd->arg);
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

void measure_pairs(const side *bare, const side *ours, size_t blocks)
{
    double *ratios = numbers_new(blocks);
    int64_t bare_ns = 0, our_ns = 0;
    samples bare_times, our_times;

    samples_init(&bare_times, blocks * BLOCK);
    samples_init(&our_times, blocks * BLOCK);
    /* The first ones start threads and fill caches. */
    for (int i = 0; i < BLOCK; i++) {
        bare->pair(bare->arg);
        ours->pair(ours->arg);
    }
    for (size_t i = 0; i < blocks; i++) {
        double p50 = block(bare, &bare_times, &bare_ns);

        ratios[i] = block(ours, &our_times, &our_ns) / p50;
    }
    print_times(&bare_times, bare_ns);
    print_times(&our_times, our_ns);
    printf("%.3f\n", median(ratios, blocks));
    samples_fini(&bare_times);
    samples_fini(&our_times);
    free(ratios);
}

static double rate(int64_t pairs, int64_t began)
{
    return (double)pairs * 1e9 / (double)(now_ns() - began);
}

void measure_rates(const side *bare, const side *ours, int pairs, size_t blocks)
{
    double *ratios = numbers_new(blocks);
    double *theirs = numbers_new(blocks), *own = numbers_new(blocks);

    bare->pair(bare->arg);
    ours->pair(ours->arg);
    for (size_t i = 0; i < blocks; i++) {
        int64_t began = now_ns();

        bare->pair(bare->arg);
        theirs[i] = rate(pairs, began);
        began = now_ns();
        ours->pair(ours->arg);
        own[i] = rate(pairs, began);
        ratios[i] = own[i] / theirs[i];
    }
    printf("%.0f %.0f %.2f\n", median(theirs, blocks), median(own, blocks),
           median(ratios, blocks));
    free(ratios);
    free(theirs);
    free(own);
}

static double cpu_us(const side *sd, int pairs)
{
    int64_t from_ns = cpu_ns();

    sd->pair(sd->arg);
    return (double)(cpu_ns() - from_ns) / 1e3 / pairs;
}

void measure_cpu(const side *bare, int bare_pairs, const side *ours,
                 int our_pairs, size_t blocks)
{
    double *ratios = numbers_new(blocks);
    double *theirs = numbers_new(blocks), *own = numbers_new(blocks);

    bare->pair(bare->arg);
    ours->pair(ours->arg);
    for (size_t i = 0; i < blocks; i++) {
        theirs[i] = cpu_us(bare, bare_pairs);
        own[i] = cpu_us(ours, our_pairs);
        ratios[i] = own[i] / theirs[i];
    }
    printf("%.1f %.1f %.2f\n", median(theirs, blocks), median(own, blocks),
           median(ratios, blocks));
    free(ratios);
    free(theirs);
    free(own);
}

typedef struct hand {
    crew *of;
    side does;
} hand;

/* Threads that work when `start` is passed and meet at `end`. */
struct crew {
    pthread_barrier_t start;
    pthread_barrier_t end;
    atomic_bool over;
    int count, pairs;
    hand hands[CREW_MAX];
    pthread_t threads[CREW_MAX];
};

static void *work_in_crew(void *arg)
{
    const hand *hd = arg;
    crew *cw = hd->of;

    for (;;) {
        pthread_barrier_wait(&cw->start);
        if (atomic_load(&cw->over))
            return NULL;
        for (int i = 0; i < cw->pairs; i++)
            hd->does.pair(hd->does.arg);
        pthread_barrier_wait(&cw->end);
    }
}

crew *crew_new(const side *sides, int count, int pairs)
{
    crew *cw = calloc(1, sizeof(*cw));

    if (!cw || count > CREW_MAX)
        give_up("crew", "is too large");
    cw->count = count;
    cw->pairs = pairs;
    pthread_barrier_init(&cw->start, NULL, (unsigned)count + 1);
    pthread_barrier_init(&cw->end, NULL, (unsigned)count + 1);
    for (int i = 0; i < count; i++) {
        cw->hands[i] = (hand){cw, sides[i]};
        if (pthread_create(&cw->threads[i], NULL, work_in_crew, &cw->hands[i]))
            give_up("thread", "cannot be started");
    }
    return cw;
}

void crew_turn(void *arg)
{
    crew *cw = arg;

    pthread_barrier_wait(&cw->start);
    pthread_barrier_wait(&cw->end);
}

void crew_free(crew *cw)
{
    atomic_store(&cw->over, true);
    pthread_barrier_wait(&cw->start);
    for (int i = 0; i < cw->count; i++)
        pthread_join(cw->threads[i], NULL);
    pthread_barrier_destroy(&cw->start);
    pthread_barrier_destroy(&cw->end);
    free(cw);
}

/* Pairs each second of one turn. */
static double crew_rate(crew *cw)
{
    int64_t began = now_ns();

    crew_turn(cw);
    return rate((int64_t)cw->count * cw->pairs, began);
}

static double rate_of_one(const side *one, int pairs)
{
    int64_t began = now_ns();

    for (int i = 0; i < pairs; i++)
        one->pair(one->arg);
    return rate(pairs, began);
}

void measure_crew(const side *one, int pairs, dibs_client *client, int threads,
                  size_t blocks)
{
    double *multiples = numbers_new(blocks);
    double *ones = numbers_new(blocks), *many = numbers_new(blocks);
    side sides[CREW_MAX] = {{NULL, NULL}};
    crew *cw;

    for (int i = 0; i < threads; i++)
        sides[i] = (side){lock_pair, lock_new(client, i, 0)};
    cw = crew_new(sides, threads, CREW_PAIRS);
    (void)crew_rate(cw); /* connects, and fills caches */
    for (size_t i = 0; i < blocks; i++) {
        ones[i] = rate_of_one(one, pairs);
        many[i] = crew_rate(cw);
        multiples[i] = many[i] / ones[i];
    }
    crew_free(cw);
    for (int i = 0; i < threads; i++)
        dibs_lock_free(sides[i].arg);
    printf("%.0f %.0f %.2f\n", median(ones, blocks), median(many, blocks),
           median(multiples, blocks));
    free(multiples);
    free(ones);
    free(many);
}
