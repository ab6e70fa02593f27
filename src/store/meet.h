/* meet.h - the roster rule: seats, arrivals and the generation that gathers. Pure.
 *
 * A store loads the head of a roster and one seat, ends the seats whose time has
 * passed (dibs__meet_ended), calls dibs__meet_apply() and writes back what is
 * marked, all in one transaction: a step costs the same however many seats there
 * are. The Lua and PL/pgSQL renderings use the same names.
 *
 * The rule:
 *   (1) Seats whose time has passed end before anything else. Until a step has used
 *       its fence a seat lives 3 s, counts for nothing and breaks nothing.
 *   (2) A used seat that ends while anybody has arrived breaks the generation, unless
 *       its party leaves quietly and has not arrived itself.
 *   (3) A call arrives after the number that the call before ended with, so that a
 *       late or repeated arrival of an older call counts for nothing. Its seat keeps
 *       what it came after (`from`) and where it is counted (`rec`).
 *   (4) The arrival that makes `need` opens the generation: the next one begins,
 *       and no seat is changed by that.
 *   (5) A withdrawal gives the seat a fresh record, so that an arrival of that call
 *       that comes later finds no match.
 *   (6) A barrier and a latch have one `need` for as long as they are in use.
 *   (7) Before a strict step, seats that were taken in another run end.
 *   (8) A generation that is older than all of DIBS__BROKEN_KEPT broken ones may have
 *       broken too: the outcome is lost.
 */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_MEET_H
#define DIBS_STORE_MEET_H

#include "store/roster.h"

enum { DIBS__RUN_MAX = 64 };

typedef enum dibs__seat_kind {
    DIBS__SEAT_NEW = 0,     /* not used yet */
    DIBS__SEAT_IDLE = 1,    /* has not arrived, or has withdrawn */
    DIBS__SEAT_ARRIVED = 2, /* in generation `rec` */
    DIBS__SEAT_COUNTED = 3  /* no seat: an id of a latch */
} dibs__seat_kind;

/* Tells what has become of a seat. */
typedef enum dibs__seat_mark {
    DIBS__SEAT_NONE = 0, /* there is none */
    DIBS__SEAT_KEPT,     /* as loaded */
    DIBS__SEAT_PUT,      /* write it */
    DIBS__SEAT_GONE      /* delete it */
} dibs__seat_mark;

typedef struct dibs__seat {
    dibs__seat_mark mark;
    dibs__seat_kind kind;
    uint64_t fence, from, rec;
    int64_t counts_us; /* the moment from which it counts, once it is used */
    int64_t until_us;
    char who[DIBS__WHO_MAX];
} dibs__seat;

/* The news that a step tells the topic. */
typedef struct dibs__meet_news {
    bool opened; /* else broken */
    uint64_t gen;
} dibs__meet_news;

typedef struct dibs__roster {
    dibs__roster_head head;             /* gen 0: there is no such roster yet */
    uint32_t seats;                     /* that have not ended */
    uint64_t broken[DIBS__BROKEN_KEPT]; /* the latest first */
    uint32_t broken_count;
    char run[DIBS__RUN_MAX]; /* of the last strict step; "": there was none */
    int64_t kept_until_us;   /* of a latch on the wall clock */

    /* For the step alone. */
    int64_t now_us;      /* the clock of seats */
    int64_t now_wall_us; /* of numbers and latches; may be the same */
    uint64_t watermark;  /* of the store; raised by each number */
    bool changed;        /* write the head */
    bool forgets;        /* delete all ids and seats first */
    dibs__meet_news news[2];
    uint32_t news_count;
} dibs__roster;

/* Begins a step that was loaded: forgets a latch that is not kept any more, and for
 * (7) answers true when the seats of another run must end: all of them. */
bool dibs__meet_begin(dibs__roster *ro, const dibs__meet *item,
                      const char *run);

/* The store has deleted so many seats, some of them used. */
void dibs__meet_ended(dibs__roster *ro, uint32_t ended, uint32_t used);

/* Whether a server can have answered this: no seat lives longer than a lease may. */
bool dibs__meet_credible(const dibs__meet *item);

/* Does an item. `seat` is that of its id. All but left_ms is answered. */
void dibs__meet_apply(dibs__roster *ro, dibs__seat *seat, dibs__meet *item);

/* "TEXT TEXT ...": the broken generations, as stores keep them. Read answers false
 * when it is something else. */
enum { DIBS__BROKEN_TEXT = DIBS__BROKEN_KEPT * 21 + 1 };
void dibs__meet_broken_write(const dibs__roster *ro,
                             char out[DIBS__BROKEN_TEXT]);
bool dibs__meet_broken_read(dibs__roster *ro, const char *text);

#endif
