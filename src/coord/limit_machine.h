/* limit_machine.h - one client's part of a rate limit, without I/O. Pure.
 *
 * A limit keeps a stock of tokens that the store has handed out, for hot paths: at
 * most `chunk`. A call takes from it, or asks the store.
 *
 *   take -> SPEND --(enough)--> DONE
 *             | not enough
 *             v
 *           DRAW n, and the stock if it is there at once --OK--> DONE
 *             | BUSY, may wait               | no answer
 *             v                              v
 *           DRAW n ahead --OK--> sleep,    AWAY: fail, this client's share, or open;
 *             |                  DONE      PROBE once a second until the store is back
 *             v BUSY
 *           REFUSED
 *
 *   (1) stock + the tokens that are asked for it <= chunk.
 *   (2) A token is in the stock only if the store answered that it granted it, and
 *       that it may be used at once. An unanswered draw adds nothing.
 *   (3) The stock is dropped STOCK_MS after the last draw for it was sent.
 *   (4) While the store is away, no call waits for it.
 *
 * Time is an argument, on a clock that does not go back. Spend may run on any thread;
 * all else is for one thread at a time. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_COORD_LIMIT_MACHINE_H
#define DIBS_COORD_LIMIT_MACHINE_H

#include "base/clock.h"
#include "store/rate.h"
#include <dibs/client.h>
#include <stdatomic.h>

enum {
    DIBS__LIMIT_CHUNK_MS = 50, /* of DIBS_LIMIT_AUTO */
    DIBS__LIMIT_STOCK_MS = 1000,
    DIBS__LIMIT_REFUSED_MS = 50, /* a refusal is believed so long, at most */
    DIBS__LIMIT_PROBE_MS = 1000
};

typedef struct dibs__limiter {
    dibs__draw rate; /* the limit; cost, least and wait_us are of each call */
    int64_t chunk;   /* 0: no stock */
    dibs_away policy;
    dibs__draw share; /* this client's, while the store is away */

    _Atomic int64_t stock;
    _Atomic dibsx_nsec stock_until;
    _Atomic dibsx_nsec fetch_at; /* not before: there was nothing to fetch */
    int64_t asked;               /* for the stock, without an answer yet */
    dibsx_nsec refused_until;    /* as many as this are not there before: */
    int64_t refused;

    bool away;
    dibsx_nsec probe_at;
    dibs__rate local; /* what is out of the share */
} dibs__limiter;

/* A call. */
typedef struct dibs__take {
    int64_t n;
    int64_t wait_us;  /* that it may wait */
    bool ahead;       /* it draws for itself alone, ahead of time */
    int64_t asked;    /* tokens of its draw that are for the stock */
    int64_t sleep_us; /* DONE: before it may use its tokens */
    int64_t retry_us; /* REFUSED: until it is worth another try */
} dibs__take;

typedef enum dibs__take_todo {
    DIBS__TAKE_DONE,
    DIBS__TAKE_REFUSED,
    DIBS__TAKE_FAILED, /* with the status of the draw */
    DIBS__TAKE_DRAW
} dibs__take_todo;

/* `rate` has passed dibs__rate_check(); so has `share`, if the policy needs it. */
void dibs__limiter_init(dibs__limiter *lm, const dibs__draw *rate,
                        int64_t chunk, dibs_away policy,
                        const dibs__draw *share);

/* Takes n tokens of the stock; false when it has too few. *low: more should be
 * fetched. Any thread. */
bool dibs__limiter_spend(dibs__limiter *lm, int64_t n, dibsx_nsec now,
                         bool *low);

/* The next thing to do for a call. DRAW: *draw is to be sent, and reported. */
dibs__take_todo dibs__limiter_next(dibs__limiter *lm, dibs__take *take,
                                   dibsx_nsec now, dibs__draw *draw);

/* The draw of a call ended. DRAW: ask for the next thing again. */
dibs__take_todo
dibs__limiter_drawn(dibs__limiter *lm, dibs__take *take, dibsx_nsec sent_at,
                    dibsx_nsec now, dibs_status rc, const dibs__drawn *drawn);

/* Beside calls: true when *draw is to be sent for the stock, and reported with its
 * cost. */
bool dibs__limiter_fetch(dibs__limiter *lm, dibsx_nsec now, dibs__draw *draw);
void dibs__limiter_fetched(dibs__limiter *lm, int64_t cost, dibsx_nsec sent_at,
                           dibsx_nsec now, dibs_status rc,
                           const dibs__drawn *drawn);

/* True when it is time to see whether the store is back. */
bool dibs__limiter_probes(const dibs__limiter *lm, dibsx_nsec now);
void dibs__limiter_probed(dibs__limiter *lm, dibsx_nsec now, bool back);

#endif
