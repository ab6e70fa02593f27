/* lock_sums.c - shared statistics by class of names; see lock_sums.h.
 *
 * Owns what it remembers of each name. */
/* SPDX-License-Identifier: MIT */
#include "serve/lock_sums.h"
#include "base/alloc.h"
#include "base/hash.h"
#include "serve/metrics.h"
#include <string.h>

enum {
    PACE_MS = 1000,
    NUMBERS = sizeof(dibs__lock_numbers) / sizeof(uint64_t)
};

void dibs__lock_sums_init(dibs__lock_sums *sums, const char *rules)
{
    *sums = (dibs__lock_sums){.rules = rules};
    memcpy(sums->classes[DIBS__LOCK_CLASSES_MAX].name, "other", 6);
    pthread_mutex_init(&sums->mutex, NULL);
}

static uint8_t *forgotten_byte(dibs__lock_sums *sums, uint32_t hash)
{
    return &sums->forgotten[hash % DIBS__LOCK_SUMS_FORGOTTEN / 8];
}

/* Frees the names that no reading since this one had. */
static void forget_before(dibs__lock_sums *sums, uint64_t reading)
{
    for (size_t i = 0; i < DIBS__LOCK_SUMS_BUCKETS; i++) {
        dibs__lock_seen **at = &sums->buckets[i];

        while (*at) {
            dibs__lock_seen *seen = *at;
            const uint32_t hash = dibsx_hash_text(seen->name);

            if (seen->reading >= reading) {
                at = &seen->next;
                continue;
            }
            *at = seen->next;
            *forgotten_byte(sums, hash) |= (uint8_t)(1U << hash % 8);
            dibsx_free(seen);
            sums->names--;
        }
    }
}

void dibs__lock_sums_fini(dibs__lock_sums *sums)
{
    forget_before(sums, UINT64_MAX);
    pthread_mutex_destroy(&sums->mutex);
}

static dibs__lock_class *class_of(dibs__lock_sums *sums, const char *lock)
{
    dibs__lock_class *other = &sums->classes[DIBS__LOCK_CLASSES_MAX];
    char name[DIBS__SERVE_CLASS_MAX];
    size_t i = 0;

    dibs__serve_class(sums->rules, lock, name);
    while (i < sums->count && strcmp(sums->classes[i].name, name) != 0)
        i++;
    if (i < sums->count)
        return &sums->classes[i];
    /* A class of that very name must not be a second series. */
    if (i == DIBS__LOCK_CLASSES_MAX || strcmp(name, other->name) == 0) {
        sums->others = true;
        sums->dropped += i == DIBS__LOCK_CLASSES_MAX;
        return other;
    }
    memcpy(sums->classes[sums->count++].name, name, sizeof(name));
    return &sums->classes[i];
}

/* The record of a name; made when there is none. NULL: no memory. */
static dibs__lock_seen *seen_of(dibs__lock_sums *sums, const char *name)
{
    const uint32_t hash = dibsx_hash_text(name);
    dibs__lock_seen **bucket = &sums->buckets[hash % DIBS__LOCK_SUMS_BUCKETS];
    const size_t size = strlen(name) + 1;
    dibs__lock_seen *seen;

    for (seen = *bucket; seen; seen = seen->next)
        if (strcmp(seen->name, name) == 0)
            return seen;
    seen = dibsx_zalloc(sizeof(*seen) + size);
    if (!seen)
        return NULL;
    memcpy(seen->name, name, size);
    seen->known = !(*forgotten_byte(sums, hash) & 1U << hash % 8);
    seen->next = *bucket;
    *bucket = seen;
    sums->names++;
    return seen;
}

static void fill_buckets(uint64_t *buckets, const dibs__serve_ends *ends,
                         const dibs_span_count *counts, size_t len)
{
    for (size_t i = 0; i < len; i++)
        buckets[dibs__serve_metric_bucket(ends, (double)counts[i].span_us /
                                                    1e6)] += counts[i].count;
}

/* Adds what has grown since the last time. A number that has fallen says that the
 * store had forgotten the name: all of it is new then. */
static void add_growth(dibs__lock_numbers *sum, const dibs__lock_numbers *last,
                       const dibs__lock_numbers *now)
{
    uint64_t before[NUMBERS], after[NUMBERS], all[NUMBERS];
    bool fell = false;

    memcpy(before, last, sizeof(before));
    memcpy(after, now, sizeof(after));
    memcpy(all, sum, sizeof(all));
    for (size_t i = 0; i < NUMBERS; i++)
        fell = fell || after[i] < before[i];
    for (size_t i = 0; i < NUMBERS; i++)
        all[i] += after[i] - (fell ? 0 : before[i]);
    memcpy(sum, all, sizeof(all));
}

static void take_slower(dibs_spans *own, const dibs_spans *other)
{
    own->count += other->count;
    if (other->p50_us > own->p50_us)
        own->p50_us = other->p50_us;
    if (other->p95_us > own->p95_us)
        own->p95_us = other->p95_us;
    if (other->p99_us > own->p99_us)
        own->p99_us = other->p99_us;
}

void dibs__lock_sums_begin(dibs__lock_sums *sums)
{
    sums->reading++;
    sums->dropped = 0;
    for (size_t i = 0; i <= DIBS__LOCK_CLASSES_MAX; i++)
        sums->classes[i].wait = sums->classes[i].hold =
            (dibs_spans){.count = 0};
}

void dibs__lock_sums_add(dibs__lock_sums *sums, const dibs_name_stats *stats)
{
    dibs__lock_numbers now = {.wait_us = stats->wait_total_us,
                              .hold_us = stats->hold_total_us,
                              .contended = stats->contended};
    dibs__lock_seen *seen = seen_of(sums, stats->name);
    dibs__lock_class *class;

    if (!seen)
        return;
    class = class_of(sums, stats->name);
    fill_buckets(now.wait, &dibs__serve_wait_ends, stats->wait_counts,
                 stats->wait_counts_len);
    fill_buckets(now.hold, &dibs__serve_hold_ends, stats->hold_counts,
                 stats->hold_counts_len);
    if (seen->known)
        add_growth(&class->all, &seen->last, &now);
    seen->known = true;
    seen->last = now;
    seen->reading = sums->reading;
    take_slower(&class->wait, &stats->wait);
    take_slower(&class->hold, &stats->hold);
}

void dibs__lock_sums_end(dibs__lock_sums *sums)
{
    if (sums->names > DIBS__LOCK_SUMS_NAMES_MAX)
        forget_before(sums, sums->reading);
}

static bool add_stats(const dibs_name_stats *stats, void *arg)
{
    dibs__lock_sums_add(arg, stats);
    return true;
}

void dibs__lock_sums_read(dibs__lock_sums *sums, dibs_client *cl)
{
    pthread_mutex_lock(&sums->mutex);
    if (!sums->read_at ||
        dibsx_now() >= dibsx_after_ms(sums->read_at, PACE_MS)) {
        dibs__lock_sums_begin(sums);
        (void)!dibs_name_stats_shared(cl, NULL, add_stats, sums, NULL);
        dibs__lock_sums_end(sums);
        sums->read_at = dibsx_now();
    }
    pthread_mutex_unlock(&sums->mutex);
}

/* ---- text */

typedef void put_fn(dibsx_buf *out, dibs__serve_metric metric,
                    const dibs__lock_class *class);

static void put_wait(dibsx_buf *out, dibs__serve_metric metric,
                     const dibs__lock_class *class)
{
    dibs__serve_metric_histogram(out, metric, "lock", class->name,
                                 &dibs__serve_wait_ends, class->all.wait,
                                 (double)class->all.wait_us / 1e6);
}

static void put_hold(dibsx_buf *out, dibs__serve_metric metric,
                     const dibs__lock_class *class)
{
    dibs__serve_metric_histogram(out, metric, "lock", class->name,
                                 &dibs__serve_hold_ends, class->all.hold,
                                 (double)class->all.hold_us / 1e6);
}

static void put_contended(dibsx_buf *out, dibs__serve_metric metric,
                          const dibs__lock_class *class)
{
    dibs__serve_metric_sample(out, metric, class->name, NULL,
                              (double)class->all.contended);
}

static void put_quantiles(dibsx_buf *out, dibs__serve_metric metric,
                          const char *lock, const dibs_spans *spans)
{
    if (spans->count == 0)
        return;
    dibs__serve_metric_sample(out, metric, lock, "percentile=\"50\"",
                              (double)spans->p50_us / 1e6);
    dibs__serve_metric_sample(out, metric, lock, "percentile=\"95\"",
                              (double)spans->p95_us / 1e6);
    dibs__serve_metric_sample(out, metric, lock, "percentile=\"99\"",
                              (double)spans->p99_us / 1e6);
}

static void put_waits(dibsx_buf *out, dibs__serve_metric metric,
                      const dibs__lock_class *class)
{
    put_quantiles(out, metric, class->name, &class->wait);
}

static void put_holds(dibsx_buf *out, dibs__serve_metric metric,
                      const dibs__lock_class *class)
{
    put_quantiles(out, metric, class->name, &class->hold);
}

uint64_t dibs__lock_sums_put(dibs__lock_sums *sums, dibsx_buf *out)
{
    static const struct {
        dibs__serve_metric metric;
        put_fn *put;
    } parts[] = {{DIBS__SERVE_WAIT_SECONDS, put_wait},
                 {DIBS__SERVE_HOLD_SECONDS, put_hold},
                 {DIBS__SERVE_CONTENDED, put_contended},
                 {DIBS__SERVE_WAIT_QUANTILE, put_waits},
                 {DIBS__SERVE_HOLD_QUANTILE, put_holds}};
    uint64_t dropped;

    pthread_mutex_lock(&sums->mutex);
    for (size_t p = 0; p < sizeof(parts) / sizeof(parts[0]); p++) {
        dibs__serve_metric_head(out, parts[p].metric);
        for (size_t i = 0; i < sums->count; i++)
            parts[p].put(out, parts[p].metric, &sums->classes[i]);
        if (sums->others)
            parts[p].put(out, parts[p].metric,
                         &sums->classes[DIBS__LOCK_CLASSES_MAX]);
    }
    dropped = sums->dropped;
    pthread_mutex_unlock(&sums->mutex);
    return dropped;
}
