/* handle.h - a lock handle from the inside: calls on it, its owner, its end.
 *
 * Owns the client's table of owners, in which notices find their lock. Any thread. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_CORE_LOCK_HANDLE_H
#define DIBS_CORE_LOCK_HANDLE_H

#include "core/lock/lock.h"

/* Enters a call that talks to the store: one at a time on a handle. DIBS_INVALID
 * while another is under way. On DIBS_OK the client's mutex is held. */
DIBS_MUST_CHECK dibs_status dibs__lock_enter(dibs_lock *lock, dibs_error *err);

/* Ends it and lets go of the mutex. Locks: cl->mutex, released. */
void dibs__lock_exit(dibs_lock *lock);

/* The end of what was counted in cl->calls, for which the close of the client waits.
 * Locks: cl->mutex. */
void dibs__client_leave(dibs_client *cl);

/* The table of owners. Locks: cl->mutex. */
void dibs__lock_list(dibs_lock *lock);
void dibs__lock_unlist(dibs_lock *lock);
dibs_lock *dibs__lock_by_owner(dibs_client *cl, const char *owner);

/* One that is listed, NULL: none is. *at, 0 at first, is where the search goes on, so
 * that a caller who unlists each does not search in vain. */
dibs_lock *dibs__lock_any(dibs_client *cl, size_t *at);

/* A new owner from the kernel's randomness. Locks: cl->mutex. */
DIBS_MUST_CHECK dibs_status dibs__owner_new(dibs_client *cl,
                                            char out[DIBS_OWNER_SIZE],
                                            dibs_error *err);

/* Begins a new lease by a new owner, as the options say; lists it. Locks:
 * cl->mutex. */
void dibs__lock_begin(dibs_lock *lock, const char *owner);

/* Has the lock use this store: the client's own, or a fallback. Locks: cl->mutex. */
void dibs__lock_use_store(dibs_lock *lock, dibs__store *st,
                          dibs_fallback fallback);

/* The ask for the lease that was begun; its call adds who asks, and whether it waits.
 * Its texts are the lock's. Locks: cl->mutex. */
void dibs__lock_ask(const dibs_lock *lock, dibs__ask *out);

/* Drops a reference; the last one frees the handle. Locks: cl->mutex. */
void dibs__lock_unref(dibs_lock *lock);

#endif
