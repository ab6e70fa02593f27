/* renew_now.c - renewing by hand.
 *
 * The calling thread does the asking; automatic renewal is the renewer's. */
/* SPDX-License-Identifier: MIT */
#include "core/lock/renew_now.h"

#include "base/fail.h"
#include "base/uncancel.h"
#include "core/lock/fallback.h"
#include "core/lock/handle.h"
#include "core/lock/lock_opts.h"
#include "core/lock/publish.h"
#include "core/lock/reentry.h"
#include "core/stats/slack.h"
#include <string.h>

dibs_status dibs__renew_one(dibs_lock *lock, dibs__renewal *item,
                            dibsx_nsec sent_at, dibs_error *err)
{
    dibs_client *cl = lock->cl;
    dibs__store *st = lock->st;
    dibs_status rc;

    pthread_mutex_unlock(&cl->mutex);
    rc = st->ops->lease->renew(st, item, 1, dibs__client_deadline(cl, sent_at),
                               err);
    pthread_mutex_lock(&cl->mutex);
    if (rc == DIBS_OK && item->rc == DIBS_LOST)
        return dibsx_fail(err, DIBS_LOST, "the lease on %s is gone",
                          lock->name);
    if (rc == DIBS_OK && item->rc != DIBS_OK)
        return dibsx_fail(err, item->rc,
                          "the renewal of %s did not reach %u replicas",
                          lock->name, (unsigned)item->replicas);
    return rc;
}

/* The lock still has the lease of this owner. */
static bool has_still(const dibs_lock *lock, const char *owner)
{
    return memcmp(lock->lease.owner, owner, DIBS_OWNER_SIZE) == 0 &&
           dibs__lease_valid(&lock->lease, dibsx_now());
}

/* A renewal that is sent during a conversion carries the old fence. A guest
 * must wait too, as the conversion is a call on another handle. Locks:
 * cl->mutex, let go meanwhile. */
static void wait_for_conversion(dibs_lock *lock, const char *owner)
{
    while (has_still(lock, owner) && lock->lease.converting)
        pthread_cond_wait(&lock->cl->over, &lock->cl->mutex);
}

/* Applies an answer if the lock still has the lease that it is for. Locks:
 * cl->mutex. */
static dibs_status
apply_renewal(dibs_lock *lock, const dibs__renewal *item, dibsx_nsec sent_at,
              dibs_status rc, dibs_error *err)
{
    if (memcmp(lock->lease.owner, item->owner, DIBS_OWNER_SIZE) == 0) {
        if (rc == DIBS_OK)
            dibs__slack_count(&lock->cl->stats, &lock->lease, dibsx_now());
        dibs__lease_renewed(&lock->lease, sent_at, rc, item->left_ms,
                            dibsx_now());
        dibs__keeper_watch(lock->cl, lock);
        pthread_cond_broadcast(&lock->cl->over);
    }
    if (rc != DIBS_LOST && !has_still(lock, item->owner))
        rc = dibsx_fail(err, DIBS_LOST, "the lease on %s ended meanwhile",
                        lock->name);
    return rc;
}

/* Locks: cl->mutex, let go meanwhile. */
static dibs_status renew_held(dibs_lock *lock, dibs_error *err)
{
    dibs__lease *ls = &lock->lease;
    dibsx_nsec sent_at;
    char owner[DIBS_OWNER_SIZE];
    dibs__renewal item = {.owner = owner,
                          .replicas = dibs__lock_replicas(lock)};
    dibs_status rc;

    memcpy(owner, ls->owner, sizeof(owner));
    wait_for_conversion(lock, owner);
    if (!has_still(lock, owner))
        return dibsx_fail(err, DIBS_LOST, "%s is not held", lock->name);
    sent_at = dibsx_now();
    item.name = dibs__fallback_name(lock, owner);
    item.fence = ls->fence;
    item.ttl_ms = dibs__lease_renew_ms(ls, sent_at);
    dibs__lease_renewing(ls);
    rc = dibs__renew_one(lock, &item, sent_at, err);
    return apply_renewal(lock, &item, sent_at, rc, err);
}

dibs_status dibs_lock_renew(dibs_lock *lock, dibs_error *err)
{
    DIBSX_UNCANCEL;
    dibs_lock *at;
    dibs_status rc = dibs__lock_enter(lock, err);

    if (rc != DIBS_OK)
        return rc;
    at = lock->entry.via ? lock->entry.via : lock;
    at->refs++; /* Its own handle may be freed meanwhile. */
    if (lock->entry.depth == 0)
        rc = dibsx_fail(err, DIBS_LOST, "%s is not held", lock->name);
    else
        rc = renew_held(at, err);
    dibs__lock_unref(at);
    dibs__count(rc == DIBS_OK ? &lock->cl->stats.renewed
                              : &lock->cl->stats.renewals_failed);
    dibs__lock_exit(lock);
    return rc;
}
