/* histogram.c - how spans of time are spread; see histogram.h. */
/* SPDX-License-Identifier: MIT */
#include "core/stats/histogram.h"

#include "base/alloc.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Room grows by doubling from here. */
enum { ROOM_FIRST = 8 };

void dibs__histogram_fini(dibs__histogram *sp)
{
    dibsx_free(sp->cells);
    *sp = (dibs__histogram){0};
}

static uint64_t plus(uint64_t a, uint64_t b)
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
    return bucket < DIBS__SPREAD_BUCKETS ? bucket : DIBS__SPREAD_BUCKETS - 1;
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
static uint32_t place_of(const dibs__histogram *sp, uint32_t bucket)
{
    uint32_t low = 0, high = sp->used;

    while (low < high) {
        uint32_t middle = (low + high) / 2;

        if (sp->cells[middle].bucket < bucket)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool grow(dibs__histogram *sp)
{
    uint32_t room = sp->room ? 2 * sp->room : ROOM_FIRST;
    dibs__histogram_cell *cells;

    if (sp->used < sp->room)
        return true;
    cells = dibsx_realloc_n(sp->cells, room, sizeof(*cells));
    if (!cells)
        return false;
    sp->cells = cells;
    sp->room = room;
    return true;
}

static bool hit(dibs__histogram *sp, uint32_t bucket, uint32_t count)
{
    uint32_t i = place_of(sp, bucket);
    dibs__histogram_cell *cell;

    if (i == sp->used || sp->cells[i].bucket != bucket) {
        if (!grow(sp))
            return false;
        memmove(&sp->cells[i + 1], &sp->cells[i],
                (sp->used - i) * sizeof(sp->cells[0]));
        sp->cells[i] = (dibs__histogram_cell){.bucket = bucket};
        sp->used++;
    }
    cell = &sp->cells[i];
    cell->count =
        count < UINT32_MAX - cell->count ? cell->count + count : UINT32_MAX;
    return true;
}

void dibs__histogram_add(dibs__histogram *sp, uint64_t span_us)
{
    (void)hit(sp, bucket_of(span_us), 1);
    sp->count = plus(sp->count, 1);
    sp->total_us = plus(sp->total_us, span_us);
    if (span_us > sp->max_us)
        sp->max_us = span_us;
}

void dibs__histogram_merge(dibs__histogram *sp, const dibs__histogram *from)
{
    for (uint32_t i = 0; i < from->used; i++)
        (void)hit(sp, from->cells[i].bucket, from->cells[i].count);
    sp->count = plus(sp->count, from->count);
    sp->total_us = plus(sp->total_us, from->total_us);
    if (from->max_us > sp->max_us)
        sp->max_us = from->max_us;
}

/* The span below which so many of a hundred are; `hits` is the sum of all cells.
 * No quantile is beyond the maximum. */
static uint64_t
quantile(const dibs__histogram *sp, uint64_t hits, unsigned percent)
{
    uint64_t rank = (hits * percent + 99) / 100;
    uint64_t seen = 0;
    uint64_t span_us = 0;

    for (uint32_t i = 0; i < sp->used && seen < rank; i++) {
        seen += sp->cells[i].count;
        span_us = span_of(sp->cells[i].bucket);
    }
    return span_us < sp->max_us ? span_us : sp->max_us;
}

void dibs__histogram_show(const dibs__histogram *sp, dibs_spans *out)
{
    uint64_t hits = 0;

    for (uint32_t i = 0; i < sp->used; i++)
        hits += sp->cells[i].count;
    *out = (dibs_spans){.count = sp->count,
                        .p50_us = quantile(sp, hits, 50),
                        .p95_us = quantile(sp, hits, 95),
                        .p99_us = quantile(sp, hits, 99),
                        .max_us = sp->max_us};
}

void dibs__histogram_write(const dibs__histogram *sp, dibsx_buf *out)
{
    dibsx_buf_printf(out, "%" PRIu64 " %" PRIu64 " %" PRIu64, sp->count,
                     sp->total_us, sp->max_us);
    for (uint32_t i = 0; i < sp->used; i++)
        dibsx_buf_printf(out, " %" PRIu32 ":%" PRIu32, sp->cells[i].bucket,
                         sp->cells[i].count);
}

/* Reads a number that is followed by `end`, and moves beyond both. A text that
 * ends here may end with a number as well. */
static bool number(const char **text, char end, uint64_t max, uint64_t *out)
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

    if (!number(text, ':', DIBS__SPREAD_BUCKETS - 1, &bucket) ||
        !number(text, ' ', UINT32_MAX, &count) || count == 0)
        return DIBS_MISMATCH;
    return hit(out, (uint32_t)bucket, (uint32_t)count) ? DIBS_OK : DIBS_NOMEM;
}

dibs_status dibs__histogram_read(const char *text, dibs__histogram *out)
{
    dibs_status rc = DIBS_OK;

    *out = (dibs__histogram){0};
    if (!number(&text, ' ', UINT64_MAX, &out->count) ||
        !number(&text, ' ', UINT64_MAX, &out->total_us) ||
        !number(&text, ' ', UINT64_MAX, &out->max_us))
        rc = DIBS_MISMATCH;
    while (rc == DIBS_OK && *text)
        rc = read_cell(&text, out);
    if (rc != DIBS_OK)
        dibs__histogram_fini(out);
    return rc;
}
