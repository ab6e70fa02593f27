/* buckets.h - the buckets of histograms: their ends in seconds, for waits and for holds,
 * and as parts of a ttl. metrics.c has them. Pure. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_SERVE_BUCKETS_H
#define DIBS_SERVE_BUCKETS_H

#include <stddef.h>

enum {
    DIBS__SERVE_WAIT_ENDS = 17,
    DIBS__SERVE_HOLD_ENDS = 11,
    DIBS__SERVE_SLACK_ENDS = 9
};

typedef struct dibs__serve_ends {
    const double *at;
    size_t count;
} dibs__serve_ends;

extern const dibs__serve_ends dibs__serve_wait_ends, dibs__serve_hold_ends,
    dibs__serve_slack_ends;

/* The bucket of a span; the one after the last end has the rest. */
size_t dibs__serve_metric_bucket(const dibs__serve_ends *ends, double span_s);

#endif
