/* seat.h - the seat of the daemon in the group "dibs.nodes", by which all daemons of a
 * store are listed, with an engine for jobs or without.
 *
 * It is taken on the thread of the look, once the store has answered; the client keeps
 * it. The main thread ends it, when the look has stopped. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_SERVE_SEAT_H
#define DIBS_SERVE_SEAT_H

#include "serve/look.h"

#define DIBS__SERVE_NODES "dibs.nodes"

typedef struct dibs__serve_seat {
    dibs_client *cl;     /* borrowed, as are the texts */
    const char *epoch;   /* of the daemon */
    const char *board;   /* whose jobs it shows */
    bool engine;         /* it may execute some */
    int64_t ttl_ms;      /* 0: the client's */
    bool refused;        /* the store has no groups */
    dibs_member *member; /* NULL: not yet */
} dibs__serve_seat;

/* Takes the seat if the daemon has none. As dibs__serve_seen_fn; `arg` is the seat. */
void dibs__seat_seen(void *arg, const dibs__serve_picture *before,
                     const dibs__serve_picture *now);
void dibs__seat_fini(dibs__serve_seat *seat);

#endif
