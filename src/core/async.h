/* async.h - asynchronous calls: the driver of acquires that cost no thread.
 *
 *                            a step is done
 *     start --> READY ---> RUNNING ----------> SLEEPING
 *                 ^            |                   |
 *                 +------------+<--- alarm, ring --+
 *                              |
 *                              v     callback
 *                            ENDED ------------> NONE
 *
 * Steps that talk to the store are done by a few runners, each started when it is
 * first needed. All steps for one name are done by one runner: releases first,
 * acquires in the order in which they were started, in which they join the queue.
 * Who sleeps costs nothing but a place among the keeper's alarms.
 * Callbacks are run by the runners, or by dibs_async_process() once the program
 * has asked for the descriptor.
 *
 *   (1) A call has its lock's `busy` and a reference on it, from start to NONE.
 *   (2) The callbacks of one lock never run at the same time.
 *   (3) A muted call is never called back; whoever frees the lock does what is
 *       left of it, unless a step is being done.
 *
 * Locks: cl->mutex for everything here but init and fini. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_CORE_ASYNC_H
#define DIBS_CORE_ASYNC_H

#include "core/lock.h"

/* Nothing runs yet. Fini after close, or when nothing was ever started. */
void dibs__async_init(dibs_client *cl);
void dibs__async_fini(dibs_client *cl);

/* Cancels every acquire that is under way, blocking ones as well, waits for them
 * and their callbacks, and ends the runners. The mutex is let go meanwhile. */
void dibs__async_close(dibs_client *cl);

/* Ends what is under way on a lock that is being freed; no callback of it runs
 * afterwards, but the one this is called from. The mutex is let go meanwhile. */
void dibs__async_drop(dibs_lock *lock);

#endif
