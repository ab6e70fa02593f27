/* lock.h - the inside of a lock handle, shared by the files of the core.
 *
 * The client's mutex guards everything but what is immutable after the handle
 * was made and the atoms that are shown, which any thread may read. A handle owns
 * its name, its callbacks and its loss descriptor. It has what it needs
 * while it holds a lease, for a program may hold very many; what an acquire or another
 * call needs lives as long as that, and options are shared (traits.h). */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_CORE_LOCK_LOCK_H
#define DIBS_CORE_LOCK_LOCK_H

#include "base/park.h"
#include "core/client.h"
#include "core/lock/traits.h"
#include "core/machine/acquire.h"
#include "core/machine/lease.h"
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
    struct dibs_lock *next_lost; /* in the keeper's list of losses */
    bool listed;                 /* is in the renewer's list */
    bool current;                /* ... for the lease that it has now */
    bool in_lost;                /* is in the list of losses */
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
    bool idle;    /* released by the program, kept by the client */
    bool wanted;  /* another client asks for the name: do not keep it */
    bool leaving; /* a worker is to release it */
} dibs__lock_sticky;

/* An acquire under way, in the memory of its driver; see acquire.h. */
typedef struct dibs__lock_acquire {
    dibs__acquire machine;
    dibs__wake_fn *wake;    /* its driver's; NULL: a thread drives it, */
    dibsx_park sleeper;     /* ... and sleeps here */
    dibs_error *why;        /* its driver's too: the detail of an error */
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

/* Calls into the program; see callback.h. Few handles have any. */
typedef struct dibs__lock_callbacks {
    dibs_lock_lost_fn *on_lost;
    void *on_lost_arg;
    dibs_lock_yield_fn *on_yield;
    void *on_yield_arg;
} dibs__lock_callbacks;

struct dibs_lock {
    /* Immutable. */
    dibs_client *cl;
    const dibs__traits *traits;      /* its options */
    dibs__lock_callbacks *callbacks; /* NULL: none */

    int32_t priority; /* of acquires from now on */
    pid_t
        thread; /* whose acquire it is, or was last; 0: none, or an identity */
    dibs_lock_mode mode; /* of the current lease: no more than the store has */
    dibs__doubt doubt;   /* about that */

    dibs__store *st; /* of the current lease: the client's, or its fallback */
    dibs__lease lease;
    uint32_t acked;    /* replicas that had it when it was granted */
    uint32_t refs;     /* the handle itself, and the renewer */
    bool busy;         /* a call that talks to the store is under way */
    bool freed;        /* the program is done with this handle */
    bool stopped;      /* its set is over: an acquire ends at once; multi.c */
    bool muted;        /* it is being freed: no callback of a call */
    bool calling;      /* a callback of a call runs, */
    pthread_t caller;  /* ... on this thread */
    bool callback_due; /* a callback is due: on_lost or on_yield */
    bool announcing;   /* the keeper is calling back */
    dibsx_table_node by_owner; /* in the client's table of owners */

    dibs__lock_due due;
    dibs__lock_entry entry;
    dibs__lock_sticky sticky;
    dibs__lock_acquire *acquire; /* NULL: none; else it sees to a loss itself */
    struct dibs__call *call;     /* the asynchronous one under way; async.h */
    dibs__lock_shown shown;

    char name[]; /* immutable; no longer than it must be */
};

/* Replicas that must have the current lease too; the fallback store has none. */
static inline uint32_t dibs__lock_replicas(const dibs_lock *lock)
{
    return lock->st == lock->cl->st ? lock->traits->replicas : 0;
}

#endif
