/* publish.h - the side of the keeper that locks see: what it is to watch, and what
 * the readers of a handle are shown.
 *
 * Owns the setting of the client's timer. Any thread: nothing here waits for the
 * keeper, which looks at a lock when the timer or a wake-up says so. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_CORE_PUBLISH_H
#define DIBS_CORE_PUBLISH_H

#include "core/lock.h"

/* Starts the keeper if it does not run and sees to room for one more lock.
 * DIBS_NOMEM when the system has no thread to give. Locks: cl->mutex. */
dibs_status dibs__keeper_ready(dibs_client *cl, dibs_error *err);

/* Sees that the doorbell of the store (or of the spare) is heard. On failure
 * waits still end, by polling. Locks: none held. */
void dibs__keeper_listen(dibs_client *cl, dibs__store *st, dibsx_nsec deadline);

/* Looks at the lock's lease anew: its deadline, and what readers of the handle
 * see. Call after every change of the lease. Locks: cl->mutex. */
void dibs__keeper_watch(dibs_client *cl, dibs_lock *lock);

/* What readers of the handle see, and of those that entered through it. Locks:
 * cl->mutex. */
void dibs__keeper_publish(dibs_lock *lock);

/* Wakes an asynchronous acquire at a moment; DIBSX_NEVER: not any more. Locks:
 * cl->mutex. */
void dibs__keeper_alarm(dibs_client *cl, dibs_lock *lock, dibsx_nsec at);

/* Sets the timer when the earliest deadline comes before what it is set to. A
 * timer that goes off too early costs one look. Locks: cl->mutex. */
void dibs__keeper_arm(dibs_client *cl);

#endif
