/* session_machine.h - a session of the sidecar: how long it lives, which leases it
 * keeps, and for how long its client may believe in them. Pure.
 *
 * Session:  OPEN --closed by its client, expired, drained--> ENDED     (final)
 *
 * Lease, under an id that its client chose:
 *
 *              put                granted                lost
 *     (none) -------> WAITING -----------------> HELD --------> LOST
 *        |                 | refused, removed,    | removed, end of the session
 *        | remove          v end of the session   v
 *        +----------> FREED <---------------------+
 *
 * An id is used once, also if it was refused, or removed before the put arrived: a
 * late put would take a lease that no client knows of. An acquire that is cancelled
 * still has an answer; if it is a grant, the lease goes back.
 *
 *   (S1) A client hears no more than the session and the lease have left, less the
 *        drift of its clock; nothing of a session that has ended.
 *   (S2) A session ends its ttl after the last beat that it received, and never
 *        before. An ended session does not open again.
 *   (S3) There is one acquire for an id.
 *   (S4) In an ended session no lease is WAITING or HELD, and every lease that its
 *        client had is released, or left at the end of the daemon. One that is granted
 *        after the end goes back, unless it was being taken over.
 *   (S5) LOST is final.
 *   (S6) A session has at most `leases_max` leases that are WAITING, HELD or still
 *        have an acquire, and as many that are over.
 *
 * Everything here is for one thread at a time. The caller has the storage of leases,
 * and frees one when dibs__session_forgotten() hands it out, or after the end. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_SERVE_SESSION_MACHINE_H
#define DIBS_SERVE_SESSION_MACHINE_H

#include "base/clock.h"
#include "serve/session_leases.h"

enum {
    DIBS__SESSION_TTL_MIN_MS = 2000,
    DIBS__SESSION_TTL_MAX_MS = 600000,
    DIBS__SESSION_BEATS_PER_TTL = 3
};

typedef enum dibs__session_end {
    DIBS__SESSION_OPEN,
    DIBS__SESSION_CLOSED,
    DIBS__SESSION_EXPIRED,
    DIBS__SESSION_DRAINED
} dibs__session_end;

typedef struct dibs__session {
    int64_t ttl_ms;
    size_t leases_max;
    dibs__session_end end;
    dibsx_nsec valid_until;
    dibs__session_leases leases;
} dibs__session;

/* Creating counts as a beat. */
void dibs__session_init(dibs__session *s, int64_t ttl_ms, size_t leases_max,
                        dibsx_nsec now);

/* 1 to DIBS__SESSION_ID_MAX of A-Z a-z 0-9 . _ - */
bool dibs__session_id_ok(const char *id);

/* A sign of life. False: the session has ended; dibs__session_next() has work. */
DIBS_MUST_CHECK bool dibs__session_beat(dibs__session *s, dibsx_nsec now);

/* Ends the session when its time is over; now. One that has ended stays as it is. */
void dibs__session_tick(dibs__session *s, dibsx_nsec now);
void dibs__session_finish(dibs__session *s, dibs__session_end why);

dibs__session_lease *dibs__session_find(const dibs__session *s, const char *id);

typedef enum dibs__session_put {
    DIBS__PUT_NEW,   /* `fresh` is in use, and is to be started */
    DIBS__PUT_KNOWN, /* it is what it is */
    DIBS__PUT_FULL,
    DIBS__PUT_ENDED /* the session has */
} dibs__session_put;

/* A client wants a lease; *found is it. `fresh` is storage for a new one. */
dibs__session_put
dibs__session_put_lease(dibs__session *s, dibs__session_lease *fresh,
                        const char *id, dibsx_nsec now,
                        dibs__session_lease **found);

/* A client is done with a lease, or will be when it arrives: `fresh` is storage for
 * an id that is not known. True: `fresh` is in use. */
bool dibs__session_remove(dibs__session *s, dibs__session_lease *fresh,
                          const char *id);

/* The answer to an acquire. */
void dibs__session_answered(dibs__session *s, dibs__session_lease *le,
                            dibs_status rc, uint64_t fence);
void dibs__session_lost(dibs__session *s, dibs__session_lease *le);

/* The next lease with something to do, NULL when there is none. It is done once. */
dibs__session_lease *
dibs__session_next(dibs__session *s, dibs__session_todo *todo);

/* The caller takes the lease over for the client that has it, instead of starting an
 * acquire. */
void dibs__session_adopting(dibs__session_lease *le);

/* Takes out the lease that has been over for longest when there are too many of
 * them; NULL: there are not. */
dibs__session_lease *dibs__session_forgotten(dibs__session *s);

/* How long a client may believe in a lease that is HELD and valid for `lease_ms`,
 * from before it sent its question; 0: not at all. */
int64_t
dibs__session_told_ms(const dibs__session *s, dibsx_nsec now, int64_t lease_ms);

/* ... and until which moment of the daemon's clock, if it allows for drift itself. */
dibsx_nsec dibs__session_told_until(const dibs__session *s, dibsx_nsec now,
                                    int64_t lease_ms);

/* Less what two clocks may differ in. */
int64_t dibs__session_less_drift(int64_t span_ms);

/* Checks S2 to S6. NULL, or the one that does not hold. */
const char *dibs__session_check(const dibs__session *s);

#endif
