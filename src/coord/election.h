/* election.h - the inside of an election handle, shared by its files.
 *
 *   election.c           the handle: new, campaign, wait, resign, free
 *   election_transfer.c  a transfer that the leader's program asks for
 *   election_heir.c      hearing of transfers, on a thread: the heir asks again, and
 *                        a leader hands over that another process asked
 *   election_thread.c    the thread that drives the machine in real time
 *   election_seat.c      the seat of a candidate, for minimum_nodes
 *   election_look.c      what looks at the handle see
 *
 * Locks: el->mutex guards what says so. It comes after cl->mutex, and no call to the
 * client is made while it is held, but for looks that lock nothing. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_COORD_ELECTION_H
#define DIBS_COORD_ELECTION_H

#include "coord/election_machine.h"
#include "coord/group_seat.h"
#include "coord/handle.h"
#include "coord/member_name.h"
#include <dibs/elect.h>
#include <dibs/lock.h>
#include <dibs/state.h>
#include <pthread.h>
#include <stdatomic.h>

struct dibs_election {
    dibs__handle handle; /* first, so that one is the other */
    dibs_client *cl;
    dibs_lock *lock;
    dibs_watch *heirs; /* of the value that names an heir; NULL: none */
    char name[DIBS_NAME_MAX + 1];
    char member[DIBS__MEMBER_SIZE];
    dibs_election_opts opts; /* whole; its strings are not kept */
    dibs__group_seat group;  /* with minimum_nodes */

    _Atomic(dibsx_nsec) until; /* it leads until then; 0: it does not */
    _Atomic(uint64_t) term;

    pthread_mutex_t mutex; /* guards all that follows */
    pthread_cond_t cond;
    dibs__election machine;
    int lost_fd;       /* timerfd; -1 until asked for */
    bool running;      /* both threads were started */
    bool heir_over;    /* ... and that of election_heir.c has ended */
    bool ending;       /* they are to end */
    bool asking;       /* an acquire is under way */
    bool highest;      /* ... with the highest priority */
    bool work_stopped; /* the caller that ends the term says so */
    bool once_over;    /* DIBS_ELECTION_ONCE: the term is over */
    bool seated;       /* the seat is in the session of the client */
    pthread_t thread;
    pthread_t heir_thread;
    char heir[DIBS__MEMBER_SIZE]; /* named last; "": none. The heir thread's */
    dibsx_nsec named_at;          /* ... then. Likewise */
    uint32_t transfers;  /* calls of dibs_election_transfer() under way */
    bool urged;          /* a transfer wants it to be the next */
    uint64_t releases;   /* so far */
    dibs_error released; /* how the last one ended */
    dibs_error
        refusal; /* of the store, that time does not mend; DIBS_OK: none */
};

/* The bodies of the threads; `arg` is the election. */
void *dibs__election_run(void *arg);
void *dibs__election_hear(void *arg);

/* Sets what looks at the handle see. Call after every change of the machine that may
 * end a term. Locks: el->mutex. */
void dibs__election_publish(dibs_election *el);

/* Tells the machine what became of the lease. `now` was read before, so that a lease
 * which has ended by then stays so. Locks: el->mutex. */
void dibs__election_see_lease(dibs_election *el, dibsx_nsec now);

/* Ends an acquire that is not wanted any more. Locks: el->mutex, let go meanwhile. */
void dibs__election_interrupt(dibs_election *el);

/* Makes the seat of an election with minimum_nodes. Its answers come on a worker. */
DIBS_MUST_CHECK dibs_status dibs__election_seat_init(dibs_election *el,
                                                     dibs_error *err);

/* A candidate has a seat: takes it, or gives it up. False when there was nothing to
 * do. Thread: the election's. Locks: el->mutex, let go meanwhile. */
bool dibs__election_seat_sync(dibs_election *el);

/* Asks for a heartbeat now, if the machine waits for one. Thread, locks: as above. */
void dibs__election_seat_hurry(dibs_election *el);

/* The place of a candidate in the queue. */
typedef struct dibs__election_place {
    size_t at;    /* SIZE_MAX: it is not there */
    bool highest; /* it asks with the highest priority */
} dibs__election_place;

/* Locks: none held. */
DIBS_MUST_CHECK dibs_status dibs__election_find(dibs_election *el,
                                                const char *member,
                                                dibs__election_place *out,
                                                dibs_error *err);

/* Whether the heir gets the lease if it goes back now. The place from before it heard
 * does not count, for the heir leaves it. */
bool dibs__election_is_next(const dibs__election_place *place,
                            dibsx_nsec named_at);

/* The key of the value that names an heir. */
enum { DIBS__HEIR_KEY_SIZE = DIBS_NAME_MAX + 16 };
void dibs__election_heir_key(const dibs_election *el,
                             char out[DIBS__HEIR_KEY_SIZE]);

/* Tells all that watch who leads, on a worker. Locks: none held. */
void dibs__leader_tell(dibs_client *cl, const char *name, uint64_t term);

#endif
