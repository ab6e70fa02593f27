/* series.c - numbers over time for charts. Pure. */
/* SPDX-License-Identifier: MIT */
#include "serve/series.h"
#include "base/alloc.h"
#include "base/fail.h"
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    bool counted; /* a sum; else the highest */
} table[DIBS__SERIES_COUNT] = {
    [DIBS__SERIES_UP] = {"store_up", false},
    [DIBS__SERIES_NAMES] = {"names", false},
    [DIBS__SERIES_HELD] = {"held", false},
    [DIBS__SERIES_WAITING] = {"waiting", false},
    [DIBS__SERIES_LONGEST_WAIT] = {"longest_wait_ms", false},
    [DIBS__SERIES_GRANTED] = {"granted", true},
    [DIBS__SERIES_ENDED] = {"ended", true},
    [DIBS__SERIES_EXPIRED] = {"expired", true},
    [DIBS__SERIES_REQUESTS] = {"requests", true},
    [DIBS__SERIES_SESSIONS] = {"sessions", false},
    [DIBS__SERIES_LEASES] = {"session_leases", false},
    [DIBS__SERIES_STREAMS] = {"streams", false},
    [DIBS__SERIES_WAIT_P50] = {"wait_p50_ms", false},
    [DIBS__SERIES_WAIT_P95] = {"wait_p95_ms", false},
    [DIBS__SERIES_WAIT_P99] = {"wait_p99_ms", false},
};

static bool init_ring(dibs__series_ring *ring, int64_t step_s, size_t max)
{
    *ring = (dibs__series_ring){.step_s = step_s, .max = max};
    ring->points = dibsx_zalloc_n(max, sizeof(*ring->points));
    return ring->points != NULL;
}

dibs_status dibs__series_init(dibs__series *series, dibs_error *err)
{
    *series = (dibs__series){.fine.points = NULL};
    if (init_ring(&series->fine, DIBS__SERIES_STEP_S, DIBS__SERIES_STEPS) &&
        init_ring(&series->coarse, DIBS__SERIES_LONG_STEP_S,
                  DIBS__SERIES_LONG_STEPS))
        return DIBS_OK;
    dibs__series_fini(series);
    return dibsx_nomem(err, "the numbers for charts");
}

void dibs__series_fini(dibs__series *series)
{
    dibsx_free(series->fine.points);
    dibsx_free(series->coarse.points);
    series->fine.points = series->coarse.points = NULL;
}

static dibs__series_point *
point_of(const dibs__series_ring *ring, uint64_t number)
{
    return &ring->points[number % ring->max];
}

static int by_span(const void *a, const void *b)
{
    const int64_t one = *(const int64_t *)a, other = *(const int64_t *)b;

    return (one > other) - (one < other);
}

/* The open point as it is now, with the quantiles of its waits. */
static void finish_point(const dibs__series_ring *ring, dibs__series_point *out)
{
    int64_t sorted[DIBS__SERIES_WAITS_MAX];
    const size_t count = ring->wait_count < DIBS__SERIES_WAITS_MAX
                             ? (size_t)ring->wait_count
                             : DIBS__SERIES_WAITS_MAX;

    *out = ring->open;
    if (count == 0)
        return;
    memcpy(sorted, ring->waits_ms, count * sizeof(sorted[0]));
    qsort(sorted, count, sizeof(sorted[0]), by_span);
    out->values[DIBS__SERIES_WAIT_P50] = sorted[count * 50 / 100];
    out->values[DIBS__SERIES_WAIT_P95] = sorted[count * 95 / 100];
    out->values[DIBS__SERIES_WAIT_P99] = sorted[count * 99 / 100];
}

static const dibs__series_point *close_point(dibs__series_ring *ring)
{
    if (ring->next - ring->first == ring->max)
        ring->first++;
    finish_point(ring, point_of(ring, ring->next));
    ring->begun = false;
    return point_of(ring, ring->next++);
}

static void open_point(dibs__series_ring *ring, int64_t at_s)
{
    while (ring->first < ring->next &&
           point_of(ring, ring->next - 1)->at_s >= at_s)
        ring->next--;
    ring->begun = true;
    ring->wait_count = 0;
    ring->open.at_s = at_s;
    for (size_t i = 0; i < DIBS__SERIES_COUNT; i++)
        ring->open.values[i] = -1;
}

static void
add_values(dibs__series_ring *ring, const dibs__series_sample *sample)
{
    for (size_t i = 0; i < DIBS__SERIES_SAMPLED; i++) {
        int64_t *own = &ring->open.values[i], value = sample->values[i];

        if (table[i].counted && *own >= 0 && value >= 0)
            *own += value;
        else if (value > *own)
            *own = value;
    }
    for (size_t i = 0; i < sample->wait_count; i++)
        ring->waits_ms[ring->wait_count++ % DIBS__SERIES_WAITS_MAX] =
            sample->waits_ms[i];
}

static const dibs__series_point *
add_sample(dibs__series_ring *ring, int64_t wall_s,
           const dibs__series_sample *sample)
{
    const int64_t at_s = wall_s - wall_s % ring->step_s;
    const dibs__series_point *closed = NULL;

    if (ring->begun && ring->open.at_s != at_s)
        closed = close_point(ring);
    if (!ring->begun)
        open_point(ring, at_s);
    add_values(ring, sample);
    return closed;
}

const dibs__series_point *dibs__series_add(dibs__series *series, int64_t wall_s,
                                           const dibs__series_sample *sample)
{
    (void)add_sample(&series->coarse, wall_s, sample);
    return add_sample(&series->fine, wall_s, sample);
}

bool dibs__series_names(const char *text, uint32_t *out)
{
    *out = text && *text ? 0 : UINT32_MAX;
    while (text && *text) {
        const size_t len = strcspn(text, ",");
        size_t i = 0;

        while (i < DIBS__SERIES_COUNT &&
               (strlen(table[i].name) != len ||
                strncmp(table[i].name, text, len) != 0))
            i++;
        if (i == DIBS__SERIES_COUNT)
            return false;
        *out |= 1u << i;
        text += len + (text[len] == ',');
    }
    return *out != 0;
}

void dibs__series_point_json(dibsx_json *js, const dibs__series_point *point,
                             uint32_t names)
{
    dibsx_json_pair_int(js, "at_s", point->at_s);
    for (size_t i = 0; i < DIBS__SERIES_COUNT; i++) {
        if (!(names >> i & 1))
            continue;
        dibsx_json_key(js, table[i].name);
        if (point->values[i] < 0)
            dibsx_json_null(js);
        else
            dibsx_json_int(js, point->values[i]);
    }
}

static void
put_point(dibsx_json *js, const dibs__series_point *point, uint32_t names)
{
    dibsx_json_open(js, '{');
    dibs__series_point_json(js, point, names);
    dibsx_json_close(js, '}');
}

void dibs__series_json(const dibs__series *series, int64_t step_s,
                       int64_t wall_s, uint32_t names, dibsx_json *js)
{
    const dibs__series_ring *ring =
        step_s == series->coarse.step_s ? &series->coarse : &series->fine;
    const int64_t since_s = wall_s - (int64_t)ring->max * ring->step_s;
    dibs__series_point open;

    dibsx_json_pair_int(js, "step_s", ring->step_s);
    dibsx_json_key(js, "items");
    dibsx_json_open(js, '[');
    for (uint64_t i = ring->first; i < ring->next; i++) {
        if (point_of(ring, i)->at_s >= since_s)
            put_point(js, point_of(ring, i), names);
    }
    dibsx_json_close(js, ']');
    dibsx_json_key(js, "now");
    if (!ring->begun) {
        dibsx_json_null(js);
        return;
    }
    finish_point(ring, &open);
    put_point(js, &open, names);
}
