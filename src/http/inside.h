/* inside.h - what the files of the server share: its parts, and who may touch
 * which. Not for users of the server. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_HTTP_INSIDE_H
#define DIBS_HTTP_INSIDE_H

#include "base/clock.h"
#include "base/heap.h"
#include "http/driver.h"
#include "http/pool.h"
#include "http/server.h"

enum { DIBS__HTTP_HEADERS_MAX = 8, DIBS__HTTP_VALUE_MAX = 256 };

typedef enum dibs__http_link_state {
    DIBS__HTTP_FRESH,    /* accepted; perhaps part of a request line is in */
    DIBS__HTTP_HEARD,    /* a request line is in, the request is not whole */
    DIBS__HTTP_ENGAGED,  /* working, or sending the answer */
    DIBS__HTTP_KEPT_OPEN /* answered, waiting for the next request */
} dibs__http_link_state;

/* A connection. Loop thread only. */
typedef struct dibs__http_link {
    dibsx_heap_node due; /* first: when to cut it off */
    int fd;
    dibs__http_link_state state;
} dibs__http_link;

typedef enum dibs__http_phase {
    DIBS__HTTP_HEAD,      /* the request line is in */
    DIBS__HTTP_RECEIVING, /* the headers are in */
    DIBS__HTTP_WORKING,   /* with the pool; the connection is suspended */
    DIBS__HTTP_ANSWERED,  /* the answer is whole, and not yet on its way */
    DIBS__HTTP_SENDING
} dibs__http_phase;

typedef struct dibs__http_header_out {
    char name[32];
    char value[DIBS__HTTP_VALUE_MAX];
} dibs__http_header_out;

struct dibs__http_exchange {
    dibs__http_job job; /* first: its place in the pool's queue */
    dibs__http_server *server;
    struct MHD_Connection *conn;
    dibs__http_link *link; /* NULL when memory was short */
    dibs__http_phase phase;
    dibs__http_target target;
    const dibs__http_route *route; /* NULL until it was found */
    uint64_t discarded;            /* bytes of a body that nobody wants */
    dibsx_buf body;
    dibsx_json_doc doc;
    int status; /* 0: there is no answer yet */
    dibsx_buf answer;
    dibsx_json js;
    dibs__http_header_out headers[DIBS__HTTP_HEADERS_MAX];
    size_t header_count;
};

struct dibs__http_server {
    dibs__http_opts opts; /* with the defaults filled in */
    struct MHD_Daemon *daemon;
    int daemon_fd; /* readable when libmicrohttpd has something to do */
    int wake_fd;   /* readable when one below has changed */
    pthread_t thread;
    dibs__http_pool pool;

    /* Loop thread only. */
    dibsx_heap dues;
    size_t links;     /* connections that have a place in `dues` */
    size_t under_way; /* exchanges that are working, answered or sending */
    bool again; /* a connection has closed, so that another may be accepted */
    bool stopping;

    /* Any thread, under the mutex. */
    pthread_mutex_t mutex;
    dibs__http_job *done; /* exchanges that the pool has answered */
    bool stop;
    int64_t grace_ms;
};

/* exchange.c */
dibs__http_exchange *
dibs__http_exchange_new(dibs__http_server *server, struct MHD_Connection *conn);
void dibs__http_exchange_free(dibs__http_exchange *ex);

/* Makes the answer whole; one that was not begun becomes an error. */
void dibs__http_answer_end(dibs__http_exchange *ex);

/* Appends an error's JSON object. */
void dibs__http_error_text(const dibs__http_server *server, int status,
                           const char *message, dibsx_buf *out);

/* request.c: what libmicrohttpd calls; cls is the server. */
void *
dibs__http_on_line(void *cls, const char *uri, struct MHD_Connection *conn);
enum MHD_Result
dibs__http_on_request(void *cls, struct MHD_Connection *conn, const char *url,
                      const char *method, const char *version,
                      const char *upload, size_t *upload_len, void **context);
void dibs__http_on_done(void *cls, struct MHD_Connection *conn, void **context,
                        enum MHD_RequestTerminationCode code);
dibs__http_job_fn dibs__http_work; /* on a thread of the pool */

/* link.c */
void dibs__http_on_link(void *cls, struct MHD_Connection *conn, void **context,
                        enum MHD_ConnectionNotificationCode code);
dibs__http_link *dibs__http_link_of(struct MHD_Connection *conn);

/* The state, and how long it may last; negative: without limit. NULL is a no-op. */
void dibs__http_link_set(dibs__http_server *server, dibs__http_link *link,
                         dibs__http_link_state state, int64_t span_ms);

/* Cuts off those that are due. */
void dibs__http_links_cut(dibs__http_server *server, dibsx_nsec now);

#endif
