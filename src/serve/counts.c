/* counts.c - what the daemon counts of itself. Any thread. */
/* SPDX-License-Identifier: MIT */
#include "serve/counts.h"
#include "base/clock.h"
#include "serve/metrics.h"
#include <stdio.h>
#include <string.h>

void dibs__serve_counts_init(dibs__serve_counts *counts)
{
    *counts = (dibs__serve_counts){.reloaded = true,
                                   .reloaded_wall_us = dibsx_wall_us()};
    pthread_mutex_init(&counts->mutex, NULL);
}

void dibs__serve_counts_fini(dibs__serve_counts *counts)
{
    pthread_mutex_destroy(&counts->mutex);
}

/* Locks: counts->mutex. NULL: there are too many. */
static dibs__serve_counted *
find_counted(dibs__serve_counts *counts, const char *route)
{
    size_t i = 0;

    while (i < counts->count && strcmp(counts->routes[i].route, route) != 0)
        i++;
    if (i == DIBS__SERVE_COUNTED_ROUTES)
        return NULL;
    if (i == counts->count)
        counts->routes[counts->count++].route = route;
    return &counts->routes[i];
}

static void count_code(dibs__serve_counted *own, int code)
{
    for (size_t i = 0; i < DIBS__SERVE_COUNTED_CODES; i++) {
        if (own->codes[i].code && own->codes[i].code != code)
            continue;
        own->codes[i].code = code;
        own->codes[i].count++;
        return;
    }
}

void dibs__serve_counts_add(dibs__serve_counts *counts, const char *route,
                            int code, int64_t took_us)
{
    const size_t bucket = dibs__serve_metric_bucket(&dibs__serve_wait_ends,
                                                    (double)took_us / 1e6);
    dibs__serve_counted *own;

    pthread_mutex_lock(&counts->mutex);
    counts->sum++;
    own = find_counted(counts, route ? route : "none");
    if (own) {
        count_code(own, code);
        own->buckets[bucket]++;
        own->sum_us += (uint64_t)took_us;
    }
    pthread_mutex_unlock(&counts->mutex);
}

uint64_t dibs__serve_counts_sum(dibs__serve_counts *counts)
{
    uint64_t sum;

    pthread_mutex_lock(&counts->mutex);
    sum = counts->sum;
    pthread_mutex_unlock(&counts->mutex);
    return sum;
}

void dibs__serve_counts_reload(dibs__serve_counts *counts, bool worked)
{
    pthread_mutex_lock(&counts->mutex);
    counts->reloaded = worked;
    if (worked)
        counts->reloaded_wall_us = dibsx_wall_us();
    pthread_mutex_unlock(&counts->mutex);
}

void dibs__serve_counts_jobs(dibs__serve_counts *counts, bool refused)
{
    pthread_mutex_lock(&counts->mutex);
    counts->jobs_refused = refused;
    pthread_mutex_unlock(&counts->mutex);
}

void dibs__serve_counts_audit(dibs__serve_counts *counts)
{
    pthread_mutex_lock(&counts->mutex);
    counts->audit_failures++;
    pthread_mutex_unlock(&counts->mutex);
}

static const char *const breaks[DIBS__SERVE_BREAKS] = {"break", "break-stale",
                                                       "resign", "unlock"};

void dibs__serve_counts_broken(dibs__serve_counts *counts, const char *action,
                               uint32_t leases)
{
    pthread_mutex_lock(&counts->mutex);
    for (size_t i = 0; i < DIBS__SERVE_BREAKS; i++)
        if (strcmp(breaks[i], action) == 0)
            counts->broken[i] += leases;
    pthread_mutex_unlock(&counts->mutex);
}

/* Locks: counts->mutex. */
static void put_broken(const dibs__serve_counts *counts, dibsx_buf *out)
{
    dibs__serve_metric_head(out, DIBS__SERVE_BROKEN);
    for (size_t i = 0; i < DIBS__SERVE_BREAKS; i++)
        dibs__serve_metric_labelled(out, DIBS__SERVE_BROKEN, "action",
                                    breaks[i], NULL, (double)counts->broken[i]);
}

/* Locks: counts->mutex. */
static void put_requests(const dibs__serve_counts *counts, dibsx_buf *out)
{
    dibs__serve_metric_head(out, DIBS__SERVE_HTTP_REQUESTS);
    for (size_t r = 0; r < counts->count; r++) {
        const dibs__serve_counted *own = &counts->routes[r];

        for (size_t i = 0; i < DIBS__SERVE_COUNTED_CODES && own->codes[i].code;
             i++)
            dibsx_buf_printf(
                out,
                "dibs_http_requests_total{route=\"%s\",code=\"%d\"} %llu\n",
                own->route, own->codes[i].code,
                (unsigned long long)own->codes[i].count);
    }
}

void dibs__serve_counts_put(dibs__serve_counts *counts, dibsx_buf *out)
{
    pthread_mutex_lock(&counts->mutex);
    put_broken(counts, out);
    put_requests(counts, out);
    dibs__serve_metric_head(out, DIBS__SERVE_HTTP_SECONDS);
    for (size_t r = 0; r < counts->count; r++)
        dibs__serve_metric_histogram(out, DIBS__SERVE_HTTP_SECONDS, "route",
                                     counts->routes[r].route,
                                     &dibs__serve_wait_ends,
                                     counts->routes[r].buckets,
                                     (double)counts->routes[r].sum_us / 1e6);
    dibs__serve_metric_put(out, DIBS__SERVE_RELOAD_OK,
                           counts->reloaded && !counts->jobs_refused);
    dibs__serve_metric_put(out, DIBS__SERVE_RELOAD_AT,
                           (double)counts->reloaded_wall_us / 1e6);
    dibs__serve_metric_put(out, DIBS__SERVE_AUDIT_FAILURES,
                           (double)counts->audit_failures);
    pthread_mutex_unlock(&counts->mutex);
}
