/* keeper.h - the background threads of a client.
 *
 * The keeper watches deadlines and the doorbell, announces losses and calls
 * back. It never talks to the store, so nothing the store does can delay the
 * news of a loss. The renewer sends the renewals that the keeper finds due, many
 * in one step. The leaver gives up sticky leases that somebody else wants. Each is
 * started when it is first needed; all of them block all signals.
 */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_CORE_KEEPER_H
#define DIBS_CORE_KEEPER_H

#include "core/client.h"
#include "core/lock.h"

/* A keeper that is not running. Stop ends its threads, waiting for a step
 * that is under way; fini frees the rest. */
dibs_status dibs__keeper_init(dibs_client *cl, dibs_error *err);
void dibs__keeper_stop(dibs_client *cl);
void dibs__keeper_fini(dibs_client *cl);

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

/* The renewer's side. Ready starts it if it does not run; false when the system
 * has no thread to give. Locks: cl->mutex for all but the last. */
bool dibs__renewer_ready(dibs_client *cl);
void dibs__renewer_add(dibs_client *cl, dibs_lock *lock);
void *dibs__renewer_main(void *arg);

/* Has a lease that rests given up, unless it is taken up before. Locks:
 * cl->mutex. */
void dibs__leaver_add(dibs_client *cl, dibs_lock *lock);

#endif
