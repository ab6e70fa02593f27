/* many_leases.c - one process holds and renews very many leases on a server of
 * its own; none may be lost. Prints what a lease takes on either side.
 *
 *     many_leases [COUNT [TTL_MS [SECONDS]]]        100000 30000 60
 */
/* SPDX-License-Identifier: MIT */
#include "pace.h"
#include "server.h"

#include "base/clock.h"
#include <dibs/dibs.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { THREADS = 16 };

typedef struct herd {
    dibs_client *cl;
    dibs_lock **locks;
    size_t count;
    int64_t ttl_ms;
    atomic_size_t next; /* to be taken, or given back */
    atomic_size_t bad;
    atomic_size_t lost;
} herd;

static void note_loss(dibs_lock *lock, void *arg)
{
    herd *hd = arg;

    (void)lock;
    atomic_fetch_add(&hd->lost, 1);
}

/* A lease that ended, or a step that did, may be the machine's fault. */
static void note_status(herd *hd, const char *what, size_t i, dibs_status rc,
                        const dibs_error *err)
{
    if (pace_explains(rc))
        MISSED("%s %zu: %s: %s", what, i, dibs_status_name(rc), err->message);
    if (rc != DIBS_OK && atomic_fetch_add(&hd->bad, 1) < 5)
        fprintf(stderr, "%s %zu: %s: %s\n", what, i, dibs_status_name(rc),
                err->message);
}

static dibs_status take(herd *hd, size_t i, dibs_error *err)
{
    char name[48];
    dibs_status rc;

    snprintf(name, sizeof(name), "many-leases:%08zu", i);
    rc = dibs_lock_new(hd->cl, name,
                       DIBS_LOCK_OPTS(.ttl_ms = hd->ttl_ms,
                                      .on_lost = note_loss, .on_lost_arg = hd),
                       &hd->locks[i], err);
    return rc == DIBS_OK ? dibs_lock_acquire(hd->locks[i], err) : rc;
}

static void *take_some(void *arg)
{
    herd *hd = arg;
    size_t i;

    while ((i = atomic_fetch_add(&hd->next, 1)) < hd->count) {
        dibs_error err = {0};

        note_status(hd, "lease", i, take(hd, i, &err), &err);
    }
    return NULL;
}

static void *give_some_back(void *arg)
{
    herd *hd = arg;
    size_t i;

    while ((i = atomic_fetch_add(&hd->next, 1)) < hd->count) {
        dibs_error err = {0};

        note_status(hd, "release", i, dibs_lock_release(hd->locks[i], &err),
                    &err);
        dibs_lock_free(hd->locks[i]);
    }
    return NULL;
}

/* Does it with many threads, so that they share the pipeline; returns for how
 * long, in seconds. */
static double together(herd *hd, void *(*body)(void *))
{
    dibsx_nsec from_at = dibsx_now();
    pthread_t threads[THREADS];
    int started = 0;

    atomic_store(&hd->next, 0);
    while (started < THREADS &&
           pthread_create(&threads[started], NULL, body, hd) == 0)
        started++;
    for (int i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    if (started == 0)
        atomic_fetch_add(&hd->bad, 1);
    return (double)(dibsx_now() - from_at) / (double)DIBSX_SEC;
}

/* Resident memory of this process, in bytes. */
static double resident(void)
{
    FILE *in = fopen("/proc/self/statm", "r");
    double total = 0, pages = 0;

    if (in) {
        if (fscanf(in, "%lf %lf", &total, &pages) != 2)
            pages = 0;
        fclose(in);
    }
    return pages * (double)sysconf(_SC_PAGESIZE);
}

static size_t count_held(const herd *hd)
{
    size_t held = 0;

    for (size_t i = 0; i < hd->count; i++)
        if (hd->locks[i] && dibs_lock_fence(hd->locks[i]) != 0)
            held++;
    return held;
}

/* Holds them all for a time; returns how many were held to the end. */
static size_t hold(const herd *hd, int64_t span_ms)
{
    struct timespec span = {.tv_sec = (time_t)(span_ms / 1000),
                            .tv_nsec = (long)(span_ms % 1000) * 1000000};

    nanosleep(&span, NULL);
    return count_held(hd);
}

static void print_memory(const herd *hd, const server *sv, double resident_was,
                         long long used_was)
{
    char *usage =
        server_ask(sv, "MEMORY", "USAGE", "many-leases:00000000", NULL);
    long long used = server_info(sv, "memory", "used_memory");
    double count = (double)hd->count;

    printf("client: %.0f bytes a lease; server: %.0f bytes a lease, the key "
           "itself %s\n",
           (resident() - resident_was) / count,
           (double)(used - used_was) / count, usage ? usage : "?");
    free(usage);
}

static bool run(herd *hd, const server *sv, int64_t span_ms)
{
    dibs_stats stats = {.size = sizeof(stats)};
    long long used_was = server_info(sv, "memory", "used_memory");
    double resident_was = resident();
    double took = together(hd, take_some);
    size_t held;

    printf("%zu leases of %lld ms taken in %.1f s\n", hd->count,
           (long long)hd->ttl_ms, took);
    print_memory(hd, sv, resident_was, used_was);
    held = hold(hd, span_ms);
    dibs_stats_get(hd->cl, &stats);
    printf(
        "after %.1f s: %zu held, %zu lost, %llu renewals, %llu failed ones\n",
        (double)span_ms / 1000, held, atomic_load(&hd->lost),
        (unsigned long long)stats.renewed,
        (unsigned long long)stats.renewals_failed);
    took = together(hd, give_some_back);
    printf("given back in %.1f s\n", took);
    /* A lease that ended too early may be the machine's fault; the judge decides. */
    if (held != hd->count || atomic_load(&hd->lost) > 0)
        MISSED("%zu of %zu leases were held to the end", held, hd->count);
    return atomic_load(&hd->bad) == 0 && stats.renewed > 0;
}

static long number(int argc, char **argv, int i, long otherwise)
{
    long value = i < argc ? strtol(argv[i], NULL, 10) : otherwise;

    return value > 0 ? value : otherwise;
}

int main(int argc, char **argv)
{
    herd hd = {.count = (size_t)number(argc, argv, 1, 100000),
               .ttl_ms = pace_ms(number(argc, argv, 2, 30000))};
    int64_t span_ms = pace_ms(number(argc, argv, 3, 60) * 1000);
    char url[SERVER_URL_MAX];
    dibs_error err = {0};
    server sv = {0};
    bool ok = false;

    hd.locks = calloc(hd.count, sizeof(dibs_lock *));
    if (!hd.locks || !server_start(&sv, NULL))
        return 2;
    server_url(&sv, url);
    note_status(&hd, "client", 0, dibs_open(url, NULL, &hd.cl, &err), &err);
    if (hd.cl)
        ok = run(&hd, &sv, span_ms);
    dibs_close(hd.cl);
    server_stop(&sv);
    free(hd.locks);
    printf("%s\n", ok ? "ok" : "FAILED");
    return ok ? 0 : 1;
}
