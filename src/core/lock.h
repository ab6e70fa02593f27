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
#include <dibs/lock.h>
#include <stdatomic.h>

struct dibs_lock {
    /* Immutable. */
    dibs_client *cl;
    char name[DIBS_NAME_MAX + 1];
    char who[DIBS__WHO_MAX];
    dibs_lock_opts opts; /* whole; its strings are not kept */

    dibs__store *st; /* of the current lease: the client's, or its spare */
    dibs__lease lease;
    uint32_t refs;   /* the handle itself, and the renewer */
    bool busy;       /* a call that talks to the store is under way */
    bool taking;     /* ... an acquire: it sees to a loss itself */
    bool cancelled;  /* the wait is to end */
    bool nudged;     /* a ring may have been lost: ask again */
    bool announcing; /* the keeper is calling back */
    pthread_cond_t cond;
    dibsx_heap_node deadline;
    struct dibs_lock *next_due;   /* in the renewer's list */
    bool due;                     /* is in that list */
    struct dibs_lock *next_owner; /* in the client's table of owners */
    struct dibs_lock **at_owner;  /* what points at it there; NULL: not in it */
    int lost_fd;                  /* timerfd, -1 until asked for */

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

/* The table of owners, in which rings find their lock. Locks: cl->mutex. */
void dibs__lock_list(dibs_lock *lock);
void dibs__lock_unlist(dibs_lock *lock);
dibs_lock *dibs__lock_by_owner(dibs_client *cl, const char *owner);

/* Turns the lock to the client's own store. Locks: cl->mutex. */
void dibs__lock_use_store(dibs_lock *lock);

/* A new owner from the kernel's randomness. */
DIBS_MUST_CHECK dibs_status dibs__owner_new(char out[DIBS_OWNER_SIZE],
                                            dibs_error *err);

/* Ends belief and sends the release, within limit_ms (0: the client's timeout);
 * the mutex is let go for the step. Answers as dibs_lock_release(). Locks:
 * cl->mutex, held again afterwards. */
dibs_status
dibs__lock_give_up(dibs_lock *lock, int64_t limit_ms, dibs_error *err);

/* The same for who cannot be told: a failure is logged. Locks: cl->mutex, let go
 * meanwhile. */
void dibs__lock_let_go(dibs_lock *lock);

/* Drops a reference; the last one frees the handle. Locks: cl->mutex. */
void dibs__lock_unref(dibs_lock *lock);

#endif
