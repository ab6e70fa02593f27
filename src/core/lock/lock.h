/* lock.h - the inside of a lock handle, shared by the files of the core.
 *
 * The client's mutex guards everything but what is immutable after the handle
 * was made and the atoms that are shown, which any thread may read. A handle owns
 * its texts, its condition and its loss descriptor. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_CORE_LOCK_LOCK_H
#define DIBS_CORE_LOCK_LOCK_H

#include "core/client.h"
#include "core/machine/acquire.h"
#include "core/machine/lease.h"
#include "core/worker.h"
#include <dibs/lock.h>
#include <stdatomic.h>

/* Why the store may grant more than the mode of a lease says; see convert.c. */
typedef enum dibs__doubt {
    DIBS__SURE,
    DIBS__ADOPTED, /* its mode is not known */
    DIBS__LOWERING /* a downgrade has had no answer */
} dibs__doubt;

/* Wakes an acquire of this lock that may be sleeping. Locks: cl->mutex. */
typedef void dibs__wake_fn(struct dibs_lock *lock);

/* The deadline of a lock; an asynchronous call adds its alarm. */
enum { DIBS__LOCK_TIMERS = 1 };

/* Deadlines that the keeper watches, and renewals for the renewer; see
 * keeper.h. */
typedef struct dibs__lock_due {
    dibs__timer deadline;        /* when the lease is to be looked at */
    struct dibs_lock *next;      /* in the renewer's list */
    bool listed;                 /* is in that list */
    bool current;                /* ... for the lease that it has now */
    struct dibs_lock *next_lost; /* in the keeper's list of losses */
    bool in_lost;                /* is in that list */
} dibs__lock_due;

/* Re-entry; see reentry.h. */
typedef struct dibs__lock_entry {
    uint32_t depth;           /* acquires of this handle not yet released */
    struct dibs_lock *via;    /* the handle that has the lease; NULL: this */
    struct dibs_lock *guests; /* those that hold through this one */
    struct dibs_lock *next_guest;
    dibsx_table_node by_name; /* in the client's table of names */
} dibs__lock_entry;

/* Stickiness; see sticky.h. */
typedef struct dibs__lock_sticky {
    bool idle;   /* released by the program, kept by the client */
    bool wanted; /* another client asks for the name: do not keep it */
    dibs__job
        leave; /* gives the lease up; has a reference while it is queued */
} dibs__lock_sticky;

/* The acquire that is under way; see acquire.h. */
typedef struct dibs__lock_acquire {
    bool running; /* it sees to a loss itself */
    bool stopped; /* its set is over: it ends at once; multi.c */
    dibs__acquire machine;
    dibs__wake_fn *wake;    /* its driver's; NULL: a thread sleeps on cond */
    struct dibs_lock *next; /* in the client's list */
    struct dibs_lock **at;
} dibs__lock_acquire;

/* State that any thread may read without the mutex; publish.c sets it. */
typedef struct dibs__lock_shown {
    atomic_int state;                /* dibs_lock_state */
    _Atomic(dibsx_nsec) valid_until; /* 0 when not believed */
    _Atomic(uint64_t) fence;
    atomic_int fallback; /* dibs_lock_fallback of `st` */
    int lost_fd;         /* timerfd, -1 until asked for, with the mutex */
} dibs__lock_shown;

struct dibs_lock {
    /* Immutable. */
    dibs_client *cl;
    dibs_lock_opts opts; /* whole; its strings are not kept */
    char *label;         /* NULL: the client's */
    char *meta;          /* as others are shown it, tabs included; NULL: none */
    char *identity;      /* NULL: the thread that acquires */
    uint32_t replicas;   /* must have the lease too, in the client's store */

    char holder[DIBS__IDENTITY_MAX]; /* whose acquire it is, or was last */
    char who[DIBS__WHO_PLAIN]; /* that, as others see it; "" not made yet */
    long thread;               /* the thread that `holder` names */
    dibs_lock_mode mode; /* of the current lease: no more than the store has */
    dibs__doubt doubt;   /* about that */

    dibs__store *st;   /* of the current lease: the client's, or its fallback */
    dibs__terms terms; /* for each lease: the options, as `st` allows them */
    dibs__ask ask;     /* for each acquire, the same; its call adds who asks,
                          and whether it waits */
    dibs__lease lease;
    uint32_t acked;    /* replicas that had it when it was granted */
    uint32_t refs;     /* the handle itself, and the renewer */
    bool busy;         /* a call that talks to the store is under way */
    bool freed;        /* the program is done with this handle */
    bool callback_due; /* a callback is due: on_lost or on_yield */
    bool announcing;   /* the keeper is calling back */
    pthread_cond_t cond;
    dibs_error *why; /* of the acquire or the asynchronous call under way */
    dibsx_table_node by_owner; /* in the client's table of owners */

    dibs__lock_due due;
    dibs__lock_entry entry;
    dibs__lock_sticky sticky;
    dibs__lock_acquire acquire;
    dibs__call call; /* see async.h */
    dibs__lock_shown shown;

    char name[]; /* immutable; no longer than it must be */
};

#endif
