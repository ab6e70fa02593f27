/* timeline.h - which records the timeline of a board reads. Pure. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_SERVE_TIMELINE_H
#define DIBS_SERVE_TIMELINE_H

#include "serve/board_picture.h"

typedef struct dibs__timeline_ids {
    const dibs__board_run_id **at; /* free it with dibsx_free() */
    size_t count;
    bool complete; /* false: there are more that may be of the span */
} dibs__timeline_ids;

/* Up to `max` runs that may be of a span, those that surely are before the others: runs
 * that ended within it, the newest first, then those that ended later, the oldest first. A
 * later one is of the span if it began in time, which its record says. False: no
 * memory. */
bool dibs__timeline_pick(const dibs__board_picture *picture, int64_t from_us,
                         int64_t to_us, size_t max, dibs__timeline_ids *out);

#endif
