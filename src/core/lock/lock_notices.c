/* lock_notices.c - passes notices on to the locks that they are addressed to.
 *
 * A notice is a hint, which the lease machine judges. Thread: the keeper. */
/* SPDX-License-Identifier: MIT */
#include "core/lock/lock_notices.h"

#include "core/lock/acquire.h"
#include "core/lock/callback.h"
#include "core/lock/handle.h"
#include "core/lock/publish.h"
#include "core/lock/sticky.h"

/* Every waiter asks the store again. Locks: cl->mutex. */
static void hear_missed(dibs_client *cl, dibs__notice_handler *handler)
{
    dibs_lock *next;

    (void)handler;
    for (dibs_lock *lock = cl->acquires; lock; lock = next) {
        next = lock->acquire->next;
        if (lock->lease.state == DIBS__LEASE_QUEUED) {
            lock->acquire->machine.nudged = true;
            dibs__lock_acquire_wake(lock);
        }
    }
}

/* The lease may have been granted. Locks: cl->mutex. */
static void hear_grant(dibs_lock *lock, uint64_t fence, dibsx_nsec now)
{
    if (dibs__lease_noticed(&lock->lease, fence, now)) {
        dibs__count(&lock->cl->stats.rings);
        dibs__lock_acquire_wake(lock);
    }
    dibs__keeper_watch(lock->cl, lock);
}

/* A notice about the lease that this client has. Locks: cl->mutex, let go for a
 * callback. */
static void
hear_about_lease(dibs_lock *lock, dibs__notice_kind kind, dibsx_nsec now)
{
    switch (kind) {
    case DIBS__NOTICE_BROKEN:
        dibs__lease_doubt(&lock->lease, now);
        dibs__keeper_watch(lock->cl, lock);
        break;
    case DIBS__NOTICE_WANTED:
        dibs__sticky_wanted(lock);
        break;
    case DIBS__NOTICE_YIELD:
        dibs__sticky_wanted(lock);
        if (!lock->sticky.idle && !lock->acquire) {
            dibs__callback_mark(lock);
            dibs__callback_run(lock, DIBS__CALLBACK_YIELD);
        }
        break;
    case DIBS__NOTICE_GRANTED:
    case DIBS__NOTICE_CHANGED:
    case DIBS__NOTICE_OPENED:
    case DIBS__NOTICE_ITEMS:
    case DIBS__NOTICE_MISSED:
        break;
    }
}

/* Locks: cl->mutex, let go for a callback. */
static void hear_notice(dibs_client *cl, dibs__notice_handler *handler,
                        const dibs__notice *notice)
{
    dibs_lock *lock = dibs__lock_by_owner(cl, notice->owner);
    dibsx_nsec now = dibsx_now();

    (void)handler;
    if (!lock)
        return;
    if (notice->kind == DIBS__NOTICE_GRANTED)
        hear_grant(lock, notice->fence, now);
    else if (lock->lease.fence == notice->fence)
        hear_about_lease(lock, notice->kind, now);
}

void dibs__lock_notices_init(dibs_client *cl)
{
    cl->lock_notices.hear = hear_notice;
    cl->lock_notices.hear_missed = hear_missed;
    dibs__notices_register(cl, &cl->lock_notices);
}
