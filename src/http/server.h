/* server.h - an HTTP server: a table of routes behind limits.
 *
 *     accepted --> receiving --> (refused, or quick) --------> answering --+
 *                  ^    |                                        ^  ^      |
 *                  |    +--> queued --> working (pool thread) ---+  |      |
 *                  |                           stream, nothing new -+      |
 *                  +-------------- kept alive ------------------------------+
 *
 * One loop thread owns every connection. Functions of routes run on threads of a
 * pool, while nothing is read from their connection; those marked quick run on the
 * loop. Signals are blocked on all of these threads.
 *
 * A client that sends too slowly gets 408 and is cut off; too much in the header
 * gets 431, in the body 413. Bytes that are no HTTP, or not clearly so, get 400 and
 * are cut off; a request for another host gets 421, and one that a web page of
 * another origin makes a browser send 403. A client that does not take its answer,
 * or the next bytes of a stream, in time is cut off. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_HTTP_SERVER_H
#define DIBS_HTTP_SERVER_H

#include "base/clock.h"
#include "http/route.h"
#include "http/tls.h"

typedef struct dibs__http_server dibs__http_server;

/* Writes the pairs of an error's JSON object; `arg` is that of the functions. */
typedef void dibs__http_shape_fn(dibsx_json *js, const void *arg, int status,
                                 const char *message);

/* Looks at a request before its body is read; the route is known. False: it has
 * answered. Loop thread: must not block. */
typedef bool dibs__http_gate_fn(dibs__http_exchange *ex);

/* An answer is about to be sent: headers may still be added. Called once for each
 * request whose head could be read. Loop thread: must not block. */
typedef void dibs__http_sent_fn(dibs__http_exchange *ex, int status);

/* How many connections the address may have at a time; 0: as many as there are. More
 * get 429. `arg` is that of the functions. Loop thread: must not block. */
typedef unsigned dibs__http_crowd_fn(const void *arg, const char *peer);

/* How many handshakes of TLS the address may begin in a second, and five times as many
 * at once; 0: without limit. More are closed. Otherwise as that. */
typedef unsigned dibs__http_haste_fn(const void *arg, const char *peer);

/* A socket that listens. */
enum { DIBS__HTTP_LISTENERS_MAX = 16 };
typedef struct dibs__http_listener {
    int fd;              /* the server closes it */
    int kind;            /* for the program: dibs__http_kind() of requests */
    dibs__http_tls *tls; /* borrowed until the stop; NULL: plain text */
} dibs__http_listener;

/* Zero or NULL means the default. */
typedef struct dibs__http_opts {
    const dibs__http_route *routes; /* borrowed until the stop */
    size_t route_count;
    void *arg;                  /* for the functions */
    dibs__http_shape_fn *shape; /* {"status":404,"message":"..."} */
    const char *error_type;     /* of it: "application/json" */
    dibs__http_gate_fn *gate;   /* lets all pass */
    dibs__http_sent_fn *sent;   /* none */
    const char *base_path;      /* "/dibs": may stand before every path */
    const char *hosts;          /* "a.example,b.example": names of this server
                                 * besides "localhost" and its address; NULL:
                                 * it can have none */
    const dibs__http_listener *listeners; /* copied */
    size_t listener_count;      /* 0: one of plain text, on this socket: */
    int fd;                     /* listens already; the server closes it */
    dibs__http_crowd_fn *crowd; /* none has a share of its own */
    dibs__http_haste_fn *haste; /* as fast as they like */
    unsigned connections_max;   /* 256; more wait to be accepted */
    unsigned streams_max;       /* of them; half. More are answered with 503 */
    unsigned threads_max;       /* 32 functions at a time; 256 more wait, */
                                /* ... and the next ones get 503 */
    size_t head_max;            /* 16 KiB of request line and headers */
    size_t body_max;            /* 64 KiB */
    int64_t receive_ms; /* from one answer to the next request: 10,000 */
    int64_t send_ms;    /* to take an answer, or some of a stream: 10,000 */
} dibs__http_opts;

/* Opens a socket that listens on a numeric address; port 0 is any. DIBS_BUSY: the
 * port is in use. */
DIBS_MUST_CHECK dibs_status dibs__http_listen(const char *address, int port,
                                              int *fd, dibs_error *err);

/* Opens a socket that listens in the file system, with this mode; a socket that nobody
 * listens on any more is replaced. DIBS_BUSY: somebody does. */
DIBS_MUST_CHECK dibs_status dibs__http_listen_unix(const char *path,
                                                   unsigned mode, int *fd,
                                                   dibs_error *err);

/* The port that a listening socket has; 0 when it has none. */
int dibs__http_port(int fd);

/* On failure the socket is closed as well. End with dibs__http_stop(). */
DIBS_MUST_CHECK dibs_status dibs__http_start(const dibs__http_opts *opts,
                                             dibs__http_server **out,
                                             dibs_error *err);

/* Asks every stream that has had nothing to send, and every answer that is to come
 * later (exchange.h). Any thread, until the stop
 * begins; wakes that come together are one. */
void dibs__http_wake(dibs__http_server *server);

/* Other names of this server, which it copies. False: there is no memory, and they stay as
 * they were. Any thread, until the stop begins. */
DIBS_MUST_CHECK bool
dibs__http_hosts_set(dibs__http_server *server, const char *hosts);

/* Numbers of the server. Any thread, until the stop begins. */
typedef struct dibs__http_load {
    size_t connections, streams; /* now */
    uint64_t crowded;            /* were refused for their address */
    uint64_t hasty;              /* ... for its handshakes */
    uint64_t relieved;           /* were closed to make room */
} dibs__http_load;
void dibs__http_load_get(dibs__http_server *server, dibs__http_load *out);

/* Asks the loop for a sign of life; how long an earlier question has been without an
 * answer at `now`. Does not block. Any thread, until the stop begins. */
dibsx_nsec dibs__http_lag(dibs__http_server *server, dibsx_nsec now);

/* Accepts no more, lets requests that are under way end for up to `grace_ms`, then
 * asks each stream once more and ends it, answers requests whose function has not begun
 * with 503, waits for the functions that run (it is for the caller to make them
 * return), closes the rest and frees the server. Not to be called from a function. NULL is
 * a no-op. */
void dibs__http_stop(dibs__http_server *server, int64_t grace_ms);

#endif
