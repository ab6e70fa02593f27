/* job_sums.c - see job_sums.h. */
/* SPDX-License-Identifier: MIT */
#include "serve/job_sums.h"
#include "base/alloc.h"
#include "serve/metrics.h"
#include <stdio.h>
#include <string.h>

static const double durations[DIBS__SUMS_DURATIONS] = {0.1, 0.5,  1,    5,
                                                       10,  30,   60,   300,
                                                       900, 3600, 21600};
static const double delays[DIBS__SUMS_DELAYS] = {0.0005, 0.001, 0.0025, 0.005,
                                                 0.01,   0.025, 0.05,   0.1,
                                                 0.25,   0.5,   1,      2.5,
                                                 5,      10,    30,     60,
                                                 300};

void dibs__job_sums_init(dibs__job_sums *sums)
{
    *sums = (dibs__job_sums){.count = 0};
    pthread_mutex_init(&sums->mutex, NULL);
}

void dibs__job_sums_fini(dibs__job_sums *sums)
{
    dibsx_free(sums->at);
    pthread_mutex_destroy(&sums->mutex);
}

/* Locks: sums->mutex. NULL: no memory. */
static dibs__job_sum *sum_of(dibs__job_sums *sums, const char *job)
{
    dibs__job_sum *more;
    size_t i = 0;

    while (i < sums->count && strcmp(sums->at[i].job, job) != 0)
        i++;
    if (i < sums->count)
        return &sums->at[i];
    if (sums->count == DIBS__SUMS_JOBS_MAX)
        job = "other";
    else if (sums->count > DIBS__SUMS_JOBS_MAX)
        return &sums->at[DIBS__SUMS_JOBS_MAX];
    more = dibsx_realloc_n(sums->at, sums->count + 1, sizeof(*more));
    if (!more)
        return NULL;
    sums->at = more;
    more += sums->count++;
    *more = (dibs__job_sum){.success_us = 0};
    (void)snprintf(more->job, sizeof(more->job), "%s", job);
    return more;
}

static void count_span(uint64_t *buckets, double *sum, const double *ends,
                       size_t count, int64_t from_us, int64_t to_us)
{
    const double span_s = to_us > from_us ? (double)(to_us - from_us) / 1e6 : 0;
    size_t i = 0;

    while (i < count && span_s > ends[i])
        i++;
    buckets[i]++;
    *sum += span_s;
}

static int32_t last_code(const dibs__run *run)
{
    int32_t code = 0;

    for (size_t i = 0; i < run->step_count; i++)
        if (run->steps[i].exit_code)
            code = run->steps[i].exit_code;
    return code;
}

void dibs__job_sums_add(dibs__job_sums *sums, const dibs__run *run)
{
    const int64_t due_us = run->tick_s ? run->tick_s * 1000000 : run->made_us;
    dibs__job_sum *sum;

    pthread_mutex_lock(&sums->mutex);
    sum = sum_of(sums, run->job);
    if (sum) {
        sum->results[run->state]++;
        sum->exit_code = last_code(run);
        if (run->state == DIBS__STATE_OK && run->ended_us > sum->success_us)
            sum->success_us = run->ended_us;
        if (run->begun_us) {
            count_span(sum->durations, &sum->duration_s, durations,
                       DIBS__SUMS_DURATIONS, run->begun_us, run->ended_us);
            count_span(sum->delays, &sum->delay_s, delays, DIBS__SUMS_DELAYS,
                       due_us, run->begun_us);
        }
    }
    pthread_mutex_unlock(&sums->mutex);
}

/* ---- text */

static void put_sample(dibsx_buf *out, dibs__serve_metric metric,
                       const char *job, const char *more, double value)
{
    char labels[DIBS__JOB_NAME_SIZE + 64];

    (void)snprintf(labels, sizeof(labels), "job=\"%s\"%s%s", job,
                   more ? "," : "", more ? more : "");
    dibs__serve_metric_sample(out, metric, NULL, labels, value);
}

static void put_results(const dibs__job_sums *sums, dibsx_buf *out)
{
    static const char *const names[DIBS__STATES] = {
        [DIBS__STATE_OK] = "result=\"ok\"",
        [DIBS__STATE_FAILED] = "result=\"failed\"",
        [DIBS__STATE_CANCELLED] = "result=\"cancelled\"",
        [DIBS__STATE_MISSED] = "result=\"missed\"",
        [DIBS__STATE_SKIPPED] = "result=\"skipped\""};

    dibs__serve_metric_head(out, DIBS__SERVE_JOB_RUNS);
    for (size_t i = 0; i < sums->count; i++)
        for (size_t k = DIBS__STATE_OK; k < DIBS__STATES; k++)
            if (sums->at[i].results[k])
                put_sample(out, DIBS__SERVE_JOB_RUNS, sums->at[i].job, names[k],
                           (double)sums->at[i].results[k]);
}

static void put_histogram(dibsx_buf *out, const char *name, const char *job,
                          const uint64_t *buckets, const double *ends,
                          size_t count, double total)
{
    unsigned long long sum = 0;

    for (size_t i = 0; i <= count; i++) {
        sum += buckets[i];
        if (i < count)
            dibsx_buf_printf(out, "%s_bucket{job=\"%s\",le=\"%g\"} %llu\n",
                             name, job, ends[i], sum);
        else
            dibsx_buf_printf(out, "%s_bucket{job=\"%s\",le=\"+Inf\"} %llu\n",
                             name, job, sum);
    }
    dibsx_buf_printf(out, "%s_sum{job=\"%s\"} %.6f\n", name, job, total);
    dibsx_buf_printf(out, "%s_count{job=\"%s\"} %llu\n", name, job, sum);
}

static void put_spans(const dibs__job_sums *sums, dibsx_buf *out)
{
    dibs__serve_metric_head(out, DIBS__SERVE_JOB_DURATION);
    for (size_t i = 0; i < sums->count; i++)
        put_histogram(out, "dibs_job_duration_seconds", sums->at[i].job,
                      sums->at[i].durations, durations, DIBS__SUMS_DURATIONS,
                      sums->at[i].duration_s);
    dibs__serve_metric_head(out, DIBS__SERVE_JOB_DELAY);
    for (size_t i = 0; i < sums->count; i++)
        put_histogram(out, "dibs_job_start_delay_seconds", sums->at[i].job,
                      sums->at[i].delays, delays, DIBS__SUMS_DELAYS,
                      sums->at[i].delay_s);
}

static void put_latest(const dibs__job_sums *sums, dibsx_buf *out)
{
    dibs__serve_metric_head(out, DIBS__SERVE_JOB_SUCCESS);
    for (size_t i = 0; i < sums->count; i++)
        if (sums->at[i].success_us)
            put_sample(out, DIBS__SERVE_JOB_SUCCESS, sums->at[i].job, NULL,
                       (double)sums->at[i].success_us / 1e6);
    dibs__serve_metric_head(out, DIBS__SERVE_JOB_EXIT_CODE);
    for (size_t i = 0; i < sums->count; i++)
        put_sample(out, DIBS__SERVE_JOB_EXIT_CODE, sums->at[i].job, NULL,
                   (double)sums->at[i].exit_code);
}

static uint64_t
running_of(const dibs__board_picture *picture, const dibs__board_row *row)
{
    const size_t len = strlen(row->state.job);
    uint64_t count = 0;

    for (size_t i = 0; i < picture->live_count; i++) {
        const char *run = picture->live[i].run;

        count += strncmp(run, row->state.job, len) == 0 &&
                 (run[len] == '@' || run[len] == '.');
    }
    return count;
}

/* The jobs of the board, as many as have a label. */
static void put_jobs(const dibs__board_picture *picture, dibsx_buf *out)
{
    const size_t count = picture->count < DIBS__SUMS_JOBS_MAX
                             ? picture->count
                             : DIBS__SUMS_JOBS_MAX;

    dibs__serve_metric_head(out, DIBS__SERVE_JOB_MISSED);
    for (size_t i = 0; i < count; i++)
        put_sample(out, DIBS__SERVE_JOB_MISSED, picture->rows[i].state.job,
                   NULL, (double)picture->rows[i].state.missed);
    dibs__serve_metric_head(out, DIBS__SERVE_JOB_SKIPPED);
    for (size_t i = 0; i < count; i++) {
        const dibs__job_state *state = &picture->rows[i].state;

        put_sample(out, DIBS__SERVE_JOB_SKIPPED, state->job,
                   "reason=\"running\"", (double)state->skipped);
        put_sample(out, DIBS__SERVE_JOB_SKIPPED, state->job,
                   "reason=\"merged\"", (double)state->merged);
    }
    dibs__serve_metric_head(out, DIBS__SERVE_JOB_RUNNING);
    for (size_t i = 0; i < count; i++)
        put_sample(out, DIBS__SERVE_JOB_RUNNING, picture->rows[i].state.job,
                   NULL, (double)running_of(picture, &picture->rows[i]));
    dibs__serve_metric_head(out, DIBS__SERVE_JOB_NEXT);
    for (size_t i = 0; i < count; i++)
        if (picture->rows[i].state.next_s)
            put_sample(out, DIBS__SERVE_JOB_NEXT, picture->rows[i].state.job,
                       NULL, (double)picture->rows[i].state.next_s);
}

void dibs__job_sums_put(dibs__job_sums *sums,
                        const dibs__board_picture *picture, dibsx_buf *out)
{
    pthread_mutex_lock(&sums->mutex);
    put_results(sums, out);
    put_spans(sums, out);
    put_latest(sums, out);
    pthread_mutex_unlock(&sums->mutex);
    if (picture)
        put_jobs(picture, out);
}
