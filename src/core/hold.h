/* hold.h - which names this client holds, and through which handles.
 *
 * A handle that has or asks for a lease is in the client's table of names. An
 * acquire looks there first: the same owner may enter a lease that it has (re-
 * entry), and must not wait for itself. Handles that enter through another are
 * its guests: they show what it shows, and the lease goes back to the store with
 * the last release of all of them.
 *
 * Locks: cl->mutex for everything here.
 */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_CORE_HOLD_H
#define DIBS_CORE_HOLD_H

#include "core/lock.h"

/* Whose acquire this is: the identity of the handle, or the calling thread. Sets
 * lock->holder. */
void dibs__hold_name(dibs_lock *lock);

/* Before an acquire asks the store: whether it can be answered here. *done unset:
 * go and ask. Else the acquire is over with the status returned: entered again,
 * taken up again after a rest, or an error. `waits`: it would join the queue. */
DIBS_MUST_CHECK dibs_status dibs__hold_enter(dibs_lock *lock, bool waits,
                                             bool *done, dibs_error *err);

/* The store has granted it: the first acquire of this hold. */
void dibs__hold_taken(dibs_lock *lock);

/* A release: true when it was the last one, so that the lease of *holder is to be
 * given back; false when others are still in it. *holder is this handle or the one
 * it entered through, with a reference for the caller to drop; NULL when the
 * handle held nothing. */
bool dibs__hold_leave(dibs_lock *lock, dibs_lock **holder);

/* The lease is given up, or what was lost is being taken anew: nobody is in it
 * any more. The caller has a reference of its own. */
void dibs__hold_end(dibs_lock *lock);

#endif
