/* keeper.h - the background threads of a client.
 *
 * The keeper watches deadlines and the doorbell, announces losses and runs
 * callbacks. It never talks to the store, so the store cannot delay the announcement
 * of a loss. The renewer sends the renewals that the keeper finds due, many in one
 * step. Each is started when it is first needed; both block all signals. Locks use
 * the keeper through publish.h.
 *
 * Owns the two threads and the descriptors they sleep on. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_CORE_THREADS_KEEPER_H
#define DIBS_CORE_THREADS_KEEPER_H

#include "core/client.h"
#include "core/lock/lock.h"

/* A keeper that is not running. Stop ends its threads, waiting for a step
 * that is under way; fini frees the rest. */
dibs_status dibs__keeper_init(dibs_client *cl, dibs_error *err);
void dibs__keeper_stop(dibs_client *cl);
void dibs__keeper_fini(dibs_client *cl);

/* A renewal is due: has the renewer send it. Locks: cl->mutex. */
void dibs__renewer_add(dibs_client *cl, dibs_lock *lock);

#endif
