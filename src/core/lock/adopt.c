/* adopt.c - a handle takes over a lease that another process has left; see adopt.h.
 *
 * The calling thread asks the store. */
/* SPDX-License-Identifier: MIT */
#include "core/lock/adopt.h"

#include "base/fail.h"
#include "base/uncancel.h"
#include "core/lock/handle.h"
#include "core/lock/publish.h"
#include "core/lock/reentry.h"
#include "core/lock/renew_now.h"
#include "core/reach.h"
#include "core/stats/shared_events.h"
#include <assert.h>
#include <string.h>

/* The answer to a renewal does not say whether the lease is a reader's or a
 * writer's. Locks: cl->mutex. */
static void doubt_mode(dibs_lock *lock)
{
    lock->doubt = DIBS__ADOPTED;
    if (lock->mode == DIBS_EXCLUSIVE)
        lock->mode = DIBS_SHARED;
}

dibs_status dibs__adopt_prepare(dibs_lock *lock, dibs_error *err)
{
    dibs_status rc;

    if (lock->lease.state != DIBS__LEASE_FREE || lock->entry.via)
        return dibsx_fail(err, DIBS_INVALID, "this handle is in use for %s",
                          lock->name);
    rc = dibs__timer_ready(lock->cl, err);
    if (rc == DIBS_OK)
        dibs__lock_use_store(lock, lock->cl->st, DIBS_FALLBACK_NONE);
    return rc;
}

dibs_status dibs__adopt_hold(dibs_lock *lock, const dibs__adopted *ad,
                             bool sure, dibs_error *err)
{
    dibsx_nsec now = dibsx_now();

    dibs__lock_begin(lock, ad->owner);
    if (!sure)
        doubt_mode(lock);
    dibs__lease_adopted(&lock->lease, ad->owner, ad->fence, ad->sent_at,
                        ad->left_ms, now);
    if (!dibs__lease_valid(&lock->lease, now)) {
        dibs__lock_unlist(lock);
        (void)dibs__lease_leave(&lock->lease);
        return dibsx_fail(err, DIBS_LOST,
                          "the lease on %s was over when the store answered",
                          lock->name);
    }
    dibs__reentry_name(lock);
    dibs__reentry_acquired(lock);
    dibs__keeper_watch(lock->cl, lock);
    dibs__count(&lock->cl->stats.held);
    dibs__shared_events_note(lock, DIBS_LEASE_ACQUIRED, lock->lease.fence, now);
    return DIBS_OK;
}

/* Locks: cl->mutex, let go for the step. */
static dibs_status
adopt_lease(dibs_lock *lock, const char *owner, uint64_t fence, dibs_error *err)
{
    const dibs_lock_opts *opts = &lock->traits->opts;
    dibsx_nsec sent_at = dibsx_now();
    dibs__renewal item = {.name = lock->name,
                          .owner = owner,
                          .fence = fence,
                          .ttl_ms = opts->ttl_ms + opts->lock_delay_ms,
                          .replicas = lock->traits->replicas};
    dibs_status rc = dibs__adopt_prepare(lock, err);

    if (rc == DIBS_OK)
        rc = dibs__renew_one(lock, &item, sent_at, err);
    if (rc != DIBS_OK)
        return rc;
    return dibs__adopt_hold(lock,
                            &(dibs__adopted){owner, fence, sent_at,
                                             item.left_ms},
                            false, err);
}

bool dibs__owner_ok(const char *owner)
{
    return owner && strlen(owner) == DIBS_OWNER_SIZE - 1 &&
           strspn(owner, "0123456789abcdef") == DIBS_OWNER_SIZE - 1;
}

dibs_status dibs__adopt_enter(dibs_lock *lock, dibs_error *err)
{
    dibs_status rc = dibs__lock_enter(lock, err);

    if (rc != DIBS_OK)
        return rc;
    assert(lock);
    pthread_mutex_unlock(&lock->cl->mutex);
    rc = dibs__reach_usable(lock->cl, err);
    if (rc == DIBS_OK && lock->traits->hears)
        dibs__notices_listen(lock->cl, lock->cl->st,
                             dibs__client_deadline(lock->cl, dibsx_now()));
    pthread_mutex_lock(&lock->cl->mutex);
    if (rc != DIBS_OK)
        dibs__lock_exit(lock);
    return rc;
}

dibs_status dibs_lock_adopt(dibs_lock *lock, const char *owner, uint64_t fence,
                            dibs_error *err)
{
    DIBSX_UNCANCEL;
    dibs_status rc;

    if (!dibs__owner_ok(owner) || fence == 0)
        return dibsx_fail(err, DIBS_INVALID,
                          "the owner must be 32 hexadecimal digits and the "
                          "fence not 0");
    rc = dibs__adopt_enter(lock, err);
    if (rc != DIBS_OK)
        return rc;
    rc = adopt_lease(lock, owner, fence, err);
    dibs__lock_exit(lock);
    return rc;
}
