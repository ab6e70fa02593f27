/* grant.h - the grant rule: the holders of a name, its waiters, and the next. Pure.
 *
 * A roll is all that a store keeps of one name: its parties, which hold, wait or
 * have left. A store loads the roll, calls one function below with the time, and
 * writes back what is marked, all in one transaction. The Lua and PL/pgSQL
 * renderings use the same verbs.
 *
 * The rule:
 *   (1) Exclusive excludes all; shared excludes exclusive; permits of all
 *       holders never add up to more than the capacity.
 *   (2) A name has one kind while anybody holds it, waits for it or keeps it:
 *       lock (exclusive and shared) or permits of one capacity.
 *   (3) The queue is served from its head, by priority and then by arrival, as
 *       long as the head fits; a head that does not fit holds back all behind it,
 *       so neither writers nor large requests starve. Only `barge` goes past.
 *   (4) An owner that is served while it asks gets its whole ttl; one that is served
 *       by another's step gets a claim and a notice.
 *   (5) Parties whose time has passed are dropped together before anything else.
 *   (6) fence = max(watermark + 1, wall clock in microseconds), on every grant.
 *   (7) No step shortens a live lease, but release and revoke end it, and a
 *       transfer to another owner ends it for the one before.
 *   (8) An owner under a tombstone is granted nothing.
 *   (9) A refusal notifies the holders that asked for such notices.
 *  (10) An owner that asks again when less than a millisecond of its lease is left
 *       has lost it.
 */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_GRANT_H
#define DIBS_STORE_GRANT_H

#include "store/lease.h"

typedef enum dibs__role {
    DIBS__HOLDER = 0,
    DIBS__WAITER = 1,
    DIBS__GHOST = 2, /* has left, but excludes others until its time */
    DIBS__TOMB = 3   /* has left; its late requests answer DIBS_LOST */
} dibs__role;

typedef enum dibs__mark {
    DIBS__KEPT = 0, /* as loaded */
    DIBS__ADDED,    /* insert it */
    DIBS__CHANGED,  /* update it */
    DIBS__DROPPED   /* delete it; no longer part of the roll */
} dibs__mark;

enum { DIBS__BELL_MAX = 40 }; /* a client's doorbell address with its NUL */

typedef struct dibs__party {
    char owner[DIBS_OWNER_SIZE];
    dibs__role role;
    dibs__mode mode;
    uint32_t permits;
    uint32_t capacity;
    int32_t priority;
    uint64_t seq;   /* order of arrival among the waiters of the name */
    uint64_t fence; /* 0 for a waiter */
    bool claim;     /* a ghost: a tombstone follows it */
    bool tell;      /* as a holder, notify it when others are refused */
    int64_t ttl_ms;
    int64_t since_us; /* granted, or began to wait, on the lease clock */
    int64_t until_us; /* end of the lease, of the place, of the tombstone */
    char bell[DIBS__BELL_MAX];
    char who[DIBS__WHO_MAX];
    dibs__mark mark;
    bool notify;              /* its client, once the step is committed */
    dibs__notice_kind notice; /* of that */
} dibs__party;

typedef struct dibs__roll {
    dibs__party *parties;
    size_t count;
    size_t room;
    uint64_t watermark; /* highest fence of the store; raised by a grant */
    int64_t now_us;     /* the lease clock: never jumps while leases live */
    int64_t now_wall_us;
} dibs__roll;

/* Zeroed storage is an empty roll. The two times and the watermark are set by
 * the store before each step. */
void dibs__roll_fini(dibs__roll *roll);
void dibs__roll_reset(dibs__roll *roll); /* empty again; keeps the storage */

/* Room for one more party, zeroed and marked DIBS__KEPT, or NULL when memory is
 * short. The store fills it while loading. */
dibs__party *dibs__roll_add(dibs__roll *roll);

/* Each answers as the step of the same name in store/lease.h. On DIBS_NOMEM the
 * roll must not be written back. `bell` is the asking client's address. */
dibs_status
dibs__grant_acquire(dibs__roll *roll, const dibs__ask *ask, const char *bell,
                    dibs__answer *ans, dibs_error *err);
void dibs__grant_renew(dibs__roll *roll, dibs__renewal *item, const char *bell);
dibs_status dibs__grant_release(dibs__roll *roll, const dibs__leave *leave,
                                dibs_error *err);
dibs_status dibs__grant_revoke(dibs__roll *roll, uint64_t fence,
                               uint32_t *broken, dibs_error *err);
dibs_status
dibs__grant_convert(dibs__roll *roll, const dibs__conversion *conversion,
                    dibs__answer *ans, dibs_error *err);

/* Marks no party: there is nothing to write back, only notices to send. */
dibs_status dibs__grant_yield(dibs__roll *roll, uint64_t fence, uint32_t *asked,
                              dibs_error *err);

/* For the steps. A party lives until its time has passed or it was dropped; a party
 * that holds is a live holder or ghost. */
bool dibs__party_lives(const dibs__roll *roll, const dibs__party *party);
bool dibs__party_holds(const dibs__roll *roll, const dibs__party *party);

/* Whether `party` could be granted now, beside all others that hold. */
bool dibs__roll_fits(const dibs__roll *roll, const dibs__party *party);

/* The head of the queue if it fits; else NULL. */
dibs__party *dibs__roll_next(const dibs__roll *roll);

/* The owner's party, be it dropped or not; NULL when it has none. */
dibs__party *dibs__roll_find(const dibs__roll *roll, const char *owner);

/* The party that holds and whose time ends first, or NULL. */
const dibs__party *dibs__roll_first_to_end(const dibs__roll *roll);

/* How many live waiters go before `party`, or are there at all when NULL. */
uint32_t dibs__roll_ahead(const dibs__roll *roll, const dibs__party *party);

/* Fills `out` (room for roll->count) with live holders and ghosts, then waiters
 * in the order of service; returns how many. Changes nothing. */
size_t dibs__roll_show(const dibs__roll *roll, dibs__entry *out);

/* Aborts when an invariant of the rule does not hold. Debug builds call it after
 * every step; the simulation always does. */
void dibs__roll_check(const dibs__roll *roll);

#endif
