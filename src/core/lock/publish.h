/* publish.h - the side of the keeper that locks see: what it is to watch, and what
 * the readers of a handle are shown.
 *
 * Any thread: nothing here waits for the keeper, which looks at a lock when a timer
 * or a wake-up says so. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_CORE_LOCK_PUBLISH_H
#define DIBS_CORE_LOCK_PUBLISH_H

#include "core/lock/lock.h"

/* Looks at the lock's lease anew: its deadline, and what readers of the handle
 * see. Call after every change of the lease. Locks: cl->mutex. */
void dibs__keeper_watch(dibs_client *cl, dibs_lock *lock);

/* Sets the state that readers of the handle see, and that of its guests. Locks:
 * cl->mutex. */
void dibs__keeper_publish(dibs_lock *lock);

#endif
