/* output.h - what the primary shows: the lines of all, and a status line that
 * stays below them.
 *
 * Writes only when the descriptor takes it, so that a terminal that is stopped
 * does not stop the primary; what waits is bounded. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_DEMO_OUTPUT_H
#define DIBS_DEMO_OUTPUT_H

#include "base/buf.h"

enum { DIBS__DEMO_STATUS_MAX = 512 };

typedef struct dibs__demo_output {
    int fd;
    bool owned;    /* the descriptor is ours to close */
    dibsx_buf out; /* what is still to be written */
    bool shown;    /* the status line is the last of what was added */
    bool broken;   /* nobody reads it */
    char status[DIBS__DEMO_STATUS_MAX]; /* "": none */
} dibs__demo_output;

/* For standard output. */
void dibs__demo_output_init(dibs__demo_output *output);
void dibs__demo_output_fini(dibs__demo_output *output);

/* There is room for more; when not, those who write may wait. */
bool dibs__demo_output_room(const dibs__demo_output *output);

/* Adds whole lines, each with its end. Lines that do not fit are dropped. */
void dibs__demo_output_lines(dibs__demo_output *output, const char *text,
                             size_t len);

/* Changes the status line; "" takes it away. */
void dibs__demo_output_status(dibs__demo_output *output, const char *text);

/* Something waits to be written. */
bool dibs__demo_output_pending(const dibs__demo_output *output);

/* Writes what fits without waiting. To be called when the descriptor is ready. */
void dibs__demo_output_write(dibs__demo_output *output);

#endif
