/* election_machine.h - one candidate of an election, without I/O. Pure.
 *
 * A caller asks what to do, does it, and says how it ended. Time is an argument. The
 * lease, its queue and its renewal are the lock's; here is what the candidate makes of
 * them, and of the seats that an election with minimum_nodes counts.
 *
 *          start           enough are seated        granted            counted
 *   IDLE ---------> SEATING ---------------> ASKING ---------> COUNTING ------> LEADING
 *    ^                 ^                                          |                |
 *    |                 | ask again after                 too few, |    resign, refused,
 *    | resigned        | a pause                         refused  |    too few, or
 *    |                 |                                          |    `until` is here
 *    |                 |             released                     v                v
 *    +---------------- RESTING <------------------------------ LEAVING <------- ENDING
 *                                                       work stopped, or validity is over
 *
 * Without minimum_nodes SEATING and COUNTING take no time. COUNTING waits for the answer
 * to a heartbeat that was sent after the grant: seats that were counted before may have
 * been those of another server, which a failover has replaced.
 *
 * Invariants, checked by dibs__election_check():
 *   (1) Gained and lost are announced in turn, gained first, each once per term.
 *   (2) In LEADING the candidate leads until `until`: stop_ms before the end of the
 *       lease, or of the time for which enough seats live. After that moment a look
 *       says lost, whatever the threads have got round to.
 *   (3) ENDING is final for the term: no answer leads back to LEADING.
 *   (4) The lease is renewed in COUNTING and LEADING alone. So a program that never
 *       says that it has stopped costs a ttl.
 *   (5) The lease is given back in LEAVING: after the work has stopped, or when
 *       validity is over.
 *   (6) A candidate whose work has not stopped does not ask again.
 *   (7) An ask or a release is under way in ASKING or LEAVING only, one at a time.
 *   (8) A term counts seats by heartbeats that were sent after the grant. The candidate
 *       has had its own seat since before the grant; the term ends with that seat. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_COORD_ELECTION_MACHINE_H
#define DIBS_COORD_ELECTION_MACHINE_H

#include "base/clock.h"
#include <stdbool.h>
#include <stdint.h>

enum { DIBS__ELECTION_REST_MS = 20 }; /* after a term */

typedef enum dibs__election_state {
    DIBS__ELECTION_IDLE,
    DIBS__ELECTION_SEATING,
    DIBS__ELECTION_ASKING,
    DIBS__ELECTION_COUNTING,
    DIBS__ELECTION_LEADING,
    DIBS__ELECTION_ENDING,
    DIBS__ELECTION_LEAVING,
    DIBS__ELECTION_RESTING
} dibs__election_state;

typedef enum dibs__election_todo {
    DIBS__ELECTION_SLEEP,
    DIBS__ELECTION_ASK,     /* for the lease; then granted or refused */
    DIBS__ELECTION_RELEASE, /* the lease; then released */
    DIBS__ELECTION_TELL_GAINED,
    DIBS__ELECTION_TELL_LOST
} dibs__election_todo;

/* The numbers are those of dibs_lost_why. */
typedef enum dibs__election_why {
    DIBS__ELECTION_EXPIRED = 1, /* not renewed in time */
    DIBS__ELECTION_TAKEN,       /* the store refused it */
    DIBS__ELECTION_FEW,
    DIBS__ELECTION_RESIGNED
} dibs__election_why;

typedef struct dibs__election_terms {
    int64_t stop_ms;   /* belief ends so long before the lease */
    bool needs_seats;  /* minimum_nodes */
    bool says_stopped; /* the program calls stopped; else a lost that was
                          announced is enough */
} dibs__election_terms;

typedef struct dibs__election {
    dibs__election_state state;
    dibs__election_terms terms;
    bool wanted;      /* campaigns */
    bool asked;       /* an ask or a release is under way */
    bool seated;      /* its seat was kept, and has not been lost since */
    bool told_gained; /* of this term */
    bool told_lost;
    bool working; /* from gained until the work has stopped */
    uint64_t term;
    dibs__election_why why;  /* in ENDING: why it ends */
    dibsx_nsec valid_until;  /* of the lease */
    dibsx_nsec enough_until; /* so long `need` seats live */
    dibsx_nsec granted_at;   /* the lease of this term */
    dibsx_nsec rest_until;
} dibs__election;

void dibs__election_init(dibs__election *e, const dibs__election_terms *terms);

/* Campaigns; and does no more. `goes_on`: only the term ends, as for a transfer. */
void dibs__election_start(dibs__election *e);
void dibs__election_resign(dibs__election *e, bool goes_on);

/* The work of the term that was lost has stopped, also if the loss was not announced
 * yet. Nothing while it leads. */
void dibs__election_stopped(dibs__election *e, dibsx_nsec now);

/* The answer to a heartbeat that was sent at sent_at: so long enough seats live; 0:
 * there are too few. And the candidate has lost its own seat. */
void dibs__election_counted(dibs__election *e, dibsx_nsec sent_at,
                            int64_t enough_ms);
void dibs__election_unseated(dibs__election *e);

/* A heartbeat is wanted at once. */
bool dibs__election_counts(const dibs__election *e);

/* How an ask ended; after a refusal the next one comes rest_ms later. */
void dibs__election_granted(dibs__election *e, uint64_t term,
                            dibsx_nsec valid_until, dibsx_nsec now);
void dibs__election_refused(dibs__election *e, int64_t rest_ms, dibsx_nsec now);
void dibs__election_released(dibs__election *e, dibsx_nsec now);

/* The lease is valid until then; and the store has refused it. */
void dibs__election_renewed(dibs__election *e, dibsx_nsec valid_until,
                            dibsx_nsec now);
void dibs__election_taken(dibs__election *e);

/* The next thing to do. *wake_at: how long to sleep. */
dibs__election_todo
dibs__election_next(dibs__election *e, dibsx_nsec now, dibsx_nsec *wake_at);

/* When belief ends if nothing is renewed; 0: it does not lead. */
dibsx_nsec dibs__election_until(const dibs__election *e);
bool dibs__election_leads(const dibs__election *e, dibsx_nsec now);

/* Whether the lease may be renewed now. */
bool dibs__election_renews(const dibs__election *e, dibsx_nsec now);

/* Aborts when an invariant does not hold. */
void dibs__election_check(const dibs__election *e);

#endif
