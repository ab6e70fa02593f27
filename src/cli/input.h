/* input.h - bytes for the store: an operand, or what standard input gives. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_CLI_INPUT_H
#define DIBS_CLI_INPUT_H

#include "base/buf.h"
#include <dibs/types.h>

typedef struct dibs__input {
    dibsx_buf buf;
    const void *data; /* borrowed from the operand or from buf */
    size_t len;
} dibs__input;

/* "-" and NULL read standard input to its end. `thing` is a noun with its article, which
 * has `max` bytes at most. End with dibsx_buf_fini(&in->buf), also after a failure. */
DIBS_MUST_CHECK dibs_status dibs__input_read(dibs__input *in,
                                             const char *operand,
                                             const char *thing, size_t max,
                                             dibs_error *err);

/* Reads some bytes of standard input; *got is 0 at its end. */
DIBS_MUST_CHECK dibs_status dibs__input_part(void *out, size_t size,
                                             size_t *got, dibs_error *err);

#endif
