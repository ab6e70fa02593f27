/* sse.h - server-sent events: the frames of text/event-stream. Pure. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_HTTP_SSE_H
#define DIBS_HTTP_SSE_H

#include "base/buf.h"

#define DIBS__HTTP_SSE_TYPE "text/event-stream"

/* A comment, by which both sides know that the other is there. */
#define DIBS__HTTP_SSE_BEAT ": beat\n\n"

/* Appends one event. Without an id or a name (NULL) it has none; these have no line
 * ends. Data may have lines. */
void dibs__http_sse_put(dibsx_buf *out, const char *id, const char *name,
                        const char *data, size_t len);

#endif
