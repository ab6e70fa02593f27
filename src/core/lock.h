/* lock.h - the inside of a lock handle, shared by the files of the core.
 *
 * The client's mutex guards everything but what is immutable after the handle
 * was made and the three published atoms, which any thread may read. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_CORE_LOCK_H
#define DIBS_CORE_LOCK_H

#include "core/client.h"
#include "core/lease.h"
#include "core/take.h"
#include "core/worker.h"
#include <dibs/lock.h>
#include <stdatomic.h>

/* Why the store may have more right than the mode of a lease says; convert.c. */
typedef enum dibs__doubt {
    DIBS__SURE,
    DIBS__ADOPTED, /* nobody said which it is */
    DIBS__LOWERING /* a downgrade has had no answer */
} dibs__doubt;

/* Something has happened that an acquire of this lock may sleep for. Locks:
 * cl->mutex. */
typedef void dibs__wake_fn(struct dibs_lock *lock);

/* The deadline of a lock, and the alarm of its call. */
enum { DIBS__LOCK_TIMERS = 2 };

struct dibs_lock {
    /* Immutable. */
    dibs_client *cl;
    char name[DIBS_NAME_MAX + 1];
    dibs_lock_opts opts; /* whole; its strings are not kept */
    char *label;         /* NULL: the client's */
    char *meta;          /* as others are shown it, tabs included; NULL: none */
    char *identity;      /* NULL: the thread that acquires */
    uint32_t replicas;   /* must have the lease too */

    char holder[DIBS__IDENTITY_MAX]; /* whose acquire it is, or was last */
    char who[DIBS__WHO_PLAIN]; /* that, as others see it; "" not made yet */
    long thread;               /* the thread that `holder` names */
    dibs_lock_mode mode; /* of the current lease: no more than the store has */
    dibs__doubt doubt;   /* about that */

    dibs__store *st; /* of the current lease: the client's, or its spare */
    dibs__lease lease;
    uint32_t acked;  /* replicas that had it when it was granted */
    uint32_t refs;   /* the handle itself, and the renewer */
    bool busy;       /* a call that talks to the store is under way */
    bool taking;     /* ... an acquire: it sees to a loss itself */
    bool stopped;    /* its set is over: an acquire ends at once; multi.c */
    bool announcing; /* the keeper is calling back */
    pthread_cond_t cond;
    dibs__timer deadline;         /* when the lease is to be looked at */
    struct dibs_lock *next_due;   /* in the renewer's list */
    bool listed;                  /* is in that list */
    bool due;                     /* ... for the lease that it has now */
    struct dibs_lock *next_owner; /* in the client's table of owners */
    struct dibs_lock **at_owner;  /* what points at it there; NULL: not in it */

    /* Re-entry; see reentry.h. */
    uint32_t depth;           /* acquires of this handle not yet released */
    struct dibs_lock *via;    /* the handle that has the lease; NULL: this */
    struct dibs_lock *guests; /* those that hold through this one */
    struct dibs_lock *next_guest;
    struct dibs_lock *next_name; /* in the client's table of names */
    bool named;                  /* is in that table */
    bool freed;                  /* the program is done with this handle */

    /* Stickiness; see rest.h. */
    bool resting; /* released by the program, kept by us */
    bool wanted;  /* somebody else asks for the name: do not rest */
    dibs__job
        leave; /* gives the lease up; has a reference while it is queued */

    /* The acquire that is under way; see taking.h. */
    dibs__take take;
    dibs__wake_fn *wake; /* its driver's; NULL: a thread sleeps on cond */
    dibs_error why;      /* what went wrong in the current call */
    struct dibs_lock *next_taking; /* in the client's list */
    struct dibs_lock **at_taking;

    /* Asynchronous calls; see async.h. */
    dibs__call call;

    int lost_fd;     /* timerfd, -1 until asked for */
    bool to_be_told; /* of a loss, or that somebody asks for it back */
    struct dibs_lock *next_lost; /* in the keeper's list of losses to tell */
    bool in_lost;                /* is in that list */

    /* Published by dibs__keeper_watch(). valid_until is 0 when not believed. */
    atomic_int state; /* dibs_lock_state */
    _Atomic(dibsx_nsec) valid_until;
    _Atomic(uint64_t) fence;

    atomic_int fallback; /* dibs_fallback of `st` */
};

#endif
