/* sticky_wanted.c - releases idle sticky leases that another client wants; see
 * sticky.h.
 *
 * A worker does it, so that a release without an answer, or many of them in a row,
 * delay no renewal. A lock in a worker's queue has a reference for that. */
/* SPDX-License-Identifier: MIT */
#include "core/lock/handle.h"
#include "core/lock/release.h"
#include "core/lock/sticky.h"

/* The lease may be in use again, or released, by now. Thread: a worker. Locks:
 * cl->mutex, let go meanwhile. */
static void leave_lease(dibs_client *cl, dibs__job *job)
{
    dibs_lock *lock =
        (dibs_lock *)(void *)((char *)job - offsetof(dibs_lock, sticky.leave));

    (void)cl;
    if (lock->sticky.idle)
        dibs__lock_let_go(lock);
    dibs__lock_unref(lock);
}

void dibs__sticky_wanted(dibs_lock *lock)
{
    if (!(lock->opts.flags & DIBS_LOCK_STICKY))
        return;
    lock->sticky.wanted = true;
    if (!lock->sticky.idle || lock->sticky.leave.queued)
        return;
    lock->sticky.leave.run = leave_lease;
    if (dibs__worker_add(lock->cl, &lock->sticky.leave))
        lock->refs++;
}
