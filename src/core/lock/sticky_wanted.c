/* sticky_wanted.c - releases idle sticky leases that another client wants; see
 * sticky.h.
 *
 * A worker does it, so that a release without an answer, or many of them in a row,
 * delay no renewal. Owns the jobs; the lock of one has a reference for that. */
/* SPDX-License-Identifier: MIT */
#include "base/alloc.h"
#include "core/lock/handle.h"
#include "core/lock/release.h"
#include "core/lock/sticky.h"
#include "core/worker.h"

typedef struct leave_job {
    dibs__job job; /* first, so that one is the other */
    dibs_lock *lock;
} leave_job;

/* The lease may be in use again, or released, by now. Thread: a worker. Locks:
 * cl->mutex, let go meanwhile. */
static void leave_lease(dibs_client *cl, dibs__job *job)
{
    dibs_lock *lock = ((leave_job *)(void *)job)->lock;

    (void)cl;
    dibsx_free(job);
    lock->sticky.leaving = false;
    if (lock->sticky.idle)
        dibs__lock_let_go(lock);
    dibs__lock_unref(lock);
}

void dibs__sticky_wanted(dibs_lock *lock)
{
    leave_job *leave;

    if (!(lock->traits->opts.flags & DIBS_LOCK_STICKY))
        return;
    lock->sticky.wanted = true;
    if (!lock->sticky.idle || lock->sticky.leaving)
        return;
    leave = dibsx_zalloc(sizeof(*leave));
    if (!leave)
        return;
    leave->job.run = leave_lease;
    leave->lock = lock;
    if (!dibs__worker_add(lock->cl, &leave->job)) {
        dibsx_free(leave);
        return;
    }
    lock->sticky.leaving = true;
    lock->refs++;
}
