/* payload.h - the bytes that a request gives, as text or as base64, and its headers. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_SERVE_PAYLOAD_H
#define DIBS_SERVE_PAYLOAD_H

#include "http/exchange.h"

enum { DIBS__PAYLOAD_HEADERS_MAX = 64 };

typedef struct dibs__payload {
    const void *data;
    size_t len;
    const char *headers[DIBS__PAYLOAD_HEADERS_MAX + 1]; /* NULL ends */
    dibsx_buf bytes, texts;                             /* what they point to */
} dibs__payload;

/* Reads "data" or "data_base64", of which there must be one, up to `max` bytes, and
 * "headers", an object of texts. False: it was refused. End with
 * dibs__payload_fini() in both cases. */
DIBS_MUST_CHECK bool
dibs__payload_read(dibs__http_exchange *ex, const dibsx_json_node *body,
                   size_t max, dibs__payload *out);
void dibs__payload_fini(dibs__payload *payload);

#endif
