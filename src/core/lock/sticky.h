/* sticky.h - sticky leases: kept after release while nobody else asks.
 *
 *              release, nobody waits
 *     in use ----------------------> resting
 *        ^     acquire, no round trip    |
 *        '-------------------------------+
 *                                        | somebody asks: the doorbell rings, or
 *                                        v the answer to a renewal says so
 *                                     given up by a worker
 *
 *  1. A resting lease is renewed like any other, and shown as free.
 *  2. Once somebody asks (`wanted`), the lease never rests again: in use, it goes
 *     back with the release; at rest, at once.
 *  3. A resting lease that is lost ends silently: nobody relied on it.
 *
 * Owns nothing but the marks in the lock. Any thread. Locks: cl->mutex for
 * everything here. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_CORE_LOCK_STICKY_H
#define DIBS_CORE_LOCK_STICKY_H

#include "core/lock/lock.h"

/* In place of giving the lease back: true when it rests now. */
bool dibs__sticky_begin(dibs_lock *lock, dibsx_nsec now);

/* In place of asking the store: true when the resting lease is in use again. */
bool dibs__sticky_reuse(dibs_lock *lock, dibsx_nsec now);

/* Somebody else asks for the name. A lease at rest is given up, by a worker; without
 * one it is tried again with the next such news: each answer to a renewal brings
 * some. */
void dibs__sticky_wanted(dibs_lock *lock);

#endif
