/* histogram.c - a histogram of time spans; see histogram.h. */
/* SPDX-License-Identifier: MIT */
#include "core/stats/histogram.h"

#include "base/alloc.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Room grows by doubling from here. */
enum { ROOM_FIRST = 8 };

void dibs__histogram_fini(dibs__histogram *hg)
{
    dibsx_free(hg->cells);
    *hg = (dibs__histogram){0};
}

static uint64_t add_capped(uint64_t a, uint64_t b)
{
    uint64_t sum;

    return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

/* Below eight each microsecond is a bucket; above, the three bits after the
 * highest one choose among the eight of its doubling. */
static uint32_t bucket_of(uint64_t span_us)
{
    uint32_t high, bucket;

    if (span_us < 8)
        return (uint32_t)span_us;
    high = 63 - (uint32_t)__builtin_clzll(span_us);
    bucket = 8 * (high - 2) + (uint32_t)((span_us >> (high - 3)) & 7);
    return bucket < DIBS__HISTOGRAM_BUCKETS ? bucket
                                            : DIBS__HISTOGRAM_BUCKETS - 1;
}

/* The middle of a bucket. */
static uint64_t span_of(uint32_t bucket)
{
    uint32_t high = bucket / 8 + 2;
    uint64_t width;

    if (bucket < 8)
        return bucket;
    width = UINT64_C(1) << (high - 3);
    return (8 + bucket % 8) * width + width / 2;
}

/* The place of the bucket, or the one where it would go. */
static uint32_t place_of(const dibs__histogram *hg, uint32_t bucket)
{
    uint32_t low = 0, high = hg->used;

    while (low < high) {
        uint32_t middle = (low + high) / 2;

        if (hg->cells[middle].bucket < bucket)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool grow_cells(dibs__histogram *hg)
{
    uint32_t room = hg->room ? 2 * hg->room : ROOM_FIRST;
    dibs__histogram_cell *cells;

    if (hg->used < hg->room)
        return true;
    cells = dibsx_realloc_n(hg->cells, room, sizeof(*cells));
    if (!cells)
        return false;
    hg->cells = cells;
    hg->room = room;
    return true;
}

static bool count_bucket(dibs__histogram *hg, uint32_t bucket, uint32_t count)
{
    uint32_t i = place_of(hg, bucket);
    dibs__histogram_cell *cell;

    if (i == hg->used || hg->cells[i].bucket != bucket) {
        if (!grow_cells(hg))
            return false;
        memmove(&hg->cells[i + 1], &hg->cells[i],
                (hg->used - i) * sizeof(hg->cells[0]));
        hg->cells[i] = (dibs__histogram_cell){.bucket = bucket};
        hg->used++;
    }
    cell = &hg->cells[i];
    cell->count =
        count < UINT32_MAX - cell->count ? cell->count + count : UINT32_MAX;
    return true;
}

void dibs__histogram_add(dibs__histogram *hg, uint64_t span_us)
{
    (void)count_bucket(hg, bucket_of(span_us), 1);
    hg->count = add_capped(hg->count, 1);
    hg->total_us = add_capped(hg->total_us, span_us);
    if (span_us > hg->max_us)
        hg->max_us = span_us;
}

void dibs__histogram_merge(dibs__histogram *hg, const dibs__histogram *from)
{
    for (uint32_t i = 0; i < from->used; i++)
        (void)count_bucket(hg, from->cells[i].bucket, from->cells[i].count);
    hg->count = add_capped(hg->count, from->count);
    hg->total_us = add_capped(hg->total_us, from->total_us);
    if (from->max_us > hg->max_us)
        hg->max_us = from->max_us;
}

/* The span below which so many of a hundred are; `hits` is the sum of all cells.
 * No quantile is beyond the maximum. */
static uint64_t
find_quantile(const dibs__histogram *hg, uint64_t hits, unsigned percent)
{
    uint64_t rank = (hits * percent + 99) / 100;
    uint64_t seen = 0;
    uint64_t span_us = 0;

    for (uint32_t i = 0; i < hg->used && seen < rank; i++) {
        seen += hg->cells[i].count;
        span_us = span_of(hg->cells[i].bucket);
    }
    return span_us < hg->max_us ? span_us : hg->max_us;
}

void dibs__histogram_show(const dibs__histogram *hg, dibs_spans *out)
{
    uint64_t hits = 0;

    for (uint32_t i = 0; i < hg->used; i++)
        hits += hg->cells[i].count;
    *out = (dibs_spans){.count = hg->count,
                        .p50_us = find_quantile(hg, hits, 50),
                        .p95_us = find_quantile(hg, hits, 95),
                        .p99_us = find_quantile(hg, hits, 99),
                        .max_us = hg->max_us,
                        .mean_us = hg->count ? hg->total_us / hg->count : 0};
}

dibs_span_count *
dibs__histogram_copy_counts(const dibs__histogram *hg, size_t *len)
{
    dibs_span_count *counts =
        hg->used ? dibsx_zalloc_n(hg->used, sizeof(*counts)) : NULL;

    *len = counts ? hg->used : 0;
    for (size_t i = 0; i < *len; i++)
        counts[i] = (dibs_span_count){.span_us = span_of(hg->cells[i].bucket),
                                      .count = hg->cells[i].count};
    return counts;
}

void dibs__histogram_write(const dibs__histogram *hg, dibsx_buf *out)
{
    dibsx_buf_printf(out, "%" PRIu64 " %" PRIu64 " %" PRIu64, hg->count,
                     hg->total_us, hg->max_us);
    for (uint32_t i = 0; i < hg->used; i++)
        dibsx_buf_printf(out, " %" PRIu32 ":%" PRIu32, hg->cells[i].bucket,
                         hg->cells[i].count);
}

/* Reads a number that is followed by `end`, and moves beyond both. A text that
 * ends here may end with a number as well. */
static bool
read_number(const char **text, char end, uint64_t max, uint64_t *out)
{
    char *after = NULL;

    if (**text < '0' || **text > '9')
        return false;
    *out = strtoumax(*text, &after, 10);
    if (*out > max || (*after != end && *after != '\0'))
        return false;
    *text = *after ? after + 1 : after;
    return true;
}

static dibs_status read_cell(const char **text, dibs__histogram *out)
{
    uint64_t bucket, count;

    if (!read_number(text, ':', DIBS__HISTOGRAM_BUCKETS - 1, &bucket) ||
        !read_number(text, ' ', UINT32_MAX, &count) || count == 0)
        return DIBS_MISMATCH;
    return count_bucket(out, (uint32_t)bucket, (uint32_t)count) ? DIBS_OK
                                                                : DIBS_NOMEM;
}

dibs_status dibs__histogram_read(const char *text, dibs__histogram *out)
{
    dibs_status rc = DIBS_OK;

    *out = (dibs__histogram){0};
    if (!read_number(&text, ' ', UINT64_MAX, &out->count) ||
        !read_number(&text, ' ', UINT64_MAX, &out->total_us) ||
        !read_number(&text, ' ', UINT64_MAX, &out->max_us))
        rc = DIBS_MISMATCH;
    while (rc == DIBS_OK && *text)
        rc = read_cell(&text, out);
    if (rc != DIBS_OK)
        dibs__histogram_fini(out);
    return rc;
}
