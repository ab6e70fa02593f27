/* inside.h - parts of the server, and the thread of each. Not for its users. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_HTTP_INSIDE_H
#define DIBS_HTTP_INSIDE_H

#include "base/heap.h"
#include "base/lag.h"
#include "base/quota.h"
#include "http/chunks.h"
#include "http/head.h"
#include "http/lasting.h"
#include "http/pool.h"
#include "http/server.h"
#include "http/tls.h"
#include <stdatomic.h>
#include <stddef.h>
#include <sys/socket.h>

enum { DIBS__HTTP_VALUE_MAX = 256 };

typedef enum dibs__http_phase {
    DIBS__HTTP_HEAD,    /* accepted, or part of a head is in */
    DIBS__HTTP_BODY,    /* the head is in, the request is not whole */
    DIBS__HTTP_WORKING, /* with the pool */
    DIBS__HTTP_SENDING,
    DIBS__HTTP_PARKED,  /* a stream that has had nothing to send */
    DIBS__HTTP_WAITING, /* an answer that is to come later */
    DIBS__HTTP_IDLE,    /* answered, and nothing of the next request is in */
    DIBS__HTTP_LEAVING, /* answered for the last time; what comes is dropped */
    DIBS__HTTP_GONE     /* to be freed */
} dibs__http_phase;

/* A connection. Loop thread only. */
typedef struct dibs__http_link {
    dibsx_heap_node due; /* first: when to cut it off */
    struct dibs__http_link *prev, *next;
    dibs__http_server *server;
    dibs__http_exchange *ex; /* NULL between requests */
    int fd, kind;            /* the latter of its listener */
    dibs__http_seal *seal;   /* NULL: plain text */
    uint32_t wants; /* TLS waits for this event; 0: as the phase does */
    char peer[DIBS__HTTP_PEER_MAX];
    struct sockaddr_storage here; /* its own end; AF_UNSPEC: not known yet */
    dibs__http_phase phase;
    uint32_t watched; /* events that epoll looks for; 0: it does not know it */
    uint64_t dropped; /* bytes that nobody wanted */
    bool skipped, crowded; /* an empty line was before this; it gets 429 */
    size_t in_len;         /* bytes that have come and were not taken */
    size_t in_seen;        /* ... among which the end of the head is not */
    char in[];             /* head_max */
} dibs__http_link;

struct dibs__http_exchange {
    dibs__http_job job; /* first: its place in the pool's queue */
    dibs__http_server *server;
    dibs__http_link *link;
    char *text; /* what the head points to */
    dibs__http_head head;
    dibs__http_target target;
    const dibs__http_route *route; /* NULL until it was found */
    bool last;                     /* the connection is not used after it */
    bool engaged;                  /* counted in under_way */
    uint64_t left;                 /* bytes of a body of known length */
    dibs__http_chunks chunks;
    dibsx_buf body;
    dibsx_json_doc doc;
    dibsx_nsec begun_at;    /* when the head was in */
    dibs__http_later later; /* ask is NULL: it is not to come later */
    max_align_t note[DIBS__HTTP_NOTE_MAX / sizeof(max_align_t)];
    int status;       /* 0: there is no answer yet */
    const char *type; /* of the answer */
    bool json;        /* it is in `answer`, and open */
    dibsx_buf answer; /* JSON, or what a stream was asked for last */
    dibsx_json js;
    dibs__http_stream stream; /* pull is NULL: it is none */
    bool streaming, ended; /* counted in stream_count; its last bytes are in */
    uint64_t given;        /* to the kernel of a stream, as that counts */
    dibsx_buf headers;     /* of the answer: "Name: value" and CR LF each */
    dibsx_buf out;     /* to be sent: the head of the answer, or of a chunk, */
    const void *bytes; /* ... then these, of `answer` or the function's, */
    size_t byte_count;
    const char *tail; /* ... and the end of a chunk, or ""; */
    size_t sent;      /* bytes of all three */
    dibs__http_free_fn *free_bytes;
};

/* A listener, and whether epoll looks at it. */
typedef struct dibs__http_door {
    dibs__http_listener at; /* fd -1: none accepted */
    bool open;
} dibs__http_door;

struct dibs__http_server {
    dibs__http_opts opts;  /* with the defaults filled in */
    int epoll_fd, wake_fd; /* the latter: when one below has changed */
    pthread_t thread;
    dibs__http_pool pool;

    /* Loop thread only. */
    dibsx_heap dues;
    dibs__http_link *links;
    size_t link_count, stream_count;
    size_t under_way; /* exchanges that are working or sending, and streams */
    dibs__http_door doors[DIBS__HTTP_LISTENERS_MAX];
    size_t door_count;
    dibsx_quota handshakes[DIBSX_QUOTAS]; /* by address */
    dibsx_nsec listen_at;  /* DIBSX_NEVER, or when to try to accept again */
    bool stopping, ending; /* ending: streams too, as nothing else is left */

    /* The loop writes, any thread reads. */
    atomic_size_t connections, streams;
    _Atomic uint64_t crowded, hasty, relieved;
    dibsx_lag lag; /* of the loop */

    /* Any thread, under the mutex. */
    pthread_mutex_t mutex;
    dibs__http_job *done; /* exchanges that the pool has answered */
    char *hosts[2];       /* of opts if not as given; for the loop to take */
    bool stop, woken;     /* woken: streams that are parked are to be asked */
    int64_t grace_ms;
};

/* exchange.c */
dibs__http_exchange *dibs__http_exchange_new(dibs__http_link *link);
void dibs__http_exchange_free(dibs__http_exchange *ex);

/* Makes the answer whole, or an error; lets go of what it has after its head. */
void dibs__http_answer_end(dibs__http_exchange *ex);
void dibs__http_answer_drop(dibs__http_exchange *ex);

/* answer.c: the head of an answer that is whole, into ex->out. */
void dibs__http_answer_head(dibs__http_exchange *ex);

/* link.c. Takes the descriptor, also when it fails. */
void dibs__http_link_open(dibs__http_server *server,
                          const dibs__http_listener *at, int fd);
void dibs__http_link_close(dibs__http_link *link);

/* The descriptor can do something; or its exchange has an answer. May close it. */
void dibs__http_link_serve(dibs__http_link *link);
void dibs__http_link_go_on(dibs__http_link *link);

/* The phase, and how long it may last; negative: no limit, 0: as the one before. */
void dibs__http_link_set(dibs__http_link *link, dibs__http_phase phase,
                         int64_t span_ms);

/* Cuts off those that are due. */
void dibs__http_links_cut(dibs__http_server *server, dibsx_nsec now);

#endif
