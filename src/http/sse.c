/* sse.c - server-sent events: the frames of text/event-stream. Pure. */
/* SPDX-License-Identifier: MIT */
#include "http/sse.h"

/* Bytes before the end of the line, which may be written in three ways. */
static size_t line_of(const char *data, size_t len, size_t *end_len)
{
    size_t at = 0;

    while (at < len && data[at] != '\n' && data[at] != '\r')
        at++;
    *end_len = at == len ? 0 : 1;
    if (at + 1 < len && data[at] == '\r' && data[at + 1] == '\n')
        *end_len = 2;
    return at;
}

void dibs__http_sse_put(dibsx_buf *out, const char *id, const char *name,
                        const char *data, size_t len)
{
    size_t line, end_len;

    if (id)
        dibsx_buf_printf(out, "id: %s\n", id);
    if (name)
        dibsx_buf_printf(out, "event: %s\n", name);
    do {
        line = line_of(data, len, &end_len);
        dibsx_buf_puts(out, "data: ");
        dibsx_buf_add(out, data, line);
        dibsx_buf_putc(out, '\n');
        data += line + end_len;
        len -= line + end_len;
    } while (end_len > 0);
    dibsx_buf_putc(out, '\n');
}
