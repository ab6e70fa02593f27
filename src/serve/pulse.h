/* pulse.h - round trips to the store and its clock, measured once per look.
 *
 * The thread of the look measures, any thread reads. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_SERVE_PULSE_H
#define DIBS_SERVE_PULSE_H

#include "base/buf.h"
#include "serve/buckets.h"
#include "serve/look.h"
#include <pthread.h>

enum { DIBS__PULSE_STATUSES = 32 };

typedef struct dibs__serve_pulse {
    dibs_client *cl; /* borrowed */
    pthread_mutex_t mutex;
    uint64_t buckets[DIBS__SERVE_WAIT_ENDS + 1];
    int64_t sum_us;
    uint64_t errors[DIBS__PULSE_STATUSES]; /* by status */
    uint64_t look_errors[DIBS__PULSE_STATUSES];
    bool compared;    /* a clock was read */
    int64_t ahead_us; /* as it was then */
} dibs__serve_pulse;

void dibs__pulse_init(dibs__serve_pulse *pulse);
void dibs__pulse_fini(dibs__serve_pulse *pulse);

/* One round trip, after a look that the store has answered: a store that is away would
 * delay the next look. As dibs__serve_seen_fn; `arg` is the pulse. */
void dibs__pulse_seen(void *arg, const dibs__serve_picture *before,
                      const dibs__serve_picture *now);

/* Appends the metrics. */
void dibs__pulse_put(dibs__serve_pulse *pulse, dibsx_buf *out);

#endif
