/* exchange.h - one request and its answer, as the function of a route sees them.
 *
 * An exchange belongs to one thread at a time: to that of the function while it
 * runs, to the server's loop before and after. What is borrowed from it lives
 * until the function returns. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_HTTP_EXCHANGE_H
#define DIBS_HTTP_EXCHANGE_H

#include "base/json.h"
#include "base/json_read.h"

typedef struct dibs__http_exchange dibs__http_exchange;

/* What the server was started with. */
void *dibs__http_arg(const dibs__http_exchange *ex);

/* A parameter of the path, decoded; of the query, NULL when it is not there; a
 * header of the request, likewise. */
const char *dibs__http_param(const dibs__http_exchange *ex, const char *name);
const char *dibs__http_query(const dibs__http_exchange *ex, const char *key);
const char *dibs__http_header(const dibs__http_exchange *ex, const char *name);

/* The body; *len may be 0. */
const char *dibs__http_body(const dibs__http_exchange *ex, size_t *len);

/* The body as JSON, NULL in *root when it is empty. False: it is not JSON (400), or
 * was not said to be (415), and that has been answered. */
DIBS_MUST_CHECK bool
dibs__http_body_json(dibs__http_exchange *ex, const dibsx_json_node **root);

/* Begins the answer: a status, and a writer for its JSON, whose outermost object
 * is open and will be closed by the server. To be called once. */
dibsx_json *dibs__http_answer(dibs__http_exchange *ex, int status);

/* Answers with an error in the one shape that the server has for them. What was
 * begun before is forgotten. */
void dibs__http_refuse(dibs__http_exchange *ex, int status, const char *format,
                       ...) __attribute__((format(printf, 3, 4)));

/* Adds a header to the answer; both are copied. */
void dibs__http_set(dibs__http_exchange *ex, const char *name,
                    const char *value);

#endif
