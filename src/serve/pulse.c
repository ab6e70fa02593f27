/* pulse.c - round trips to the store and its clock. See pulse.h. */
/* SPDX-License-Identifier: MIT */
#include "serve/pulse.h"
#include "serve/metrics.h"
#include <stdio.h>

void dibs__pulse_init(dibs__serve_pulse *pulse)
{
    pthread_mutex_init(&pulse->mutex, NULL);
}

void dibs__pulse_fini(dibs__serve_pulse *pulse)
{
    pthread_mutex_destroy(&pulse->mutex);
}

static void
count_error(dibs__serve_pulse *pulse, uint64_t *errors, dibs_status rc)
{
    pthread_mutex_lock(&pulse->mutex);
    if ((size_t)rc < DIBS__PULSE_STATUSES)
        errors[rc]++;
    pthread_mutex_unlock(&pulse->mutex);
}

static void
note_round_trip(dibs__serve_pulse *pulse, int64_t took_us, int64_t ahead_us)
{
    pthread_mutex_lock(&pulse->mutex);
    pulse->buckets[dibs__serve_metric_bucket(&dibs__serve_wait_ends,
                                             (double)took_us / 1e6)]++;
    pulse->sum_us += took_us;
    pulse->compared = true;
    pulse->ahead_us = ahead_us;
    pthread_mutex_unlock(&pulse->mutex);
}

void dibs__pulse_seen(void *arg, const dibs__serve_picture *before,
                      const dibs__serve_picture *now)
{
    dibs__serve_pulse *pulse = arg;
    const dibsx_nsec began_at = dibsx_now();
    int64_t ahead_us;
    dibs_error err = {0};
    dibs_status rc;

    (void)before;
    if (now->rc != DIBS_OK) {
        count_error(pulse, pulse->look_errors, now->rc);
        return;
    }
    rc = dibs_clock_compare(pulse->cl, &ahead_us, NULL, &err);
    if (rc == DIBS_OK)
        note_round_trip(pulse, (dibsx_now() - began_at) / 1000, ahead_us);
    else
        count_error(pulse, pulse->errors, rc);
}

/* Locks: pulse->mutex. */
static void put_errors(const char *op, const uint64_t *errors, dibsx_buf *out)
{
    char status[64];

    for (int i = 0; i < DIBS__PULSE_STATUSES; i++) {
        if (!errors[i])
            continue;
        (void)snprintf(status, sizeof(status), "status=\"%s\"",
                       dibs_status_name((dibs_status)i));
        dibs__serve_metric_labelled(out, DIBS__SERVE_OP_ERRORS, "op", op,
                                    status, (double)errors[i]);
    }
}

void dibs__pulse_put(dibs__serve_pulse *pulse, dibsx_buf *out)
{
    pthread_mutex_lock(&pulse->mutex);
    dibs__serve_metric_head(out, DIBS__SERVE_OP_SECONDS);
    dibs__serve_metric_histogram(out, DIBS__SERVE_OP_SECONDS, "op", "now",
                                 &dibs__serve_wait_ends, pulse->buckets,
                                 (double)pulse->sum_us / 1e6);
    dibs__serve_metric_head(out, DIBS__SERVE_OP_ERRORS);
    put_errors("look", pulse->look_errors, out);
    put_errors("now", pulse->errors, out);
    dibs__serve_metric_head(out, DIBS__SERVE_CLOCK_SKEW);
    if (pulse->compared)
        dibs__serve_metric_sample(out, DIBS__SERVE_CLOCK_SKEW, NULL, NULL,
                                  (double)pulse->ahead_us / 1e6);
    pthread_mutex_unlock(&pulse->mutex);
}
