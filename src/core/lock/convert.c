/* convert.c - a held lease becomes a reader's or a writer's.
 *
 * The calling thread asks the store. A conversion is idempotent by owner and fence, so
 * the thread sends one again if its answer was lost.
 *
 * While the client does not know which right the store has, it relies on the lesser
 * one: for an adopted lease, from before a downgrade is sent, and until an upgrade is
 * answered. A downgrade without an answer may still arrive; the store knows it by its
 * fence, which an upgrade of a lease that is still exclusive there would keep. So the
 * client first repeats the downgrade until it is answered. Then the lease is shared
 * for certain, and the upgrade gives it a new fence, under which the late downgrade
 * finds nothing. */
/* SPDX-License-Identifier: MIT */
#include "core/lock/convert.h"

#include "base/fail.h"
#include "base/uncancel.h"
#include "core/lock/fallback.h"
#include "core/lock/handle.h"
#include "core/lock/publish.h"
#include "core/log.h"
#include "core/stats/shared_events.h"
#include <string.h>

enum { CONVERSION_TRIES = 3 };

/* If a later try gets no answer, the first try has none either. */
dibs_status
dibs__convert_send(dibs_lock *lock, dibs__conversion *conversion,
                   dibsx_nsec deadline, dibs__answer *ans, dibs_error *err)
{
    dibs_client *cl = lock->cl;
    dibs__store *st = lock->st;
    dibs_status rc = DIBS_UNKNOWN;

    pthread_mutex_unlock(&cl->mutex);
    for (int i = 0; i < CONVERSION_TRIES && rc == DIBS_UNKNOWN; i++) {
        rc = st->ops->lease->convert(st, conversion, deadline, ans, err);
        if (i > 0 && rc != DIBS_OK && rc != DIBS_BUSY && rc != DIBS_LOST)
            rc = dibsx_unanswered(err);
    }
    dibs__log(cl, DIBS_LOG_TRACE, "converted", "%s by %s: %s", conversion->name,
              conversion->owner, dibs_status_name(rc));
    pthread_mutex_lock(&cl->mutex);
    return rc;
}

/* An acquire that has had no release yet asked for a writer's lease, beside the
 * one that this handle would now convert. */
static bool writer_inside(const dibs_lock *lock)
{
    const dibs_lock *guest = lock->entry.guests;

    while (guest && guest->traits->opts.mode != DIBS_EXCLUSIVE)
        guest = guest->entry.next_guest;
    return guest ||
           (lock->entry.depth > 1 && lock->traits->opts.mode == DIBS_EXCLUSIVE);
}

/* A renewal under way carries the fence of before, and its answer would be taken
 * for a loss. Locks: cl->mutex, let go while waiting. */
static dibs_status
may_convert(dibs_lock *lock, dibs_lock_mode mode, dibs_error *err)
{
    while (dibs__lease_valid(&lock->lease, dibsx_now())) {
        if (mode == DIBS_SHARED && writer_inside(lock))
            return dibsx_fail(err, DIBS_INVALID,
                              "%s was entered more than once as a writer; "
                              "release to depth 1 first",
                              lock->name);
        if (dibs__lease_converting(&lock->lease))
            return DIBS_OK;
        pthread_cond_wait(&lock->cl->over, &lock->cl->mutex);
    }
    return dibsx_fail(err, DIBS_LOST, "%s is not held", lock->name);
}

/* The mode that the client relies on after an answer to a conversion from `was`. */
static void settle_mode(dibs_lock *lock, dibs_lock_mode was,
                        dibs_lock_mode mode, dibs_status rc)
{
    if (rc == DIBS_OK) {
        lock->mode = mode;
        lock->doubt = DIBS__SURE;
    } else if (rc != DIBS_UNKNOWN) {
        lock->mode = was;
    } else if (mode == DIBS_SHARED) {
        lock->doubt = DIBS__LOWERING;
    }
}

/* Locks: cl->mutex, let go meanwhile. */
static dibs_status
convert_to(dibs_lock *lock, dibs_lock_mode mode, dibs_error *err)
{
    dibs__lease *ls = &lock->lease;
    char owner[DIBS_OWNER_SIZE];
    dibs__conversion conversion = {.owner = owner,
                                   .to_owner = owner,
                                   .mode = (dibs__mode)mode,
                                   .replicas = dibs__lock_replicas(lock)};
    dibs__answer ans = {0};
    dibs_lock_mode was = lock->mode;
    dibsx_nsec sent_at;
    dibs_status rc = may_convert(lock, mode, err);

    if (rc != DIBS_OK)
        return rc;
    sent_at = dibsx_now();
    memcpy(owner, ls->owner, sizeof(owner));
    conversion.name = dibs__fallback_name(lock, owner);
    conversion.fence = ls->fence;
    conversion.ttl_ms = dibs__lease_renew_ms(ls, sent_at);
    lock->mode = DIBS_SHARED;
    rc =
        dibs__convert_send(lock, &conversion,
                           dibs__client_deadline(lock->cl, sent_at), &ans, err);
    settle_mode(lock, was, mode, rc);
    dibs__lease_converted(ls, sent_at, rc, &ans, dibsx_now());
    pthread_cond_broadcast(&lock->cl->over);
    dibs__keeper_watch(lock->cl, lock);
    if (rc == DIBS_OK && ls->fence != conversion.fence) {
        dibs__shared_events_note(lock, DIBS_LEASE_RELEASED, conversion.fence,
                                 ls->held_at);
        dibs__shared_events_note(lock, DIBS_LEASE_ACQUIRED, ls->fence, sent_at);
    }
    if (rc == DIBS_OK && !dibs__lease_valid(ls, dibsx_now()))
        rc = dibsx_fail(err, DIBS_LOST, "the lease on %s ended meanwhile",
                        lock->name);
    return rc;
}

/* Asks the store. Locks: cl->mutex, let go meanwhile. */
static dibs_status
convert_held(dibs_lock *lock, dibs_lock_mode mode, dibs_error *err)
{
    dibs_status rc = DIBS_OK;

    if (lock->doubt == DIBS__LOWERING && mode == DIBS_EXCLUSIVE)
        rc = convert_to(lock, DIBS_SHARED, err);
    return rc == DIBS_OK ? convert_to(lock, mode, err) : rc;
}

/* One call on the handle that has the lease. */
static dibs_status
convert_call(dibs_lock *lock, dibs_lock_mode mode, dibs_error *err)
{
    dibs_status rc = dibs__lock_enter(lock, err);

    if (rc != DIBS_OK)
        return rc;
    if (lock->entry.depth == 0)
        rc = dibsx_fail(err, DIBS_LOST, "%s is not held", lock->name);
    else if (lock->entry.via)
        rc = dibsx_fail(
            err, DIBS_INVALID,
            "%s was entered through another handle: convert that one",
            lock->name);
    else if (lock->mode == DIBS_PERMITS)
        rc = dibsx_fail(err, DIBS_INVALID,
                        "%s is a semaphore: it has neither readers nor writers",
                        lock->name);
    else if (lock->mode == mode && lock->doubt == DIBS__SURE)
        rc = dibs__lease_valid(&lock->lease, dibsx_now())
                 ? DIBS_OK
                 : dibsx_fail(err, DIBS_LOST, "the lease on %s had ended",
                              lock->name);
    else
        rc = convert_held(lock, mode, err);
    dibs__lock_exit(lock);
    return rc;
}

dibs_status dibs_lock_upgrade(dibs_lock *lock, dibs_error *err)
{
    DIBSX_UNCANCEL;

    return convert_call(lock, DIBS_EXCLUSIVE, err);
}

dibs_status dibs_lock_downgrade(dibs_lock *lock, dibs_error *err)
{
    DIBSX_UNCANCEL;

    return convert_call(lock, DIBS_SHARED, err);
}
