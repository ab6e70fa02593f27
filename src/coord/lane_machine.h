/* lane_machine.h - a consumer of a queue, without I/O: it reserves and settles. Pure.
 *
 * The caller opens a lane, asks for a number, sends the request, and says how each try
 * ended; time is an argument. Items live inside their owner. The driver is queue.c,
 * tests/sim drives the same code in simulated time; store/deliver.h has the store's part.
 *
 *            open             ask                    OK
 *     NONE --------> OPEN ----------> OPEN, asking ------> OPEN
 *      ^              | ^                | | again: no answer
 *      |              | '----------------' |
 *      |              |    not sent        | LOST
 *      | open         v                    v
 *      '----------- ENDED <--- validity is over, a tend says LOST, given up
 *
 * Invariants, checked by dibs__consumer_check(); the numbers in brackets are the rules of
 * store/deliver.h:
 *   (1) One request is under way at a time (2). It is sent again as it was until it has
 *       an answer, or the lane has ended: the next number follows an answer. A request
 *       that cannot have left gives its number back.
 *   (2) Validity counts from before the send of the last answered try, less drift (4). A
 *       number that is asked for with an empty hand may shorten the lane: validity falls
 *       to its span, and no tend counts that was sent before its answer.
 *   (3) ENDED is final for a lane: no answer, tend or ring leads back. Belief in all
 *       that it had is over.
 *   (4) Belief in an item ends before its settlement is sent (5).
 *   (5) A delivery is taken once. A later fence of an item in hand replaces the earlier
 *       one (8).
 *   (6) A ring counts for an open lane while that is valid, above the highest fence that
 *       the lane was given (8). The next number lists what rings brought (7).
 *   (7) Number 1 opens the lane and does nothing else (10).
 *   (8) LOST to a request of which every try before cannot have left means that nothing
 *       of it was done; to others it may have been done (10). */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_COORD_LANE_MACHINE_H
#define DIBS_COORD_LANE_MACHINE_H

#include "base/clock.h"
#include "store/queue.h"

/* A lane that only waits lives so long. */
enum { DIBS__LANE_PLACE_MS = 3000 };

typedef enum dibs__lane_state {
    DIBS__LANE_NONE,
    DIBS__LANE_OPEN,
    DIBS__LANE_ENDED
} dibs__lane_state;

/* How a try ended. */
typedef enum dibs__asked {
    DIBS__ASKED_DONE,  /* the answer counts */
    DIBS__ASKED_AGAIN, /* send the same again */
    DIBS__ASKED_NOT,   /* nothing was done; the lane goes on */
    DIBS__ASKED_LOST,  /* nothing was done; the lane has ended */
    DIBS__ASKED_UNSURE /* it may have been done; the lane has ended */
} dibs__asked;

/* Whether a status leaves open that the request was done. */
bool dibs__asked_doubt(dibs_status rc);

/* A delivery in hand. */
typedef struct dibs__lane_item {
    struct dibs__lane_item *next;
    dibs__token token;
    bool settling; /* its settlement is under way */
    bool rung;     /* the store does not know yet that it was heard of */
} dibs__lane_item;

typedef struct dibs__consumer {
    dibs__lane_state state;
    int64_t ttl_ms;   /* of a lane that has items */
    int64_t place_ms; /* of one that waits */
    uint64_t lane;
    uint64_t number;        /* of the request under way, or the last one */
    uint64_t stamp;         /* of the last answer */
    uint64_t top;           /* the highest fence that the lane was given */
    bool asking;            /* a request is under way */
    bool doubt;             /* a try of it had no answer */
    int64_t span_ms;        /* of the request */
    dibsx_nsec valid_until; /* DIBSX_NEVER until number 1 is answered */
    dibsx_nsec renewed_at;  /* the send of what was answered last */
    dibsx_nsec tended_at;   /* the last tend was sent then */
    dibsx_nsec tends_since; /* a tend that was sent by then does not count */
    dibs__lane_item *first;
    size_t count; /* of items */
} dibs__consumer;

typedef struct dibs__lane_ask {
    uint64_t lane, number, seen;
    int64_t span_ms;
    bool opens; /* number 1: nothing else is in it */
} dibs__lane_ask;

void dibs__consumer_init(dibs__consumer *c, int64_t ttl_ms);

/* A new lane, drawn by the caller, which has dropped the items of the last one. */
void dibs__consumer_open(dibs__consumer *c, uint64_t lane);

/* The next number. The caller then says what is settled with it, and sends. `places`: it
 * waits in the queue if there is nothing. With an empty hand such a lane lives for
 * place_ms only, so that what is handed to a dead client comes back soon. */
void dibs__consumer_ask(dibs__consumer *c, bool places, dibsx_nsec now,
                        dibs__lane_ask *out);
void dibs__consumer_settle(dibs__consumer *c, dibs__lane_item *item);

/* The tokens that this number lists, up to `max`. */
size_t dibs__consumer_heard(dibs__consumer *c, dibs__token *out, size_t max);

/* How a try that was sent at sent_at ended. DONE: what was settled is not in hand any
 * more; the deliveries of the answer follow. NOT: it is in hand again. */
dibs__asked
dibs__consumer_answered(dibs__consumer *c, dibsx_nsec sent_at, dibsx_nsec now,
                        dibs_status rc, uint64_t stamp);

/* A delivery of the answer, or of a ring. True: it is in hand now, in the place of
 * *older (NULL: of none), which is not any more. */
bool dibs__consumer_take(dibs__consumer *c, dibs__lane_item *item,
                         dibsx_nsec now, dibs__lane_item **older);
bool dibs__consumer_rung(dibs__consumer *c, dibs__lane_item *item,
                         dibsx_nsec now, dibs__lane_item **older);

/* When a tend is due: a third of the ttl after the last answer, or while there is time
 * yet. DIBSX_NEVER: the lane has nothing, or a request is under way, which renews. */
dibsx_nsec dibs__consumer_tend_at(const dibs__consumer *c);

/* A tend with the ttl is sent; and its answer. */
void dibs__consumer_tend(dibs__consumer *c, dibsx_nsec now);
void dibs__consumer_tended(dibs__consumer *c, dibsx_nsec sent_at,
                           dibsx_nsec now, dibs_status rc);

/* Ends the lane if its validity is over; and whatever it is. */
void dibs__consumer_look(dibs__consumer *c, dibsx_nsec now);
void dibs__consumer_end(dibs__consumer *c);

/* Forgets an item, which the caller still has. */
void dibs__consumer_drop(dibs__consumer *c, dibs__lane_item *item);

bool dibs__consumer_is_valid(const dibs__consumer *c, dibsx_nsec now);
bool dibs__consumer_believes(const dibs__consumer *c,
                             const dibs__lane_item *item, dibsx_nsec now);

/* Aborts when an invariant does not hold. */
void dibs__consumer_check(const dibs__consumer *c);

#endif
