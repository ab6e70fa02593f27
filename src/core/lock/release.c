/* release.c - releases a lease: belief ends first, then the request is sent.
 *
 * Runs on the thread that gives it back. */
/* SPDX-License-Identifier: MIT */
#include "core/lock/release.h"

#include "base/fail.h"
#include "core/lock/fallback.h"
#include "core/lock/handle.h"
#include "core/lock/publish.h"
#include "core/lock/reentry.h"
#include "core/lock/sticky.h"
#include "core/log.h"
#include "core/stats/record.h"
#include "core/stats/shared_events.h"
#include <string.h>

/* A release whose answer was lost is sent again this often. */
enum { RELEASE_TRIES = 3 };

/* Sends the release, again when its answer was lost; "nothing there" after a
 * lost answer means that it had been done. Locks: none held. */
static dibs_status
send_release(dibs__store *st, const dibs__leave *leave, bool sent_before,
             dibsx_nsec deadline, dibs_error *err)
{
    dibs_status rc = DIBS_UNKNOWN;
    bool doubt = false;

    for (int i = 0; i < RELEASE_TRIES; i++) {
        rc = st->ops->lease->release(st, leave, deadline, err);
        if (rc == DIBS_LOST && (sent_before || doubt))
            rc = DIBS_OK;
        if (rc != DIBS_UNKNOWN)
            break;
        doubt = true;
    }
    /* That the last one was not done says nothing of the one before. */
    return doubt && rc != DIBS_OK ? dibsx_unanswered(err) : rc;
}

/* How much longer others must be kept out, for hold_min_ms. */
static int64_t keep_ms(const dibs_lock *lock, dibsx_nsec now)
{
    dibsx_nsec until =
        dibsx_after_ms(lock->lease.held_at, lock->traits->opts.hold_min_ms);

    return lock->traits->opts.hold_min_ms > 0 ? dibsx_wait_ms(until, now) : 0;
}

/* Ends a lease on this side: no handle relies on it any more. True when a
 * request of its owner may still be under way. */
static bool end_belief(dibs_lock *lock, bool valid)
{
    bool unanswered;

    dibs__lock_unlist(lock);
    dibs__record_use_ended(lock, valid);
    /* A guest is in the lease of another, which goes on. */
    if (!lock->entry.via)
        dibs__reentry_end(lock);
    lock->sticky.idle = false;
    unanswered = dibs__lease_leave(&lock->lease);
    dibs__keeper_watch(lock->cl, lock);
    return unanswered;
}

void dibs__lock_forget(dibs_lock *lock)
{
    (void)end_belief(lock, dibs__lease_valid(&lock->lease, dibsx_now()));
}

/* Ends belief. DIBS_OK: `pending` is to be sent to the store, and has a reference
 * on the lock. */
static dibs_status
begin_release(dibs_lock *lock, dibs__pending_release *pending, dibs_error *err)
{
    dibsx_nsec now = dibsx_now();
    bool valid = dibs__lease_valid(&lock->lease, now);
    bool was_held = lock->lease.fence != 0;

    *pending = (dibs__pending_release){.st = lock->st};
    memcpy(pending->owner, lock->lease.owner, sizeof(pending->owner));
    pending->leave =
        (dibs__leave){.name = dibs__fallback_name(lock, pending->owner),
                      .owner = pending->owner,
                      .alone = was_held && lock->lease.alone};
    if (valid)
        pending->leave.keep_ms = keep_ms(lock, now);
    /* An acquire gives up a lease that the program never had, or an idle one. */
    if (!lock->lease.announced && (!lock->acquire || lock->sticky.idle))
        dibs__shared_events_note(lock,
                                 valid ? DIBS_LEASE_RELEASED : DIBS_LEASE_LOST,
                                 lock->lease.fence, lock->lease.held_at);
    pending->leave.unanswered = end_belief(lock, valid);
    /* A lease that ran out here runs out in the store as well: a release is not
     * worth the wait for a store that may be away. */
    if (was_held && !valid)
        return dibsx_fail(err, DIBS_LOST, "the lease on %s had ended",
                          lock->name);
    pending->holder = lock;
    lock->refs++;
    return DIBS_OK;
}

void dibs__release_step(dibs__pending_release *pending, dibs__lease_step *step,
                        dibs_error *err)
{
    *step = (dibs__lease_step){.leaves = true,
                               .leave = pending->leave,
                               .deadline =
                                   dibs__client_deadline(pending->holder->cl,
                                                         dibsx_now()),
                               .err = err};
}

void dibs__release_trace(const dibs__pending_release *pending, dibs_status rc)
{
    dibs__log(pending->holder->cl, DIBS_LOG_TRACE, "released", "%s by %s: %s",
              pending->leave.name, pending->owner, dibs_status_name(rc));
}

void dibs__release_end(dibs__pending_release *pending)
{
    dibs__lock_unref(pending->holder);
    pending->holder = NULL;
}

dibs_status dibs__release_try(dibs__pending_release *pending, int64_t limit_ms,
                              dibs_error *err)
{
    dibs_client *cl = pending->holder->cl;
    dibsx_nsec now = dibsx_now();
    dibsx_nsec deadline = dibs__client_deadline(cl, now);
    dibs_status rc;

    if (limit_ms > 0 && limit_ms < cl->timeout_ms)
        deadline = dibsx_after_ms(now, limit_ms);
    pthread_mutex_unlock(&cl->mutex);
    rc = send_release(pending->st, &pending->leave, pending->sent_before,
                      deadline, err);
    dibs__release_trace(pending, rc);
    pthread_mutex_lock(&cl->mutex);
    return rc;
}

dibs_status dibs__release_send(dibs__pending_release *pending, int64_t limit_ms,
                               dibs_error *err)
{
    dibs_status rc = dibs__release_try(pending, limit_ms, err);

    dibs__release_end(pending);
    return rc;
}

dibs_status
dibs__lock_give_up(dibs_lock *lock, int64_t limit_ms, dibs_error *err)
{
    dibs__pending_release pending;
    dibs_status rc = begin_release(lock, &pending, err);

    return pending.holder ? dibs__release_send(&pending, limit_ms, err) : rc;
}

void dibs__lock_let_go(dibs_lock *lock)
{
    dibs_client *cl = lock->cl;
    dibs_error err = {0};
    dibs_status rc = dibs__lock_give_up(lock, 0, &err);

    if (rc == DIBS_OK || rc == DIBS_LOST)
        return;
    pthread_mutex_unlock(&cl->mutex);
    dibs__log(cl, DIBS_LOG_WARN, "release", "%s: %s", lock->name, err.message);
    pthread_mutex_lock(&cl->mutex);
}

dibs_status dibs__release_begin(dibs_lock *lock, dibs__pending_release *pending,
                                dibs_error *err)
{
    dibs_lock *holder;
    bool last = dibs__reentry_leave(lock, &holder);
    dibsx_nsec now = dibsx_now();
    dibs_status rc = DIBS_OK;

    pending->holder = NULL;
    if (!holder)
        return dibsx_fail(err, DIBS_LOST, "%s is not held", lock->name);
    if (last && !dibs__sticky_begin(holder, now))
        rc = begin_release(holder, pending, err);
    else if (!last && !dibs__lease_valid(&holder->lease, now))
        rc =
            dibsx_fail(err, DIBS_LOST, "the lease on %s had ended", lock->name);
    dibs__lock_unref(holder);
    return rc;
}
