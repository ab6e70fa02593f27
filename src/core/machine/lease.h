/* lease.h - the life of one lease, without I/O: time and answers come in.
 *
 *              asked               granted              renewal failed
 *     FREE ------------> ASKING ------------> HELD <-------------------> SUSPECT
 *      ^                 ^   |                 ^ |        renewed           |
 *      |           asked |   | queued  noticed | |                          |
 *      |                 |   v                 | |  valid_until passed, or  |
 *      +<-- refused -- QUEUED -----------------+ |  the store refused       |
 *      |                                         v                          |
 *      +<--------------- leave --------------- LOST <-----------------------+
 *      +<--------------- leave --------- any state
 *
 * Transitions: begin + asked (FREE to ASKING), answered (ASKING to any of HELD,
 * QUEUED, FREE, or still ASKING), noticed (QUEUED to HELD), renewed (HELD, SUSPECT),
 * due (to LOST), adopted (FREE to HELD), leave (to FREE).
 *
 * Invariants, checked by dibs__lease_check():
 *   (1) fence != 0 exactly in HELD, SUSPECT and LOST.
 *   (2) valid_until counts from the moment a request was SENT, never from the
 *       moment its answer came, less the drift allowance and the lock delay, and
 *       is never beyond what was asked for, or a claim, whatever the answer says.
 *   (3) A notice counts only if its fence is above the watermark of the "queued"
 *       answer from which validity is counted, and only once that answer is in;
 *       with `confirm` it is only a reason to ask.
 *   (4) In HELD and SUSPECT valid_until never moves back.
 *   (5) LOST is final: no answer revives it, only leave and a new owner.
 *   (6) Belief ends in leave, before anything is sent to the store.
 *   (7) Nothing is renewed outside HELD and SUSPECT, nor past valid_until, nor so
 *       as to stand beyond hold_until, nor past tick_until without a tick, nor
 *       while it is being converted; nor early what would not be sent at renew_at.
 *   (8) A request that had no answer is remembered until the owner changes, so
 *       that leaving sets a tombstone.
 *
 * Threads: none of its own; the client's mutex guards it. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_CORE_MACHINE_LEASE_H
#define DIBS_CORE_MACHINE_LEASE_H

#include "base/clock.h"
#include "store/lease.h"

typedef enum dibs__lease_state {
    DIBS__LEASE_FREE,
    DIBS__LEASE_ASKING,
    DIBS__LEASE_QUEUED,
    DIBS__LEASE_HELD,
    DIBS__LEASE_SUSPECT,
    DIBS__LEASE_LOST
} dibs__lease_state;

typedef struct dibs__terms { /* 0 where there is no such term */
    int64_t ttl_ms;
    int64_t hold_max_ms;
    int64_t delay_ms;       /* the store keeps others out so much longer, and so
                            much of the remaining time is not used */
    int64_t progress_ms;    /* renewal needs a tick this often */
    int64_t renew_every_ms; /* 0: a part of the ttl */
    bool manual;            /* the program renews all but a claim */
    bool prompt;            /* a claim is renewed at once, whatever is left */
    bool confirm; /* replicas must acknowledge it: a notice is no proof */
} dibs__terms;

typedef struct dibs__lease {
    dibs__lease_state state;
    char owner[DIBS_OWNER_SIZE];
    dibs__terms terms;      /* the ttl is no longer than hold_max_ms */
    bool asking;            /* an ask is in flight */
    bool unanswered;        /* a request of this owner had no answer */
    bool announced;         /* the loss has been announced */
    bool alone;             /* granted without a wait: perhaps no other waits */
    bool claimed;           /* by a claim that no renewal has confirmed yet */
    bool converting;        /* a conversion is under way: no renewal */
    uint32_t in_flight;     /* renewals sent and not yet answered */
    uint32_t failures;      /* renewals that failed since one that did not */
    uint64_t fence;         /* of the lease */
    uint64_t watermark;     /* of the last "queued" answer */
    uint64_t noticed_fence; /* the highest that could not count yet */
    dibsx_nsec sent_at;     /* the ask that is in flight */
    dibsx_nsec asked_at;    /* the ask whose "queued" answer is in */
    dibsx_nsec held_at;     /* when the lease became ours */
    dibsx_nsec hold_until;
    dibsx_nsec tick_until; /* no renewal after this without a tick */
    dibsx_nsec renew_at;
    dibsx_nsec valid_until;
} dibs__lease;

/* The allowance for clocks that run at different rates and for rounding. */
dibsx_nsec dibs__lease_drift(int64_t span_ms);

/* A new acquisition by a new owner. */
void dibs__lease_begin(dibs__lease *ls, const char *owner,
                       const dibs__terms *terms);

/* The ttl to ask for, with the lock delay; and the most left of it or of a claim. */
int64_t dibs__lease_ask_ms(const dibs__lease *ls);
int64_t dibs__lease_most_ms(const dibs__lease *ls);

/* Call before an acquire request leaves; again for each repetition. And the answer
 * to it: still ASKING afterwards means to ask again, or to leave. */
void dibs__lease_asked(dibs__lease *ls, dibsx_nsec now);
void dibs__lease_answered(dibs__lease *ls, dibs_status rc,
                          const dibs__answer *ans, dibsx_nsec now);

/* A notice of a grant. True when the lease is HELD, or to be asked for at once. */
bool dibs__lease_noticed(dibs__lease *ls, uint64_t fence, dibsx_nsec now);

/* A lease adopted with a renewal that was sent at sent_at. */
void dibs__lease_adopted(dibs__lease *ls, const char *owner, uint64_t fence,
                         dibsx_nsec sent_at, int64_t left_ms, dibsx_nsec now);

typedef enum dibs__lease_todo {
    DIBS__LEASE_NOTHING,
    DIBS__LEASE_RENEW,   /* call renewing, send it, call renewed */
    DIBS__LEASE_ANNOUNCE /* announce it; answered once per loss */
} dibs__lease_todo;

/* The action that is due now, and when to look again (DIBSX_NEVER: never). */
dibs__lease_todo dibs__lease_due(dibs__lease *ls, dibsx_nsec now);
dibsx_nsec dibs__lease_next(const dibs__lease *ls);

/* A renewal that is sent now may take this one along, DIBS__LEASE_SOON early at most. */
#define DIBS__LEASE_SOON (500 * DIBSX_MS)
bool dibs__lease_due_soon(const dibs__lease *ls, dibsx_nsec now);

/* A renewal is on its way, from now until renewed is called. The ttl to ask for if
 * it leaves now. Its answer: the status for this lease, or that of the whole call. */
void dibs__lease_renewing(dibs__lease *ls);
int64_t dibs__lease_renew_ms(const dibs__lease *ls, dibsx_nsec now);
void dibs__lease_renewed(dibs__lease *ls, dibsx_nsec sent_at, dibs_status rc,
                         int64_t left_ms, dibsx_nsec now);

/* No renewal begins from now on, whatever its terms. */
void dibs__lease_renew_no_more(dibs__lease *ls, dibsx_nsec now);
void dibs__lease_ticked(dibs__lease *ls, dibsx_nsec now);
/* True when a conversion may be sent: no renewal is on its way, and none is sent
 * until converted is called with the answer to the request of sent_at. */
bool dibs__lease_converting(dibs__lease *ls);
void dibs__lease_converted(dibs__lease *ls, dibsx_nsec sent_at, dibs_status rc,
                           const dibs__answer *ans, dibsx_nsec now);

/* A hint that the lease may have been revoked: renew at once to find out. */
void dibs__lease_doubt(dibs__lease *ls, dibsx_nsec now);
/* Held and valid at this moment. */
bool dibs__lease_valid(const dibs__lease *ls, dibsx_nsec now);
/* Ends belief for good. True when the store must be left a tombstone, by (8). */
bool dibs__lease_leave(dibs__lease *ls);
/* Aborts when an invariant does not hold. */
void dibs__lease_check(const dibs__lease *ls);

#endif
