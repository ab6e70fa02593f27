/* reentry.h - which names this client holds, and through which handles.
 *
 * A handle that has or asks for a lease is in the client's table of names. An
 * acquire looks there first (enter.h): the same owner may enter a lease that it
 * has (re-entry), and must not wait for itself. Handles that enter through another
 * are its guests: they show what it shows, and the lease goes back to the store
 * with the last release of all of them.
 *
 * Owns the table of names. Any thread.
 *
 * Locks: cl->mutex for everything here.
 */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_CORE_LOCK_REENTRY_H
#define DIBS_CORE_LOCK_REENTRY_H

#include "core/lock/lock.h"

/* The owner of an acquire is the identity of the handle, or the calling thread.
 * Sets lock->thread if the handle is not in use; rename sets it in any case. */
void dibs__reentry_name(dibs_lock *lock);
void dibs__reentry_rename(dibs_lock *lock);

/* Whether the caller is the owner of the latest acquire. */
bool dibs__reentry_is_owner(const dibs_lock *lock);

/* Acquires through this handle, or through its guests, have had no release
 * yet. */
bool dibs__reentry_in_use(const dibs_lock *lock);

/* The other handle through which this owner holds the name; NULL: none. */
dibs_lock *dibs__reentry_elsewhere(const dibs_lock *lock, dibsx_nsec now);

/* Makes the handle a guest of its host, which gets a reference; and ends that. The
 * reference is then the caller's to drop. */
void dibs__reentry_join(dibs_lock *lock, dibs_lock *host);
void dibs__reentry_quit(dibs_lock *lock);

/* The store has granted it: the first acquire of this hold. */
void dibs__reentry_acquired(dibs_lock *lock);

/* A release: true when it was the last one, so that the lease of *holder is to be
 * given back; false when others are still in it. *holder is this handle or the one
 * it entered through, with a reference for the caller to drop; NULL when the
 * handle held nothing. */
bool dibs__reentry_leave(dibs_lock *lock, dibs_lock **holder);

/* The lease of this handle is given up, or one that was lost is acquired anew:
 * no handle is in it any more. The handle is no guest, and the caller has a
 * reference of its own. */
void dibs__reentry_end(dibs_lock *lock);

#endif
