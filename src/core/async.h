/* async.h - asynchronous calls of locks: the driver of acquires that cost no thread.
 *
 *                            a step is done
 *     start --> READY ---> RUNNING ----------> SLEEPING
 *                 ^            |                   |
 *                 +------------+<--- alarm, wake --+
 *                              |
 *                              v     callback
 *                            ENDED ------------> freed
 *
 * Steps that talk to the store and callbacks are run by the runners. All steps for one
 * name are done by one runner: releases first, acquires in the order in which they were
 * started, in which they join the queue. Where the store does several steps together,
 * one runner does all that it can, and takes what is ready as one group (call_group.h);
 * locks with replicas are on the others, without an order between the two. A sleeping call costs one timer of the keeper
 * and no thread.
 *
 * A release without a callback is no call but a parting (lock/parting.h), which joins
 * groups too.
 *
 * Owns the calls: a handle has one only while it is under way.
 *
 *   (1) A call has its lock's `busy` and a reference on it, from start to end.
 *   (2) The callbacks of one lock never run at the same time.
 *   (3) A muted call is never called back. The thread that frees the lock completes
 *       the call, or waits for the step that is under way.
 *
 * Locks: cl->mutex for everything here. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_CORE_ASYNC_H
#define DIBS_CORE_ASYNC_H

#include "core/lock/lock.h"
#include "core/lock/release.h"
#include "core/runner.h"
#include "core/timer.h"
#include <dibs/async.h>
#include <pthread.h>

typedef enum dibs__call_state {
    DIBS__CALL_READY,    /* in its runner's list: there is a step to do */
    DIBS__CALL_RUNNING,  /* a thread is doing it */
    DIBS__CALL_SLEEPING, /* until the alarm, or until something happens */
    DIBS__CALL_ENDED     /* its callback is to be run */
} dibs__call_state;

typedef enum dibs__call_kind {
    DIBS__CALL_ACQUIRE,
    DIBS__CALL_RELEASE,
    DIBS__CALL_ANSWERED /* either, its status known */
} dibs__call_kind;

/* The call of one lock; there is one at a time. */
typedef struct dibs__call {
    dibs__call_node node; /* first: in the list of its state */
    dibs_lock *lock;
    dibs__call_state state;
    dibs__call_kind kind;
    dibs_async_fn *done;
    void *arg;
    dibs_status rc;                /* ANSWERED */
    dibs__pending_release release; /* RELEASE */
    bool
        alone; /* RELEASE: to be sent by itself, as its first answer was lost */
    dibs__runner *runner;
    dibs__timer alarm;          /* SLEEPING */
    dibs__lock_acquire acquire; /* ACQUIRE */
    dibs_error why;
} dibs__call;

/* Ends what is under way on a lock that is being freed; no callback of it runs
 * afterwards, except the one this is called from. The mutex is let go meanwhile. */
void dibs__async_drop(dibs_lock *lock);

#endif
