/* fallback.h - the store that is used while the configured one is out of reach.
 *
 * With DIBS_AWAY_LOCAL it is an embedded store that the processes of this machine
 * share. With DIBS_AWAY_OPEN it is a store of this client alone, asked for a name of
 * its own each time, so that it always grants and the other parts of the core need
 * not know.
 *
 * Owns nothing: the fallback store is the client's, and closed with it. Runs on the
 * thread that acquires. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_CORE_LOCK_FALLBACK_H
#define DIBS_CORE_LOCK_FALLBACK_H

#include "core/lock/lock.h"

/* Opens the fallback store if it is not open, and has the lock use it. `why` is
 * the error of the configured store. Locks: cl->mutex, let go while opening. */
DIBS_MUST_CHECK dibs_status dibs__fallback_use(dibs_lock *lock,
                                               const dibs_error *why,
                                               dibs_error *err);

/* The name of the current lease in the lock's store, for a request that may be under
 * way when the handle has the next lease: `owner` is a copy of the lease's owner and
 * lives as long as the request. */
static inline const char *
dibs__fallback_name(const dibs_lock *lock, const char *owner)
{
    return atomic_load(&lock->shown.fallback) == DIBS_FALLBACK_OPEN
               ? owner
               : lock->name;
}

#endif
