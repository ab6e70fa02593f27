/* counts.c - what the daemon counts of itself. Any thread. */
/* SPDX-License-Identifier: MIT */
#include "serve/counts.h"
#include "base/clock.h"
#include "serve/metrics.h"
#include <stdio.h>
#include <string.h>

/* Upper ends in microseconds, and as they are written. */
static const struct {
    int64_t us;
    const char *text;
} ends[DIBS__SERVE_BUCKETS] = {
    {500, "0.0005"},   {1000, "0.001"},  {2500, "0.0025"}, {5000, "0.005"},
    {10000, "0.01"},   {25000, "0.025"}, {50000, "0.05"},  {100000, "0.1"},
    {250000, "0.25"},  {500000, "0.5"},  {1000000, "1"},   {2500000, "2.5"},
    {5000000, "5"},    {10000000, "10"}, {30000000, "30"}, {60000000, "60"},
    {300000000, "300"}};

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
    dibs__serve_counted *own;
    size_t bucket = 0;

    while (bucket < DIBS__SERVE_BUCKETS && took_us > ends[bucket].us)
        bucket++;
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

static void put_histogram(const dibs__serve_counted *own, dibsx_buf *out)
{
    static const char name[] = "dibs_http_request_seconds";
    unsigned long long sum = 0;

    for (size_t i = 0; i <= DIBS__SERVE_BUCKETS; i++) {
        sum += own->buckets[i];
        dibsx_buf_printf(out, "%s_bucket{route=\"%s\",le=\"%s\"} %llu\n", name,
                         own->route,
                         i < DIBS__SERVE_BUCKETS ? ends[i].text : "+Inf", sum);
    }
    dibsx_buf_printf(out, "%s_sum{route=\"%s\"} %.6f\n", name, own->route,
                     (double)own->sum_us / 1e6);
    dibsx_buf_printf(out, "%s_count{route=\"%s\"} %llu\n", name, own->route,
                     sum);
}

void dibs__serve_counts_put(dibs__serve_counts *counts, dibsx_buf *out)
{
    pthread_mutex_lock(&counts->mutex);
    put_requests(counts, out);
    dibs__serve_metric_head(out, DIBS__SERVE_HTTP_SECONDS);
    for (size_t r = 0; r < counts->count; r++)
        put_histogram(&counts->routes[r], out);
    dibs__serve_metric_put(out, DIBS__SERVE_RELOAD_OK, counts->reloaded);
    dibs__serve_metric_put(out, DIBS__SERVE_RELOAD_AT,
                           (double)counts->reloaded_wall_us / 1e6);
    pthread_mutex_unlock(&counts->mutex);
}
