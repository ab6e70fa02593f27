/* output.h - the output of a command in bounded memory: its beginning, its end, and
 * how many bytes between them were left out. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_EXEC_OUTPUT_H
#define DIBS_EXEC_OUTPUT_H

#include "base/buf.h"
#include <dibs/types.h>

/* The most that may be kept. */
#define DIBS__OUTPUT_MAX ((size_t)1024 * 1024)

typedef struct dibs__output {
    char *bytes; /* `head_size` of the beginning, then the ring */
    size_t head_size;
    size_t ring_size;
    uint64_t total; /* bytes that the command has written */
} dibs__output;

/* Keeps up to `keep` bytes (at most DIBS__OUTPUT_MAX), of which the first `head` are
 * of the beginning. 0: keeps none and counts. The memory is allocated here and does
 * not grow. Free with dibs__output_fini(). */
DIBS_MUST_CHECK dibs_status dibs__output_init(dibs__output *out, size_t keep,
                                              size_t head, dibs_error *err);
void dibs__output_fini(dibs__output *out);

void dibs__output_add(dibs__output *out, const void *bytes, size_t len);

/* Reads what a pipe, which does not block, has: at most `most` bytes. False when
 * nothing more will come from it. */
bool dibs__output_drain(dibs__output *out, int fd, size_t most);

/* How many bytes lie between beginning and end and were not kept. */
uint64_t dibs__output_left_out(const dibs__output *out);

/* Appends what is kept of the beginning, and of the end. */
void dibs__output_head(const dibs__output *out, dibsx_buf *to);
void dibs__output_tail(const dibs__output *out, dibsx_buf *to);

#endif
