/* acquire_all.h - several leases acquired in one step of the store.
 *
 * Owns the question while it is under way. Runs on the thread that calls. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_CORE_LOCK_ACQUIRE_ALL_H
#define DIBS_CORE_LOCK_ACQUIRE_ALL_H

#include "core/lock/lock.h"

/* Acquires the lease of every lock, each exclusively, or of none. The locks are of
 * one client and for different names, at most DIBS__ALL_MAX; their calls are the
 * caller's to keep apart. Asks once, and once more when the answer was lost.
 *   DIBS_OK           all are held
 *   DIBS_BUSY, DIBS_MISMATCH   *blocked was in the way
 *   DIBS_TIMEOUT      granted, and one ran out before all were granted
 *   DIBS_UNSUPPORTED  not by this store, or not these names
 *   else as dibs_lock_try()
 * Locks: cl->mutex, let go for the step. */
DIBS_MUST_CHECK dibs_status dibs__acquire_all_try(dibs_lock *const *locks,
                                                  size_t count,
                                                  dibsx_nsec until,
                                                  size_t *blocked,
                                                  dibs_error *err);

/* Counts an acquire that ended so, after this time. Locks: cl->mutex. */
void dibs__acquire_all_count(dibs_lock *lock, dibs_status rc,
                             dibsx_nsec waited);

#endif
