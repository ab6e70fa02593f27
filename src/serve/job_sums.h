/* job_sums.h - ends of runs as the look at the board saw them, counted for metrics.
 *
 * The look's thread counts, any thread reads. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_SERVE_JOB_SUMS_H
#define DIBS_SERVE_JOB_SUMS_H

#include "base/buf.h"
#include "serve/board_picture.h"
#include "serve/buckets.h"
#include <pthread.h>

enum {
    DIBS__SUMS_JOBS_MAX = 200 /* further ones are "other" */
};

typedef struct dibs__job_sum {
    char job[DIBS__JOB_NAME_SIZE];
    uint64_t results[DIBS__STATES]; /* of runs that have ended, by state */
    uint64_t durations[DIBS__SERVE_HOLD_ENDS + 1];
    double duration_s;
    uint64_t delays[DIBS__SERVE_WAIT_ENDS + 1];
    double delay_s;
    int64_t success_us; /* the latest end of a run that went well */
    int32_t exit_code;  /* of the run that ended last */
} dibs__job_sum;

typedef struct dibs__job_sums {
    pthread_mutex_t mutex;
    dibs__job_sum *at; /* in the order of their first end */
    size_t count;
} dibs__job_sums;

void dibs__job_sums_init(dibs__job_sums *sums);
void dibs__job_sums_fini(dibs__job_sums *sums);

/* Counts a run that has ended. */
void dibs__job_sums_add(dibs__job_sums *sums, const dibs__run *run);

/* Appends the metrics of jobs and runs. */
void dibs__job_sums_put(dibs__job_sums *sums,
                        const dibs__board_picture *picture, dibsx_buf *out);

#endif
