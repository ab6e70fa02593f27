/* metrics.h - the table of metrics, in the text format of Prometheus (0.0.4), and in
 * OpenMetrics (1.0). */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_SERVE_METRICS_H
#define DIBS_SERVE_METRICS_H

#include "base/buf.h"
#include "serve/buckets.h"
#include <stdint.h>

#define DIBS__SERVE_METRICS_TYPE "text/plain; version=0.0.4; charset=utf-8"

#define DIBS__SERVE_METRICS_OPEN                                               \
    "application/openmetrics-text; version=1.0.0; charset=utf-8"

/* Appends a page of the first format as one of the second. */
void dibs__serve_metrics_convert(const char *page, dibsx_buf *out);

/* In the order of the table. */
typedef enum dibs__serve_metric {
    DIBS__SERVE_BUILD_INFO,
    DIBS__SERVE_START_TIME,
    DIBS__SERVE_CPU,
    DIBS__SERVE_MEMORY,
    DIBS__SERVE_FILES,
    DIBS__SERVE_RELOAD_OK,
    DIBS__SERVE_RELOAD_AT,
    DIBS__SERVE_AUDIT_FAILURES,
    DIBS__SERVE_ATTEMPTS,
    DIBS__SERVE_ACQUIRED,
    DIBS__SERVE_NOT_ACQUIRED,
    DIBS__SERVE_RELEASED,
    DIBS__SERVE_LOST,
    DIBS__SERVE_BROKEN,
    DIBS__SERVE_RENEWALS,
    DIBS__SERVE_SLACK,
    DIBS__SERVE_FALLBACKS,
    DIBS__SERVE_WAIT_SECONDS,
    DIBS__SERVE_HOLD_SECONDS,
    DIBS__SERVE_CONTENDED,
    DIBS__SERVE_WAIT_QUANTILE,
    DIBS__SERVE_HOLD_QUANTILE,
    DIBS__SERVE_BACKEND_UP,
    DIBS__SERVE_OP_SECONDS,
    DIBS__SERVE_OP_ERRORS,
    DIBS__SERVE_CLOCK_SKEW,
    DIBS__SERVE_CLOCK_BEHIND,
    DIBS__SERVE_LOCKS_HELD,
    DIBS__SERVE_WAITERS,
    DIBS__SERVE_LONGEST_WAIT,
    DIBS__SERVE_PERMITS,
    DIBS__SERVE_PERMITS_IN_USE,
    DIBS__SERVE_STALE_HOLDERS,
    DIBS__SERVE_DEADLOCKS,
    DIBS__SERVE_NAMES,
    DIBS__SERVE_LOOK_SECONDS,
    DIBS__SERVE_LOOK_AGE,
    DIBS__SERVE_DROPPED_CLASSES,
    DIBS__SERVE_ELECTION_LED,
    DIBS__SERVE_ELECTION_TERM,
    DIBS__SERVE_ELECTION_CANDIDATES,
    DIBS__SERVE_ELECTION_CHANGES,
    DIBS__SERVE_QUEUE_MESSAGES,
    DIBS__SERVE_QUEUE_OLDEST,
    DIBS__SERVE_QUEUE_CONSUMERS,
    DIBS__SERVE_QUEUE_PUSHED,
    DIBS__SERVE_QUEUE_DONE,
    DIBS__SERVE_QUEUE_RETRIED,
    DIBS__SERVE_QUEUE_LOST,
    DIBS__SERVE_QUEUE_DEAD,
    DIBS__SERVE_BREAKER_STATE,
    DIBS__SERVE_BREAKER_CHANGES,
    DIBS__SERVE_HTTP_REQUESTS,
    DIBS__SERVE_HTTP_SECONDS,
    DIBS__SERVE_HTTP_CONNECTIONS,
    DIBS__SERVE_HTTP_REFUSED,
    DIBS__SERVE_SESSIONS,
    DIBS__SERVE_SESSION_LEASES,
    DIBS__SERVE_SESSIONS_ENDED,
    DIBS__SERVE_STREAMS,
    DIBS__SERVE_STREAM_GAPS,
    DIBS__SERVE_EVENTS_MISSED,
    DIBS__SERVE_JOB_RUNS,
    DIBS__SERVE_JOB_SKIPPED,
    DIBS__SERVE_JOB_MISSED,
    DIBS__SERVE_JOB_DURATION,
    DIBS__SERVE_JOB_DELAY,
    DIBS__SERVE_JOB_RUNNING,
    DIBS__SERVE_JOB_SUCCESS,
    DIBS__SERVE_JOB_NEXT,
    DIBS__SERVE_JOB_PERIOD,
    DIBS__SERVE_JOB_EXIT_CODE,
    DIBS__SERVE_METRIC_COUNT
} dibs__serve_metric;

/* Appends the lines that say what a metric is. */
void dibs__serve_metric_head(dibsx_buf *out, dibs__serve_metric metric);

/* These and a sample without labels; or a sample with labels, whose head was put:
 * `more` is text such as `percentile="95"`, or NULL. `_sample` is with a label "lock",
 * unless it is NULL; `_labelled` with any. */
void dibs__serve_metric_put(dibsx_buf *out, dibs__serve_metric metric,
                            double value);
void dibs__serve_metric_sample(dibsx_buf *out, dibs__serve_metric metric,
                               const char *lock, const char *more,
                               double value);
void dibs__serve_metric_labelled(dibsx_buf *out, dibs__serve_metric metric,
                                 const char *key, const char *text,
                                 const char *more, double value);

/* Appends the samples of one histogram. `buckets` has one more than there are ends. */
void dibs__serve_metric_histogram(dibsx_buf *out, dibs__serve_metric metric,
                                  const char *key, const char *text,
                                  const dibs__serve_ends *ends,
                                  const uint64_t *buckets, double sum_s);

#endif
