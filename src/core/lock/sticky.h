/* sticky.h - sticky leases: kept after release while no other client asks.
 *
 *              release, no waiter
 *     in use ----------------------> idle
 *        ^     acquire, no round trip  |
 *        '-----------------------------+
 *                                      | another client asks: a notice, or the
 *                                      v answer to a renewal, says so
 *                                   released by a worker
 *
 *  1. An idle lease is renewed like any other, and shown as free.
 *  2. Once another client asks (`wanted`), the lease never becomes idle again: in
 *     use, it is released by the program; idle, it is released at once.
 *  3. An idle lease that is lost ends silently: the program did not rely on it.
 *
 * Owns nothing but the marks in the lock. Any thread. Locks: cl->mutex for
 * everything here. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_CORE_LOCK_STICKY_H
#define DIBS_CORE_LOCK_STICKY_H

#include "core/lock/lock.h"

/* Instead of a release: true when the lease is idle now. */
bool dibs__sticky_begin(dibs_lock *lock, dibsx_nsec now);

/* Instead of an ask: true when the idle lease is in use again. */
bool dibs__sticky_reuse(dibs_lock *lock, dibsx_nsec now);

/* Another client asks for the name. A worker releases an idle lease. If memory is short or
 * no worker can be started, the next answer to a renewal tries again. */
void dibs__sticky_wanted(dibs_lock *lock);

#endif
