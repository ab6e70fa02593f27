/* callback.h - calls the program back about a lease: on_lost, on_yield.
 *
 * Owns the marks of the handles that are to be called. Thread: the keeper.
 *
 * Locks: cl->mutex for everything here. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_CORE_LOCK_CALLBACK_H
#define DIBS_CORE_LOCK_CALLBACK_H

#include "core/lock/lock.h"

typedef enum dibs__callback {
    DIBS__CALLBACK_LOST,
    DIBS__CALLBACK_YIELD
} dibs__callback;

/* Marks every handle that is in the lease: the lock itself and its guests. A
 * handle that leaves the lease before its call is not called. */
void dibs__callback_mark(dibs_lock *lock);

/* Calls the program for each handle that is marked. The mutex is let go
 * meanwhile. */
void dibs__callback_run(dibs_lock *lock, dibs__callback about);

#endif
