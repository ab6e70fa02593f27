/* feed.h - what happened to locks, one event each, as the look saw it or a client told it;
 * and numbers over time for charts. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_SERVE_FEED_H
#define DIBS_SERVE_FEED_H

#include "serve/hub.h"
#include "serve/look.h"
#include "serve/series.h"
#include <dibs/viewer.h>

enum { DIBS__SERVE_FEED_MAX = 1000 };

/* The numbers for charts. The look's thread adds, any thread reads. */
typedef struct dibs__serve_charts {
    pthread_mutex_t mutex; /* for the series */
    dibs__series series;

    /* The look's thread only. */
    int64_t requests; /* until the last sample */
} dibs__serve_charts;

/* End with dibs__serve_charts_fini(), which may also follow a failure. */
DIBS_MUST_CHECK dibs_status dibs__serve_charts_init(dibs__serve_charts *charts,
                                                    dibs_error *err);
void dibs__serve_charts_fini(dibs__serve_charts *charts);

/* As dibs__serve_seen_fn, with a daemon: publishes what has happened, and makes a
 * sample for the charts. */
void dibs__serve_feed_seen(void *arg, const dibs__serve_picture *before,
                           const dibs__serve_picture *now);

/* As dibs__viewer_fn, with a daemon: publishes what a client told of a lease. */
void dibs__serve_feed_told(void *arg, const dibs_lease_event *event);

#endif
