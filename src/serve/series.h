/* series.h - numbers over time for charts: an hour in steps of 5 s, a day in steps of
 * a minute. In memory only. Pure.
 *
 *     samples --> the point that is open, of each ring --> points that are closed
 *
 * A gauge of a point is the highest of its samples; a count is their sum. A step without
 * a sample has no point: while nobody asks, the look makes one sample a minute.
 *
 *   (S1) A ring has at most its number of points, each at a later moment than the one
 *        before. If the clock is set back, the points after the new time go.
 *   (S2) What was counted is in exactly one point of each ring.
 *
 * One thread at a time. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_SERVE_SERIES_H
#define DIBS_SERVE_SERIES_H

#include "base/json.h"
#include <dibs/types.h>

/* In the order of the table of names. */
typedef enum dibs__series_name {
    DIBS__SERIES_UP, /* 1: the store answered */
    DIBS__SERIES_NAMES,
    DIBS__SERIES_HELD,
    DIBS__SERIES_WAITING,
    DIBS__SERIES_LONGEST_WAIT,
    DIBS__SERIES_GRANTED,
    DIBS__SERIES_ENDED,
    DIBS__SERIES_EXPIRED,
    DIBS__SERIES_REQUESTS,
    DIBS__SERIES_SESSIONS,
    DIBS__SERIES_LEASES,
    DIBS__SERIES_STREAMS,
    DIBS__SERIES_SAMPLED, /* as many are in a sample; the rest is made of waits */
    DIBS__SERIES_WAIT_P50 = DIBS__SERIES_SAMPLED,
    DIBS__SERIES_WAIT_P95,
    DIBS__SERIES_WAIT_P99,
    DIBS__SERIES_COUNT
} dibs__series_name;

enum {
    DIBS__SERIES_STEP_S = 5,
    DIBS__SERIES_STEPS = 720, /* an hour */
    DIBS__SERIES_LONG_STEP_S = 60,
    DIBS__SERIES_LONG_STEPS = 1440, /* a day */
    DIBS__SERIES_WAITS_MAX = 512    /* of one point; later ones replace some */
};

typedef struct dibs__series_point {
    int64_t at_s;                       /* since 1970, a multiple of the step */
    int64_t values[DIBS__SERIES_COUNT]; /* -1: not known */
} dibs__series_point;

typedef struct dibs__series_ring {
    int64_t step_s;
    size_t max;
    dibs__series_point *points; /* point N at N modulo max */
    uint64_t first, next;
    bool begun; /* there is an open point: */
    dibs__series_point open;
    int64_t waits_ms[DIBS__SERIES_WAITS_MAX];
    uint64_t wait_count; /* also those that were replaced */
} dibs__series_ring;

typedef struct dibs__series {
    dibs__series_ring fine, coarse;
} dibs__series;

/* All that is new since the last sample. */
typedef struct dibs__series_sample {
    int64_t values[DIBS__SERIES_SAMPLED]; /* -1: not known */
    const int64_t *waits_ms;              /* of grants */
    size_t wait_count;
} dibs__series_sample;

/* End with dibs__series_fini(). */
DIBS_MUST_CHECK dibs_status dibs__series_init(dibs__series *series,
                                              dibs_error *err);
void dibs__series_fini(dibs__series *series);

/* Adds a sample. Returns the point of the fine ring that it closed, or NULL. */
const dibs__series_point *dibs__series_add(dibs__series *series, int64_t wall_s,
                                           const dibs__series_sample *sample);

/* Reads "held,waiting" into a set of bits; false: one of them is not known. NULL or
 * "": all. */
DIBS_MUST_CHECK bool dibs__series_names(const char *text, uint32_t *out);

/* Writes the pairs of a point, "at_s" first. */
void dibs__series_point_json(dibsx_json *js, const dibs__series_point *point,
                             uint32_t names);

/* Writes the pairs of the answer: the points of the ring with that step, oldest first,
 * and the open one. */
void dibs__series_json(const dibs__series *series, int64_t step_s,
                       int64_t wall_s, uint32_t names, dibsx_json *js);

#endif
