/* rate.h - the rate step of the store contract, and its rule.
 *
 * A limit hands out `count` tokens in each period, and up to `burst` of them at once:
 * GCRA, in exact arithmetic on the clock of the store. In any span W a name hands
 * out no more than burst + W * count / period_us tokens, whichever clients ask. Their
 * clocks have no part in it.
 *
 * The state of a name is the moment at which everything that was handed out will
 * have come back (TAT). If the store's clock is set back, TAT moves with it; if it
 * is set forward, that is worth one burst at most. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_RATE_H
#define DIBS_STORE_RATE_H

#include "base/clock.h"
#include <dibs/types.h>

struct dibs__store;

/* Sums of tokens and periods stay below this: Lua counts exactly so far. */
#define DIBS__RATE_MAX ((INT64_C(1) << 53) - 1)

typedef struct dibs__draw {
    const char *name;
    int64_t cost;  /* tokens asked for, at most `burst` */
    int64_t least; /* so many will do; fewer are not granted */
    int64_t count; /* tokens in a period */
    int64_t period_us;
    int64_t burst;
    int64_t wait_us; /* how far ahead of their time tokens may be granted */
} dibs__draw;

typedef struct dibs__drawn {
    int64_t granted;   /* 0: refused */
    int64_t wait_us;   /* before the tokens may be used; when refused: until
                        * a draw of `least` tokens succeeds at once */
    int64_t remaining; /* tokens that are left after this */
} dibs__drawn;

typedef struct dibs__rate_ops {
    /* DIBS_OK: granted. DIBS_BUSY: `least` tokens take longer than wait_us; none is
     * granted. DIBS_INVALID: as dibs__rate_check() has it. A draw costs its tokens
     * if it was done, also after DIBS_UNKNOWN. *out is zeroed where it says nothing.
     * Parameters may differ from draw to draw: the last ones count, and the tokens
     * that are out stay out. */
    dibs_status (*draw)(struct dibs__store *st, const dibs__draw *draw,
                        dibsx_nsec deadline, dibs__drawn *out, dibs_error *err);
} dibs__rate_ops;

/* As DIBS__LEASE_STEPS(). */
#define DIBS__RATE_STEPS(X) X(draw, DRAW)

/* All that a store keeps of a name. Zeroed: nothing is out. */
typedef struct dibs__rate {
    int64_t tat_us;  /* on the clock of the store, as the next */
    int64_t last_us; /* when it was written */
    int64_t rest;    /* of a microsecond, in parts of 1/count */
    int64_t count;   /* of the draw that wrote it, reduced; 0: nothing is out */
    int64_t period_us;
} dibs__rate;

/* Refuses what cannot be counted, with DIBS_INVALID. *out is the same draw with
 * count and period_us reduced, and with a wait that can be counted. Every store
 * starts with it. Pure, as the next. */
DIBS_MUST_CHECK dibs_status dibs__rate_check(const dibs__draw *draw,
                                             dibs__draw *out, dibs_error *err);

/* The rule. `draw` has passed the check. True: *rate has changed and is to be kept,
 * also when nothing was granted. Lua and PL/pgSQL have it too (draw.lua, rate.sql). */
bool dibs__rate_draw(dibs__rate *rate, const dibs__draw *draw, int64_t now_us,
                     dibs__drawn *out);

/* Whether a server can have answered this to the draw. */
bool dibs__rate_credible(const dibs__draw *draw, const dibs__drawn *out);

/* The status of a step whose answer is `out`. */
DIBS_MUST_CHECK dibs_status dibs__rate_status(const dibs__drawn *out,
                                              dibs_error *err);

#endif
