/* lock.h - the inside of a lock handle, shared by the files of the core.
 *
 * The client's mutex guards everything but what is immutable after the handle
 * was made and the three published atoms, which any thread may read. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_CORE_LOCK_H
#define DIBS_CORE_LOCK_H

#include "base/heap.h"
#include "core/client.h"
#include "core/lease.h"
#include "core/take.h"
#include <dibs/lock.h>
#include <stdatomic.h>

/* Why the store may have more right than the mode of a lease says; turn.c. */
typedef enum dibs__doubt {
    DIBS__SURE,
    DIBS__ADOPTED, /* nobody said which it is */
    DIBS__LOWERING /* a downgrade has had no answer */
} dibs__doubt;

/* Something has happened that an acquire of this lock may sleep for. Locks:
 * cl->mutex. */
typedef void dibs__wake_fn(struct dibs_lock *lock);

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
    dibsx_heap_node deadline;
    struct dibs_lock *next_due;   /* in the renewer's list */
    bool listed;                  /* is in that list */
    bool due;                     /* ... for the lease that it has now */
    struct dibs_lock *next_owner; /* in the client's table of owners */
    struct dibs_lock **at_owner;  /* what points at it there; NULL: not in it */

    /* Re-entry; see hold.h. */
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
    bool leaving; /* is in the leaver's list */
    struct dibs_lock *next_leaving;

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

    /* Published by dibs__keeper_watch(). valid_until is 0 when not believed. */
    atomic_int state; /* dibs_lock_state */
    _Atomic(dibsx_nsec) valid_until;
    _Atomic(uint64_t) fence;

    atomic_int kept; /* dibs_lock_kept of `st` */
};

/* Enters a call that talks to the store: one at a time on a handle. DIBS_INVALID
 * while another is under way. On DIBS_OK the client's mutex is held. */
DIBS_MUST_CHECK dibs_status dibs__lock_enter(dibs_lock *lock, dibs_error *err);

/* Ends it and lets go of the mutex. Locks: cl->mutex, released. */
void dibs__lock_exit(dibs_lock *lock);

/* The two halves of a release. Part ends belief; with part->holder set, the store
 * is yet to be told, by send, which lets the mutex go for the step and drops the
 * reference. Within limit_ms (0: the client's timeout). Locks: cl->mutex. */
dibs_status
dibs__lock_part(dibs_lock *lock, dibs__parting *part, dibs_error *err);
dibs_status
dibs__lock_send(dibs__parting *part, int64_t limit_ms, dibs_error *err);

/* The table of owners, in which rings find their lock. Locks: cl->mutex. */
void dibs__lock_list(dibs_lock *lock);
void dibs__lock_unlist(dibs_lock *lock);
dibs_lock *dibs__lock_by_owner(dibs_client *cl, const char *owner);

/* Begins a new lease by a new owner, as the options say; lists it. Locks:
 * cl->mutex. */
void dibs__lock_begin(dibs_lock *lock, const char *owner);

/* As dibs_lock_adopt(); `sure`: it is what the options say. Locks: none held. */
DIBS_MUST_CHECK dibs_status dibs__lock_take_over(dibs_lock *lock,
                                                 const char *owner,
                                                 uint64_t fence, bool sure,
                                                 dibs_error *err);

/* Turns the lock to the client's own store. Locks: cl->mutex. */
void dibs__lock_use_store(dibs_lock *lock);

/* A new owner from the kernel's randomness. Locks: cl->mutex. */
DIBS_MUST_CHECK dibs_status dibs__owner_new(dibs_client *cl,
                                            char out[DIBS_OWNER_SIZE],
                                            dibs_error *err);

/* Ends belief and sends the release, within limit_ms (0: the client's timeout);
 * the mutex is let go for the step. Answers as dibs_lock_release(). Locks:
 * cl->mutex, held again afterwards. */
dibs_status
dibs__lock_give_up(dibs_lock *lock, int64_t limit_ms, dibs_error *err);

/* The same for who cannot be told: a failure is logged. Locks: cl->mutex, let go
 * meanwhile. */
void dibs__lock_let_go(dibs_lock *lock);

/* Ends belief and sends nothing: what the store has ends by itself. Locks:
 * cl->mutex. */
void dibs__lock_forget(dibs_lock *lock);

/* Drops a reference; the last one frees the handle. Locks: cl->mutex. */
void dibs__lock_unref(dibs_lock *lock);

#endif
