/* daemon.h - the daemon: its parts, and the thread that may touch each. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_SERVE_DAEMON_H
#define DIBS_SERVE_DAEMON_H

#include "http/server.h"
#include "serve/board_look.h"
#include "serve/bound.h"
#include "serve/breakers.h"
#include "serve/catalog.h"
#include "serve/counts.h"
#include "serve/engine.h"
#include "serve/feed.h"
#include "serve/gate.h"
#include "serve/health.h"
#include "serve/history.h"
#include "serve/hub.h"
#include "serve/listeners.h"
#include "serve/lock_sums.h"
#include "serve/log.h"
#include "serve/look.h"
#include "serve/memo.h"
#include "serve/noun_sums.h"
#include "serve/proxy.h"
#include "serve/pulse.h"
#include "serve/row.h"
#include "serve/seat.h"
#include "serve/serve.h"
#include "serve/session.h"
#include "serve/tails.h"
#include "serve/told.h"
#include "serve/topic_tail.h"
#include "serve/vital.h"
#include "serve/wrong_tokens.h"
#include <stdatomic.h>

enum { DIBS__SERVE_BASE_MAX = 128 };

typedef enum dibs__serve_phase {
    DIBS__SERVE_STARTING,
    DIBS__SERVE_READY,
    DIBS__SERVE_DRAINING
} dibs__serve_phase;

/* Wakes streams and answers that wait, while the server is there. */
typedef struct dibs__serve_bell {
    pthread_mutex_t mutex; /* for the server */
    dibs__http_server
        *server; /* NULL: before its start, and from its stop on */
} dibs__serve_bell;

typedef struct dibs__serve {
    const dibs__serve_opts *opts;
    dibs_client *cl; /* of the locks */
    dibs_client
        *data; /* of all other nouns: the same, unless data_url names it */
    dibs__http_server *http;
    dibs__serve_log log;
    dibs__serve_gate gate;
    dibs__wrong_tokens wrong_tokens;
    dibs__serve_look look;
    dibs__serve_health health;
    dibs__serve_memo circles;
    dibs__serve_memo stats;
    dibs__serve_memo nodes;
    dibs__serve_counts counts;
    dibs__serve_history history;
    dibs__serve_charts charts;
    dibs__serve_told told;
    dibs__serve_viewer viewer;
    dibs__serve_sessions sessions;
    dibs__serve_hub hub;
    dibs__serve_catalog catalog;
    dibs__lock_sums lock_sums;
    dibs__noun_sums noun_sums;
    dibs__serve_pulse pulse;
    dibs__serve_seat seat;
    dibs__serve_bounds bounds;
    dibs__serve_breakers breakers;
    dibs__serve_topics topics;
    dibs__board_look board_look;
    dibs__serve_engine engine;
    dibs__serve_tails tails;
    dibs__serve_bell bell;
    dibs__serve_nets proxies;        /* that are trusted */
    char base[DIBS__SERVE_BASE_MAX]; /* "/dibs", or "" */
    char epoch[9];                   /* drawn at the start */
    char host[256];
    dibsx_nsec started_at;
    _Atomic(dibsx_nsec) probed_at; /* when /livez asked the threads */
    atomic_bool stuck;             /* ... and one of them stood still */
    atomic_int phase;              /* main thread writes it, as these: */
    /* Settings as they are now. */
    atomic_uint address_max, handshake_rate, token_rate;

    /* Main thread only. */
    int signal_fd;
    dibsx_nsec drain_until; /* 0: there was no drain */
    dibs__serve_listeners listeners;
    char tokens_path[4096];
    char first_token[DIBS__SERVE_TOKEN_SIZE]; /* "": none was made just now */
} dibs__serve;

/* Asks the threads that all others need (vital.h); `http` NULL: but for the loop. False,
 * after a line of the log: one of them stands still. Any thread. */
bool dibs__serve_runs(dibs__serve *sv, dibs__http_server *http);

/* The latest picture, or NULL after an answer that says why there is none. Waits for
 * the look: not on the loop. End with dibs__serve_picture_drop(). */
dibs__serve_picture *dibs__serve_take_picture(dibs__http_exchange *ex);

/* Answers with the lease of the name in the path, as the store has it now, or as soon
 * as it differs from the ETag that the client knows. `write` writes its pairs. */
void dibs__serve_show_lease(dibs__http_exchange *ex, dibs__serve_row_fn *write);

#endif
