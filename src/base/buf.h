/* buf.h - a growable byte buffer with a mandatory maximum.
 *
 * Errors stick: after the first append that did not fit, all others do nothing
 * and dibsx_buf_ok() is false, so that a writer checks once, at the end. The
 * content always has a NUL beyond its end. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_BASE_BUF_H
#define DIBS_BASE_BUF_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct dibsx_buf {
    char *data; /* NULL until something is appended */
    size_t len;
    size_t room; /* bytes allocated */
    size_t max;  /* the content may not grow beyond this */
    bool failed;
} dibsx_buf;

/* The caller owns the struct; end with dibsx_buf_fini(). Storage is wiped when it is
 * left for a larger one, and at the end. */
void dibsx_buf_init(dibsx_buf *buf, size_t max);
void dibsx_buf_fini(dibsx_buf *buf);

void dibsx_buf_add(dibsx_buf *buf, const void *bytes, size_t len);
void dibsx_buf_puts(dibsx_buf *buf, const char *text);
void dibsx_buf_putc(dibsx_buf *buf, char c);
void dibsx_buf_put_uint(dibsx_buf *buf, uint64_t number); /* its digits */
void dibsx_buf_printf(dibsx_buf *buf, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Makes room for so many bytes at once that are to come. */
void dibsx_buf_expect(dibsx_buf *buf, size_t more);

/* Empties it and forgets a failure; keeps the storage. */
void dibsx_buf_reset(dibsx_buf *buf);

bool dibsx_buf_ok(const dibsx_buf *buf);

/* The content as a string, "" when nothing was added; borrowed until the next
 * change. */
const char *dibsx_buf_text(const dibsx_buf *buf);

/* Hands the storage to the caller, who frees it with dibsx_free(); the buffer
 * is empty afterwards. NULL when it failed or is empty. */
char *dibsx_buf_take(dibsx_buf *buf);

#endif
