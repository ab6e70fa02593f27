/* ask.h - what a request asks for: the name of a thing, the fields of its body. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_SERVE_ASK_H
#define DIBS_SERVE_ASK_H

#include "http/exchange.h"

/* The name in the path, under {name} or {key}. The segment "~" means that it is in the query,
 * since proxies decode an escaped slash. NULL: it was refused. */
const char *dibs__serve_ask_name(dibs__http_exchange *ex);

/* The body as an object of these fields ("ttl_ms wait_ms"); others are refused, and
 * so is what is no object. *root is NULL when the body is empty. False: it was
 * refused. */
DIBS_MUST_CHECK bool
dibs__serve_ask_body(dibs__http_exchange *ex, const char *fields,
                     const dibsx_json_node **root);

/* A field that is a whole number within limits, or a text of 1 to `max` bytes without
 * control characters, or a truth value. *out stays as it is without one. False: it
 * was refused. */
DIBS_MUST_CHECK bool
dibs__serve_ask_int(dibs__http_exchange *ex, const dibsx_json_node *root,
                    const char *field, int64_t min, int64_t max, int64_t *out);
DIBS_MUST_CHECK bool
dibs__serve_ask_text(dibs__http_exchange *ex, const dibsx_json_node *root,
                     const char *field, size_t max, const char **out);
DIBS_MUST_CHECK bool
dibs__serve_ask_bool(dibs__http_exchange *ex, const dibsx_json_node *root,
                     const char *field, bool *out);

/* A header with the address of the next part of a list: the query of this one, with that
 * cursor. NULL: there is none. */
void dibs__serve_link_next(dibs__http_exchange *ex, const char *cursor);

/* A text in the query, "" without one; and one of 1 to `max` bytes without control
 * characters, or a whole number within limits, for which *out stays as it is without one.
 * False: it was refused. */
const char *
dibs__serve_ask_word(const dibs__http_exchange *ex, const char *key);
DIBS_MUST_CHECK bool
dibs__serve_ask_line(dibs__http_exchange *ex, const char *key, size_t max,
                     const char **out);
DIBS_MUST_CHECK bool
dibs__serve_ask_query(dibs__http_exchange *ex, const char *key, int64_t min,
                      int64_t max, int64_t *out);

#endif
