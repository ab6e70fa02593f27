/* metrics.c - the table of metrics, in the formats of Prometheus. Pure. */
/* SPDX-License-Identifier: MIT */
#include "serve/metrics.h"
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    const char *type;
    const char *help;
} table[DIBS__SERVE_METRIC_COUNT] = {
    [DIBS__SERVE_BUILD_INFO] = {"dibs_build_info", "gauge",
                                "The version of the daemon; the value is 1."},
    [DIBS__SERVE_START_TIME] = {"dibs_start_time_seconds", "gauge",
                                "When the daemon started, since 1970."},
    [DIBS__SERVE_CPU] = {"process_cpu_seconds_total", "counter",
                         "Processor time of the daemon."},
    [DIBS__SERVE_MEMORY] = {"process_resident_memory_bytes", "gauge",
                            "Memory of the daemon."},
    [DIBS__SERVE_FILES] = {"process_open_fds", "gauge",
                           "Descriptors that the daemon has open."},
    [DIBS__SERVE_RELOAD_OK] = {"dibs_config_last_reload_successful", "gauge",
                               "Whether the latest reload worked."},
    [DIBS__SERVE_RELOAD_AT] = {"dibs_config_last_reload_timestamp_seconds",
                               "gauge",
                               "When a reload or the start last worked."},
    [DIBS__SERVE_AUDIT_FAILURES] = {"dibs_audit_failures_total", "counter",
                                    "Entries that the trail of the store did "
                                    "not take: of changes that were made, or "
                                    "that were refused for it."},
    [DIBS__SERVE_ATTEMPTS] = {"dibs_lock_attempts_total", "counter",
                              "Acquires that this daemon began."},
    [DIBS__SERVE_ACQUIRED] = {"dibs_lock_acquired_total", "counter",
                              "Acquires that were granted."},
    [DIBS__SERVE_NOT_ACQUIRED] =
        {"dibs_lock_not_acquired_total", "counter",
         "Acquires that were not granted: busy, timeout, cancelled, or error."},
    [DIBS__SERVE_RELEASED] = {"dibs_lock_released_total", "counter",
                              "Leases that were released while valid."},
    [DIBS__SERVE_LOST] = {"dibs_lock_lost_total", "counter",
                          "Leases that ended before their release."},
    [DIBS__SERVE_BROKEN] = {"dibs_lock_broken_total", "counter",
                            "Leases that this daemon ended by force."},
    [DIBS__SERVE_RENEWALS] = {"dibs_lock_renewals_total", "counter",
                              "Renewals that the store confirmed, or not."},
    [DIBS__SERVE_SLACK] = {"dibs_lock_renewal_slack_ratio", "histogram",
                           "How much of a lease was left when the store had "
                           "confirmed its renewal, as a part of its ttl."},
    [DIBS__SERVE_FALLBACKS] = {"dibs_fallbacks_total", "counter",
                               "Acquires that were granted without the store."},
    [DIBS__SERVE_WAIT_SECONDS] = {"dibs_lock_wait_seconds", "histogram",
                                  "Time from the call to the grant, of all "
                                  "clients that share statistics."},
    [DIBS__SERVE_HOLD_SECONDS] = {"dibs_lock_hold_seconds", "histogram",
                                  "Time from the grant to the end, likewise."},
    [DIBS__SERVE_CONTENDED] =
        {"dibs_lock_contended_total", "counter",
         "Acquires that had to wait or were refused, likewise."},
    [DIBS__SERVE_WAIT_QUANTILE] = {"dibs_lock_wait_quantile_seconds", "gauge",
                                   "Time from the call to the grant, of all "
                                   "clients that share statistics; the "
                                   "slowest name of the class."},
    [DIBS__SERVE_HOLD_QUANTILE] = {"dibs_lock_hold_quantile_seconds", "gauge",
                                   "Time from the grant to the end, "
                                   "likewise."},
    [DIBS__SERVE_BACKEND_UP] = {"dibs_backend_up", "gauge",
                                "Whether the store answered the latest look."},
    [DIBS__SERVE_OP_SECONDS] =
        {"dibs_backend_op_seconds", "histogram",
         "Time of a round trip to the store, of one after each look."},
    [DIBS__SERVE_OP_ERRORS] =
        {"dibs_backend_op_errors_total", "counter",
         "Round trips among these that failed, and looks."},
    [DIBS__SERVE_CLOCK_SKEW] =
        {"dibs_backend_clock_skew_seconds", "gauge",
         "How far the clock of the store is ahead of that of the daemon."},
    [DIBS__SERVE_CLOCK_BEHIND] =
        {"dibs_backend_clock_behind_seconds", "gauge",
         "How far the clock of the store is behind, after it was set back: "
         "jobs wait for so long."},
    [DIBS__SERVE_LOCKS_HELD] = {"dibs_store_locks_held", "gauge",
                                "Names that have a holder."},
    [DIBS__SERVE_WAITERS] = {"dibs_store_waiters", "gauge",
                             "Clients that wait."},
    [DIBS__SERVE_LONGEST_WAIT] = {"dibs_store_longest_wait_seconds", "gauge",
                                  "The longest that one of them has waited."},
    [DIBS__SERVE_PERMITS] = {"dibs_semaphore_permits", "gauge",
                             "Capacity of the semaphores in use."},
    [DIBS__SERVE_PERMITS_IN_USE] = {"dibs_semaphore_permits_in_use", "gauge",
                                    "Permits that are held."},
    [DIBS__SERVE_STALE_HOLDERS] = {"dibs_store_stale_holders", "gauge",
                                   "Holders that seem to be gone."},
    [DIBS__SERVE_DEADLOCKS] = {"dibs_store_deadlocks", "gauge",
                               "Circles of clients that wait for each other."},
    [DIBS__SERVE_NAMES] = {"dibs_store_names", "gauge",
                           "Names that have a holder or a waiter."},
    [DIBS__SERVE_LOOK_SECONDS] = {"dibs_store_look_seconds", "gauge",
                                  "How long the latest look took."},
    [DIBS__SERVE_LOOK_AGE] = {"dibs_store_look_age_seconds", "gauge",
                              "How old it is."},
    [DIBS__SERVE_DROPPED_CLASSES] =
        {"dibs_metrics_dropped_classes", "gauge",
         "Names whose class is beyond the hundredth; "
         "they are counted as other."},
    [DIBS__SERVE_ELECTION_LED] = {"dibs_election_led", "gauge",
                                  "Whether somebody leads."},
    [DIBS__SERVE_ELECTION_TERM] = {"dibs_election_term", "gauge",
                                   "The term of the leader; 0 without one."},
    [DIBS__SERVE_ELECTION_CANDIDATES] = {"dibs_election_candidates", "gauge",
                                         "Candidates that wait."},
    [DIBS__SERVE_ELECTION_CHANGES] =
        {"dibs_election_changes_total", "counter",
         "New terms that this daemon saw; two between two looks are one."},
    [DIBS__SERVE_QUEUE_MESSAGES] =
        {"dibs_queue_messages", "gauge",
         "Items by state: ready, later, out or dead."},
    [DIBS__SERVE_QUEUE_OLDEST] = {"dibs_queue_oldest_seconds", "gauge",
                                  "How long the first item has been ready."},
    [DIBS__SERVE_QUEUE_CONSUMERS] = {"dibs_queue_consumers", "gauge",
                                     "Consumers that live."},
    [DIBS__SERVE_QUEUE_PUSHED] = {"dibs_queue_pushed_total", "counter",
                                  "Items that were pushed."},
    [DIBS__SERVE_QUEUE_DONE] = {"dibs_queue_done_total", "counter",
                                "Items that a consumer acked."},
    [DIBS__SERVE_QUEUE_RETRIED] =
        {"dibs_queue_retried_total", "counter",
         "Deliveries that a consumer gave back as failed."},
    [DIBS__SERVE_QUEUE_LOST] = {"dibs_queue_lost_total", "counter",
                                "Deliveries that ended with their consumer."},
    [DIBS__SERVE_QUEUE_DEAD] = {"dibs_queue_dead_total", "counter",
                                "Items that became dead letters."},
    [DIBS__SERVE_BREAKER_STATE] =
        {"dibs_breaker_state", "gauge",
         "0: closed; 1: half-open; 2: open, also by force."},
    [DIBS__SERVE_BREAKER_CHANGES] =
        {"dibs_breaker_changes_total", "counter",
         "Changes of its state that this daemon saw."},
    [DIBS__SERVE_HTTP_REQUESTS] = {"dibs_http_requests_total", "counter",
                                   "Requests that were answered."},
    [DIBS__SERVE_HTTP_SECONDS] = {"dibs_http_request_seconds", "histogram",
                                  "Time from the head of a request to its "
                                  "answer."},
    [DIBS__SERVE_HTTP_CONNECTIONS] = {"dibs_http_connections", "gauge",
                                      "Connections that are open, and those "
                                      "of them that stream."},
    [DIBS__SERVE_HTTP_REFUSED] = {"dibs_http_refused_total", "counter",
                                  "Connections that were refused since their "
                                  "address had too many, or began too many "
                                  "handshakes of TLS, or closed to make "
                                  "room."},
    [DIBS__SERVE_SESSIONS] = {"dibs_sessions", "gauge",
                              "Sessions that are open."},
    [DIBS__SERVE_SESSION_LEASES] = {"dibs_session_leases", "gauge",
                                    "Leases that sessions hold."},
    [DIBS__SERVE_SESSIONS_ENDED] = {"dibs_sessions_ended_total", "counter",
                                    "Sessions that have ended."},
    [DIBS__SERVE_STREAMS] = {"dibs_streams", "gauge",
                             "Streams of GET /v1/events."},
    [DIBS__SERVE_STREAM_GAPS] = {"dibs_stream_gaps_total", "counter",
                                 "Times that such a stream was too slow and "
                                 "missed events."},
    [DIBS__SERVE_EVENTS_MISSED] =
        {"dibs_lease_events_missed_total", "counter",
         "Events of leases that clients with share_events had no room for."},
    [DIBS__SERVE_JOB_RUNS] = {"dibs_job_runs_total", "counter",
                              "Runs whose end this daemon saw."},
    [DIBS__SERVE_JOB_SKIPPED] = {"dibs_job_skipped_total", "counter",
                                 "Ticks without a run of their own: a run "
                                 "lived, or a later tick ran for them."},
    [DIBS__SERVE_JOB_MISSED] = {"dibs_job_missed_total", "counter",
                                "Ticks that nothing ran for."},
    [DIBS__SERVE_JOB_DURATION] = {"dibs_job_duration_seconds", "histogram",
                                  "Time from the begin of a run to its end."},
    [DIBS__SERVE_JOB_DELAY] = {"dibs_job_start_delay_seconds", "histogram",
                               "Time from the moment a run was due to its "
                               "begin."},
    [DIBS__SERVE_JOB_RUNNING] = {"dibs_job_running", "gauge",
                                 "Steps that nodes execute."},
    [DIBS__SERVE_JOB_SUCCESS] = {"dibs_job_last_success_timestamp_seconds",
                                 "gauge",
                                 "When a run last ended well, since 1970."},
    [DIBS__SERVE_JOB_NEXT] = {"dibs_job_next_run_timestamp_seconds", "gauge",
                              "When the job is due next, since 1970."},
    [DIBS__SERVE_JOB_PERIOD] = {"dibs_job_period_seconds", "gauge",
                                "Time from the last tick of the job to the "
                                "next; none while it is paused."},
    [DIBS__SERVE_JOB_EXIT_CODE] = {"dibs_job_last_exit_code", "gauge",
                                   "The exit code of the run that ended "
                                   "last."},
};

void dibs__serve_metric_head(dibsx_buf *out, dibs__serve_metric metric)
{
    dibsx_buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n", table[metric].name,
                     table[metric].help, table[metric].name,
                     table[metric].type);
}

static void put_escaped(dibsx_buf *out, const char *text)
{
    for (; *text; text++) {
        if (*text == '\\' || *text == '"')
            dibsx_buf_putc(out, '\\');
        if (*text == '\n')
            dibsx_buf_puts(out, "\\n");
        else
            dibsx_buf_putc(out, *text);
    }
}

/* Whole numbers as such: they may have more digits than a fraction would show. */
static void put_value(dibsx_buf *out, double value)
{
    if (value > -9e15 && value < 9e15 && (double)(long long)value == value)
        dibsx_buf_printf(out, " %lld\n", (long long)value);
    else
        dibsx_buf_printf(out, " %.6f\n", value);
}

/* A label and its text; further labels follow it. */
static void
put_labels(dibsx_buf *out, const char *key, const char *text, const char *more)
{
    if (key || more)
        dibsx_buf_putc(out, '{');
    if (key) {
        dibsx_buf_printf(out, "%s=\"", key);
        put_escaped(out, text);
        dibsx_buf_putc(out, '"');
    }
    if (more)
        dibsx_buf_printf(out, "%s%s", key ? "," : "", more);
    if (key || more)
        dibsx_buf_putc(out, '}');
}

void dibs__serve_metric_labelled(dibsx_buf *out, dibs__serve_metric metric,
                                 const char *key, const char *text,
                                 const char *more, double value)
{
    dibsx_buf_puts(out, table[metric].name);
    put_labels(out, key, text, more);
    put_value(out, value);
}

void dibs__serve_metric_sample(dibsx_buf *out, dibs__serve_metric metric,
                               const char *lock, const char *more, double value)
{
    dibs__serve_metric_labelled(out, metric, lock ? "lock" : NULL, lock, more,
                                value);
}

void dibs__serve_metric_put(dibsx_buf *out, dibs__serve_metric metric,
                            double value)
{
    dibs__serve_metric_head(out, metric);
    dibs__serve_metric_sample(out, metric, NULL, NULL, value);
}

static const double waits[DIBS__SERVE_WAIT_ENDS] = {
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25,
    0.5,    1,     2.5,    5,     10,   30,    60,   300};
static const double holds[DIBS__SERVE_HOLD_ENDS] = {0.1, 0.5,  1,    5,
                                                    10,  30,   60,   300,
                                                    900, 3600, 21600};

static const double slacks[DIBS__SERVE_SLACK_ENDS] = {0.1, 0.2, 0.3, 0.4, 0.5,
                                                      0.6, 0.7, 0.8, 0.9};

const dibs__serve_ends dibs__serve_wait_ends = {waits, DIBS__SERVE_WAIT_ENDS};
const dibs__serve_ends dibs__serve_hold_ends = {holds, DIBS__SERVE_HOLD_ENDS};
const dibs__serve_ends dibs__serve_slack_ends = {slacks,
                                                 DIBS__SERVE_SLACK_ENDS};

size_t dibs__serve_metric_bucket(const dibs__serve_ends *ends, double span_s)
{
    size_t i = 0;

    while (i < ends->count && span_s > ends->at[i])
        i++;
    return i;
}

void dibs__serve_metric_histogram(dibsx_buf *out, dibs__serve_metric metric,
                                  const char *key, const char *text,
                                  const dibs__serve_ends *ends,
                                  const uint64_t *buckets, double sum_s)
{
    const char *name = table[metric].name;
    unsigned long long count = 0;
    char end[32];

    for (size_t i = 0; i <= ends->count; i++) {
        count += buckets[i];
        if (i < ends->count)
            (void)snprintf(end, sizeof(end), "le=\"%g\"", ends->at[i]);
        else
            (void)snprintf(end, sizeof(end), "le=\"+Inf\"");
        dibsx_buf_printf(out, "%s_bucket", name);
        put_labels(out, key, text, end);
        dibsx_buf_printf(out, " %llu\n", count);
    }
    dibsx_buf_printf(out, "%s_sum", name);
    put_labels(out, key, text, NULL);
    dibsx_buf_printf(out, " %.6f\n%s_count", sum_s, name);
    put_labels(out, key, text, NULL);
    dibsx_buf_printf(out, " %llu\n", count);
}

/* "# TYPE dibs_x_total counter": the family of a counter has a name without the end
 * that its samples have. */
static size_t family_len(const char *name, size_t len)
{
    static const char end[] = "_total";
    const size_t end_len = sizeof(end) - 1;

    return len > end_len && memcmp(name + len - end_len, end, end_len) == 0
               ? len - end_len
               : len;
}

void dibs__serve_metrics_convert(const char *page, dibsx_buf *out)
{
    const size_t skip = strlen("# HELP ");

    while (*page) {
        const size_t len = strcspn(page, "\n");

        if (*page == '#' && len > skip) {
            const char *name = page + skip;
            const size_t name_len = strcspn(name, " \n");

            dibsx_buf_add(out, page, skip + family_len(name, name_len));
            dibsx_buf_add(out, name + name_len, len - skip - name_len);
        } else {
            dibsx_buf_add(out, page, len);
        }
        dibsx_buf_putc(out, '\n');
        page += len + (page[len] == '\n');
    }
    dibsx_buf_puts(out, "# EOF\n");
}
