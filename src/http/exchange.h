/* exchange.h - one request and its answer, as the function of a route sees them.
 *
 * An exchange belongs to one thread at a time: to that of the function while it
 * runs, to the server's loop before and after. Texts borrowed from it live until
 * the function returns.
 *
 * An answer is a JSON object, bytes, or a stream (http/lasting.h). The last one that
 * the function begins counts; the server lets go of the others. HEAD gets the head of
 * each. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_HTTP_EXCHANGE_H
#define DIBS_HTTP_EXCHANGE_H

#include "base/json.h"
#include "base/json_read.h"

typedef struct dibs__http_exchange dibs__http_exchange;

/* The `arg` that the server was started with. */
void *dibs__http_arg(const dibs__http_exchange *ex);

/* A parameter of the path, decoded; of the query, NULL when it is not there; a
 * header of the request, likewise; a key of the query that the route does not read. */
const char *dibs__http_param(const dibs__http_exchange *ex, const char *name);
const char *dibs__http_query(const dibs__http_exchange *ex, const char *key);
const char *dibs__http_header(const dibs__http_exchange *ex, const char *name);
const char *dibs__http_stray(const dibs__http_exchange *ex);

/* Appends all lines of a header that may come several times, as one list with commas;
 * false: there is none. */
bool dibs__http_header_all(const dibs__http_exchange *ex, const char *name,
                           dibsx_buf *out);

/* "GET", or "HEAD" of a route for it; and the target as the client sent it:
 * "/dibs/v1/locks?q=x". */
const char *dibs__http_method(const dibs__http_exchange *ex);
const char *dibs__http_asked(const dibs__http_exchange *ex);

/* The route's path, the keys of the query that it reads, and its need; NULL, "" and 0
 * when the request has no route. */
const char *dibs__http_route_path(const dibs__http_exchange *ex);
const char *dibs__http_reads(const dibs__http_exchange *ex);
int dibs__http_need(const dibs__http_exchange *ex);

/* The kind of the listener that it came to; and the common name in the certificate that
 * the client showed, "" without one. */
int dibs__http_kind(const dibs__http_exchange *ex);
void dibs__http_peer_name(const dibs__http_exchange *ex, char *out,
                          size_t size);

/* The address of the client, in digits, or "unix:UID"; "" when it is not known. */
enum { DIBS__HTTP_PEER_MAX = 64 };
void dibs__http_peer(const dibs__http_exchange *ex,
                     char out[DIBS__HTTP_PEER_MAX]);

/* How long the request has been here, since its head was in. */
int64_t dibs__http_took_us(const dibs__http_exchange *ex);

/* Storage for the program's own use from the gate to the end, zeroed at first. */
enum { DIBS__HTTP_NOTE_MAX = 256 };
void *dibs__http_note(dibs__http_exchange *ex);

/* The server that has it, for dibs__http_wake(). */
struct dibs__http_server *dibs__http_server_of(const dibs__http_exchange *ex);

/* The body; *len may be 0. */
const char *dibs__http_body(const dibs__http_exchange *ex, size_t *len);

/* The body as JSON, NULL in *root when it is empty. False: it is not JSON (400), or
 * was not said to be (415), and that has been answered. */
DIBS_MUST_CHECK bool
dibs__http_body_json(dibs__http_exchange *ex, const dibsx_json_node **root);

/* Begins the answer: a status, and a writer for its JSON, whose outermost object
 * is open and will be closed by the server; or with another type than
 * "application/json", which is borrowed. */
dibsx_json *dibs__http_answer(dibs__http_exchange *ex, int status);
dibsx_json *
dibs__http_answer_as(dibs__http_exchange *ex, int status, const char *type);

/* Frees the bytes of an answer. Any thread of the server. */
typedef void dibs__http_free_fn(void *bytes);

/* Answers with bytes of any type ("text/html; charset=utf-8"). The server calls
 * `free_bytes` once when it needs them no more; NULL: they outlive the server. */
void dibs__http_answer_bytes(dibs__http_exchange *ex, int status,
                             const char *type, const void *bytes, size_t len,
                             dibs__http_free_fn *free_bytes);

/* Answers without a body: 204. */
void dibs__http_answer_none(dibs__http_exchange *ex, int status);

/* Whether the client has the version with this ETag, which has its quotes: it is among
 * those of If-None-Match, perhaps as a weak one. */
bool dibs__http_knows(const dibs__http_exchange *ex, const char *etag);

/* Gives the answer this ETag. True: the client knows it, and the answer is 304. Clients
 * ask again at each use. */
DIBS_MUST_CHECK bool
dibs__http_not_modified(dibs__http_exchange *ex, const char *etag);

/* Answers with an error in the one shape that the server has for them. */
void dibs__http_refuse(dibs__http_exchange *ex, int status, const char *format,
                       ...) __attribute__((format(printf, 3, 4)));

/* Adds a header to the answer; both are copied. A Cache-Control replaces that of
 * the server, "no-store". */
void dibs__http_set(dibs__http_exchange *ex, const char *name,
                    const char *value);

#endif
