/* session.h - the session of a client: keeps all its seats alive, in one batch a round.
 *
 * A client has one session, made with its first seat. A worker of the client sends the
 * rounds: one step for DIBS__MEET_MAX seats, which each have their own ttl and answer.
 * No renewal of a lease waits for it. If the process dies, all seats end within their
 * ttl; dibs_close() gives them up together, after every lease.
 *
 *            add (fence 0)      OK             add (fence of a SIT)
 *     group ---------> SITTING ----> KEPT <---- barrier
 *                         ^           | LOST
 *                         +-- sits ---+--- else ---> not in the session any more
 *
 *   (1) A seat is due a third of its ttl after the answer before, or as the owner
 *       says. All seats that are due soon go with the first one that is. Seats of a
 *       server that does not answer go last: in a cluster others do.
 *   (2) The owner hears of every answer, and of every step that got none.
 *   (3) An id is used for one seat: after DIBS_LOST another one is drawn.
 *   (4) A dated request carries the last moment at which the store may do it: late_ms
 *       after the send, as the store's clock was in its last answer and counted from
 *       the moment that answer came in. So it errs early. A KEEP that came too late
 *       costs a seat that `sits`: the clock may be that of another server, which does
 *       not know the seat. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_COORD_SESSION_H
#define DIBS_COORD_SESSION_H

#include "core/client.h"
#include "store/roster.h"

typedef struct dibs__session_seat dibs__session_seat;

/* Tells the owner of a seat how a SIT or KEEP (answer->verb) ended. answer->rc:
 *   DIBS_OK    left_ms, live and clock_us are those of the answer. The span of left_ms
 *              counts from sent_at
 *   DIBS_LOST  the seat has ended. Without `sits` the session has dropped it
 *   others     DIBS_UNAVAIL, DIBS_UNKNOWN: no answer; the session sends again, and
 *              so it does after DIBS_TIMEOUT and after a refusal
 * Thread: a worker. Locks: cl->mutex, which it does not let go: it makes no call to
 * the session. */
typedef void dibs__seat_told_fn(dibs_client *cl, dibs__session_seat *seat,
                                const dibs__meet *answer, dibsx_nsec sent_at);

/* Lives inside its owner, from add to leave. */
struct dibs__session_seat {
    /* The owner fills this in, and changes none of it while the seat is in the session. */
    const char *name;  /* with the client's prefix */
    const char *who;   /* for SIT: "host:pid label" */
    uint32_t flags;    /* DIBS__MEET_STRICT, DIBS__MEET_QUIET */
    uint32_t need;     /* as in dibs__meet */
    int64_t ttl_ms;    /* of the seat */
    int64_t every_ms;  /* between two KEEP; 0: a third of ttl_ms */
    int64_t settle_ms; /* for SIT */
    bool sits;         /* a group: the session sits, again after DIBS_LOST */
    bool dated;        /* (4) */
    int64_t late_ms;   /* (4); 0: the client's timeout */
    dibs__seat_told_fn *told;
    void *arg;

    /* The seat. `sits`: the session fills it, fence 0 while there is none. */
    char id[DIBS_OWNER_SIZE];
    uint64_t fence;

    /* For the session alone. */
    dibs__session_seat *next;
    bool listed;
    bool was_kept;    /* a KEEP of this seat was answered DIBS_OK */
    bool is_silent;   /* its server did not answer: it goes last in a round */
    bool hurried;     /* again, as soon as the round under way is over */
    int64_t clock_us; /* of the last answer; 0: none yet */
    dibsx_nsec clock_at; /* when that came in */
    dibsx_nsec due_at;   /* DIBSX_NEVER: it is in the round under way */
};

/* Adds a seat; the first round is due at once for one that sits. Locks: cl->mutex. */
DIBS_MUST_CHECK dibs_status dibs__session_add(dibs_client *cl,
                                              dibs__session_seat *seat,
                                              dibs_error *err);

/* Sends the next SIT or KEEP of the seat now: one whose sent_at is later than this
 * call. Not of the session: nothing. Locks: cl->mutex. */
void dibs__session_hurry(dibs_client *cl, dibs__session_seat *seat);

/* Takes a seat out, and ends it in the store if that answers: then no other party
 * waits for its ttl. Not of the session: nothing. Locks: cl->mutex, let go
 * meanwhile. */
void dibs__session_leave(dibs_client *cl, dibs__session_seat *seat);

#endif
