/* barrier_machine.h - one party of a barrier: its seat, and its calls one by one.
 *
 * No I/O: time and answers are arguments. Between two polls of a call, and between two
 * calls, the session of the client keeps the seat.
 *
 *            sit            arrive              BUSY
 *   OUT ----------> SITTING ------> ASKING ---------------> WAITING <-+ time, a ring
 *    ^                 | OK  ^        | ^    ask again         |      | of another
 *    | LOST, UNKNOWN:  v     | call   | +----------------------+------+ generation
 *    +-- any: new id   IN ---+ <------+ OK, STALE              | time up, cancel
 *                       ^-------------------- LEAVING <--------+
 *
 *   (1) One request at a time; one without an answer is sent again unchanged.
 *   (2) A call ends opened or broken only by an answer or a ring about the
 *       generation in which it was counted.
 *   (3) A ring that comes while an answer is awaited is kept until that is in.
 *   (4) A call that has begun to withdraw does not arrive again.
 *   (5) An answer is taken for the request that it answers: what the session hears of
 *       a seat ends no call, but makes it ask.
 *   (6) After DIBS_LOST, and after a call that gave up before it had a seat, the id is
 *       not used again.
 *   (7) A party that finds no seat free asks for a ttl, in which the seat of one that
 *       died would end; then, or when its time is up, the call ends with DIBS_BUSY.
 *   (8) A call whose withdrawal had no answer twice ends with DIBS_UNKNOWN, and its
 *       seat is not used again: it may count until that has ended.
 *   (9) A seat that ended between two calls ends the next one with DIBS_LOST, before it
 *       sits again: generations that this party is not of may have opened since. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_COORD_BARRIER_MACHINE_H
#define DIBS_COORD_BARRIER_MACHINE_H

#include "store/roster.h"

typedef enum dibs__party_state {
    DIBS__PARTY_OUT, /* has no seat */
    DIBS__PARTY_SITTING,
    DIBS__PARTY_IN, /* has a seat, and no call */
    DIBS__PARTY_ASKING,
    DIBS__PARTY_WAITING,
    DIBS__PARTY_LEAVING
} dibs__party_state;

typedef enum dibs__party_todo {
    DIBS__PARTY_SEND, /* a request is to be sent; then dibs__party_answered() */
    DIBS__PARTY_SLEEP, /* until a moment, a ring or an answer */
    DIBS__PARTY_DONE   /* the call has ended: rc */
} dibs__party_todo;

typedef struct dibs__barrier_party {
    dibs__party_state state;
    uint64_t id_number; /* another number is another id */
    uint64_t fence;
    uint64_t after;  /* the record that the next call arrives after */
    uint64_t passed; /* the generation of the last call that ended with DIBS_OK;
                        it outlives the seat */
    uint64_t gen;    /* in which the call is counted; 0: not known yet */
    bool calling;
    bool
        asked; /* the call may end: it has asked to be counted, or for a seat that
                   it did not get */
    bool lost;   /* see (9) */
    bool flying; /* a request is under way */
    bool breaks; /* a call that times out breaks the generation */
    dibs__meet_verb sent;
    dibs_status rc; /* of the last call */
    uint32_t need;
    int64_t ttl_ms, poll_ms;
    int64_t
        spread_ms; /* this party asks so long after a seat could have ended */
    dibsx_nsec wake_at, until;
    dibsx_nsec full_at; /* since when no seat was free; 0: none was asked for */
    uint32_t silences;  /* withdrawals of the call without an answer */
    uint64_t rung_gen;  /* kept by (3); 0: none */
    bool rung_opened;
    bool missed; /* a ring, while a request was under way */
} dibs__barrier_party;

void dibs__party_init(dibs__barrier_party *bp, uint32_t need, int64_t ttl_ms,
                      int64_t poll_ms, int64_t spread_ms, bool breaks);

/* Begins a call that ends by then, but arrives once in any case. There is none under
 * way. */
void dibs__party_call(dibs__barrier_party *bp, dibsx_nsec until,
                      dibsx_nsec now);
void dibs__party_cancel(dibs__barrier_party *bp, dibsx_nsec now);

/* DIBS__PARTY_SEND fills what of `out` is the machine's: all but name, id, who. */
dibs__party_todo dibs__party_next(dibs__barrier_party *bp, dibsx_nsec now,
                                  dibs__meet *out, dibsx_nsec *until);

/* The answer to what was sent; NULL: there was none. */
void dibs__party_answered(dibs__barrier_party *bp, const dibs__meet *answer,
                          dibsx_nsec now);

/* A generation has opened, or broke. Notices were lost: a call asks at that moment, if
 * not before. */
void dibs__party_rung(dibs__barrier_party *bp, uint64_t gen, bool opened);
void dibs__party_missed(dibs__barrier_party *bp, dibsx_nsec at);

/* The session heard that the seat with this fence has ended. */
void dibs__party_unseated(dibs__barrier_party *bp, uint64_t fence,
                          dibsx_nsec now);

#endif
