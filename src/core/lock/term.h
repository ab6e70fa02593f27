/* term.h - what an election needs of a lock and programs do not: the exact end of the
 * lease, the end of its renewal, and another priority.
 *
 * Owns nothing. Any thread. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_CORE_LOCK_TERM_H
#define DIBS_CORE_LOCK_TERM_H

#include "base/clock.h"
#include <dibs/lock.h>

/* The end of validity as it is now; 0: not held. Locks: none. */
dibsx_nsec dibs__lock_valid_until(const dibs_lock *lock);

/* Renews the lease no more. A renewal that is on its way may still extend it. The
 * release and the loss go on as before. Locks: none held. */
void dibs__lock_renew_no_more(dibs_lock *lock);

/* The priority of acquires from now on, not of one that is under way. Locks: none
 * held. */
void dibs__lock_set_priority(dibs_lock *lock, int32_t priority);

#endif
