/* sticky.c - sticky leases; see sticky.h. Any thread. */
/* SPDX-License-Identifier: MIT */
#include "core/lock/sticky.h"

#include "core/lock/publish.h"
#include "core/stats/record.h"

bool dibs__sticky_begin(dibs_lock *lock, dibsx_nsec now)
{
    if (!(lock->traits->opts.flags & DIBS_LOCK_STICKY) || lock->sticky.wanted ||
        lock->freed || lock->mode != lock->traits->opts.mode ||
        lock->st != lock->cl->st || lock->lease.state != DIBS__LEASE_HELD ||
        !dibs__lease_valid(&lock->lease, now))
        return false;
    dibs__record_use_ended(lock, true);
    lock->sticky.idle = true;
    dibs__keeper_publish(lock);
    return true;
}

bool dibs__sticky_reuse(dibs_lock *lock, dibsx_nsec now)
{
    if (!lock->sticky.idle || lock->sticky.wanted ||
        !dibs__lease_valid(&lock->lease, now))
        return false;
    lock->sticky.idle = false;
    lock->lease.held_at = now;
    dibs__count(&lock->cl->stats.held);
    dibs__keeper_publish(lock);
    return true;
}
