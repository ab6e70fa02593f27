/* lock_notices.c - passes notices on to the locks that they are addressed to.
 *
 * A notice is a hint, which the lease machine judges. Thread: the keeper; grants come on
 * the thread of the store that listens, where there is one. */
/* SPDX-License-Identifier: MIT */
#include "core/lock/lock_notices.h"

#include "core/lock/acquire.h"
#include "core/lock/callback.h"
#include "core/lock/handle.h"
#include "core/lock/publish.h"
#include "core/lock/sticky.h"

/* Every waiter asks the store again, and after its answer one that is asking: the answer
 * may be older than what was lost. Locks: cl->mutex. */
static void hear_missed(dibs_client *cl, dibs__notice_handler *handler)
{
    dibs_lock *next;

    (void)handler;
    for (dibs_lock *lock = cl->acquires; lock; lock = next) {
        next = lock->acquire->next;
        if (lock->lease.state == DIBS__LEASE_QUEUED ||
            lock->lease.state == DIBS__LEASE_ASKING)
            lock->acquire->machine.nudged = true;
        if (lock->lease.state == DIBS__LEASE_QUEUED)
            dibs__lock_acquire_wake(lock);
    }
}

/* The lease may have been granted. Returns the sleeper to wake. Locks: cl->mutex. */
static dibsx_park *hear_grant(dibs_lock *lock, uint64_t fence, dibsx_nsec now)
{
    dibsx_park *sleeper = NULL;

    if (dibs__lease_noticed(&lock->lease, fence, now)) {
        dibs__count(&lock->cl->stats.rings);
        sleeper = dibs__lock_acquire_rouse(lock);
    }
    dibs__keeper_watch(lock->cl, lock);
    return sleeper;
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
    case DIBS__NOTICE_SAID:
    case DIBS__NOTICE_MISSED:
        break;
    }
}

/* Locks: cl->mutex, let go for a callback. */
static void hear_notice(dibs_client *cl, dibs__notice_handler *handler,
                        const dibs__notice *notice)
{
    dibs_lock *lock = dibs__lock_by_owner(cl, notice->owner);
    dibsx_park *sleeper = NULL;
    dibsx_nsec now = dibsx_now();

    (void)handler;
    if (!lock)
        return;
    if (notice->kind == DIBS__NOTICE_GRANTED)
        sleeper = hear_grant(lock, notice->fence, now);
    else if (lock->lease.fence == notice->fence)
        hear_about_lease(lock, notice->kind, now);
    if (sleeper)
        dibsx_park_wake(sleeper);
}

/* Locks: cl->mutex. */
static bool hear_at_once(dibs_client *cl, dibs__notice_handler *handler,
                         const dibs__notice *notice, dibsx_park **sleeper)
{
    dibs_lock *lock = dibs__lock_by_owner(cl, notice->owner);

    (void)handler;
    if (lock)
        *sleeper = hear_grant(lock, notice->fence, dibsx_now());
    return lock != NULL;
}

void dibs__lock_notices_init(dibs_client *cl)
{
    cl->lock_notices.hear = hear_notice;
    cl->lock_notices.hear_at_once = hear_at_once;
    cl->lock_notices.hear_missed = hear_missed;
    dibs__notices_register(cl, &cl->lock_notices);
}
