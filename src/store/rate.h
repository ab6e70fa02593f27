/* rate.h - the rate steps of the store contract, and their rule.
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

#include <stdbool.h>

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

/* A limit of a list: tokens of it are out. */
typedef struct dibs__rate_row {
    char name[DIBS_NAME_MAX + 1];
    int64_t count; /* of the last draw, reduced; as the next */
    int64_t period_us;
    int64_t out;     /* tokens that are out, rounded up */
    int64_t full_us; /* until all of them have come back */
} dibs__rate_row;

/* Called for each limit; false: no more. */
typedef bool dibs__rate_fn(const dibs__rate_row *row, void *arg);

enum { DIBS__RATE_LIST_MAX = 500 };

/* Which limits a list is to have. */
typedef struct dibs__rate_query {
    const char *begins; /* their names begin with it */
    const char *after;  /* they come behind this name; "": from the first */
    size_t max;         /* a list may end after DIBS__RATE_LIST_MAX already */
} dibs__rate_query;

/* The limits of one list, where a short list costs the store less than a long one. */
static inline size_t dibs__rate_list_max(const dibs__rate_query *query)
{
    return query->max < DIBS__RATE_LIST_MAX ? query->max : DIBS__RATE_LIST_MAX;
}

typedef struct dibs__rate_ops {
    /* DIBS_OK: granted. DIBS_BUSY: `least` tokens take longer than wait_us; none is
     * granted. DIBS_INVALID: as dibs__rate_check() has it. A draw costs its tokens
     * if it was done, also after DIBS_UNKNOWN. *out is zeroed where it says nothing.
     * Parameters may differ from draw to draw: the last ones count, and the tokens
     * that are out stay out. */
    dibs_status (*draw)(struct dibs__store *st, const dibs__draw *draw,
                        dibsx_nsec deadline, dibs__drawn *out, dibs_error *err);

    /* The limits of which tokens are out, in the order of the bytes of their names.
     * Fewer than `max`, or than DIBS__RATE_LIST_MAX: there are no more. The store is
     * not locked while `each` runs. For the deadline see the rosters of
     * store/roster.h. */
    dibs_status (*rates)(struct dibs__store *st, const dibs__rate_query *query,
                         dibsx_nsec deadline, dibs__rate_fn *each, void *arg,
                         dibs_error *err);
} dibs__rate_ops;

/* As DIBS__LEASE_STEPS(). */
#define DIBS__RATE_STEPS(X)                                                    \
    X(draw, DRAW)                                                              \
    X(rates, RATES)

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

/* The row of a list, but for the name. False: all has come back, or no draw has
 * written this. */
bool dibs__rate_show(const dibs__rate *rate, int64_t now_us,
                     dibs__rate_row *row);

/* Whether a server can have answered this to the draw. */
bool dibs__rate_credible(const dibs__draw *draw, const dibs__drawn *out);

/* The status of a step whose answer is `out`. */
DIBS_MUST_CHECK dibs_status dibs__rate_status(const dibs__drawn *out,
                                              dibs_error *err);

#endif
