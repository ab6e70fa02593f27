/* job_sums.c - see job_sums.h. */
/* SPDX-License-Identifier: MIT */
#include "serve/job_sums.h"
#include "base/alloc.h"
#include "serve/metrics.h"
#include <stdio.h>
#include <string.h>

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
    /* A job may have that very name; it must not be a second series then. */
    if (sums->count >= DIBS__SUMS_JOBS_MAX && strcmp(job, "other") != 0)
        return sum_of(sums, "other");
    more = dibsx_realloc_n(sums->at, sums->count + 1, sizeof(*more));
    if (!more)
        return NULL;
    sums->at = more;
    more += sums->count++;
    *more = (dibs__job_sum){.success_us = 0};
    (void)snprintf(more->job, sizeof(more->job), "%s", job);
    return more;
}

static void
count_span(uint64_t *buckets, double *sum, const dibs__serve_ends *ends,
           int64_t from_us, int64_t to_us)
{
    const double span_s = to_us > from_us ? (double)(to_us - from_us) / 1e6 : 0;

    buckets[dibs__serve_metric_bucket(ends, span_s)]++;
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
    const int64_t due_us = dibs__run_due_us(run);
    dibs__job_sum *sum;

    pthread_mutex_lock(&sums->mutex);
    sum = sum_of(sums, run->job);
    if (sum) {
        sum->results[run->state]++;
        sum->exit_code = last_code(run);
        if (run->state == DIBS__STATE_OK && run->ended_us > sum->success_us)
            sum->success_us = run->ended_us;
        if (run->begun_us) {
            count_span(sum->durations, &sum->duration_s, &dibs__serve_hold_ends,
                       run->begun_us, run->ended_us);
            count_span(sum->delays, &sum->delay_s, &dibs__serve_wait_ends,
                       due_us, run->begun_us);
        }
    }
    pthread_mutex_unlock(&sums->mutex);
}

/* ---- text */

static void put_sample(dibsx_buf *out, dibs__serve_metric metric,
                       const char *job, const char *more, double value)
{
    dibs__serve_metric_labelled(out, metric, "job", job, more, value);
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

static void put_spans(const dibs__job_sums *sums, dibsx_buf *out)
{
    dibs__serve_metric_head(out, DIBS__SERVE_JOB_DURATION);
    for (size_t i = 0; i < sums->count; i++)
        dibs__serve_metric_histogram(out, DIBS__SERVE_JOB_DURATION, "job",
                                     sums->at[i].job, &dibs__serve_hold_ends,
                                     sums->at[i].durations,
                                     sums->at[i].duration_s);
    dibs__serve_metric_head(out, DIBS__SERVE_JOB_DELAY);
    for (size_t i = 0; i < sums->count; i++)
        dibs__serve_metric_histogram(out, DIBS__SERVE_JOB_DELAY, "job",
                                     sums->at[i].job, &dibs__serve_wait_ends,
                                     sums->at[i].delays, sums->at[i].delay_s);
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
    dibs__serve_metric_head(out, DIBS__SERVE_JOB_PERIOD);
    for (size_t i = 0; i < count; i++) {
        const dibs__job_state *state = &picture->rows[i].state;

        if (state->next_s > state->mark_s && !state->paused)
            put_sample(out, DIBS__SERVE_JOB_PERIOD, state->job, NULL,
                       (double)(state->next_s - state->mark_s));
    }
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
