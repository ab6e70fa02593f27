/* kept_output.h - what is kept of the output of an attempt: its value in the store is
 * "HEAD LEFT_OUT\n", then HEAD bytes of the begin and the bytes of the end. Any thread. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_JOBS_KEPT_OUTPUT_H
#define DIBS_JOBS_KEPT_OUTPUT_H

#include "jobs/board.h"

typedef struct dibs__kept_output {
    dibs_value value; /* what the others point to */
    const char *head, *tail;
    size_t head_len, tail_len;
    uint64_t left_out; /* bytes between both */
} dibs__kept_output;

/* DIBS_NOTFOUND: nothing was captured; *out is empty then. Free with
 * dibs__kept_output_fini() in any case. */
DIBS_MUST_CHECK dibs_status dibs__kept_output_read(
    const dibs__board *board, const dibs__run *run, const dibs__run_step *step,
    uint32_t attempt, dibs__kept_output *out, dibs_error *err);
void dibs__kept_output_fini(dibs__kept_output *out);

/* Appends the value, and leaves out what is beyond the bound of values. */
void dibs__kept_output_put(dibsx_buf *value, const char *head, size_t head_len,
                           const char *tail, size_t tail_len,
                           uint64_t left_out);

#endif
