/* convert.c - a held lease becomes a reader's or a writer's.
 *
 * The calling thread does the asking. A turn is idempotent by owner and fence, so
 * one whose answer was lost is sent again.
 *
 * Of two rights the lesser is believed while it is not known which the store has:
 * of what was adopted, from before a downgrade is sent, and until an upgrade is
 * answered. A downgrade without an answer may yet arrive, and it is known by its
 * fence, which an upgrade of what the store still has as exclusive would keep. So
 * that one is sent again first, until it is answered: what is then shared for
 * certain gets a new fence with the upgrade, under which the late one finds
 * nothing. */
/* SPDX-License-Identifier: MIT */
#include "core/lock/convert.h"

#include "base/fail.h"
#include "base/uncancel.h"
#include "core/lock/fallback.h"
#include "core/lock/handle.h"
#include "core/lock/publish.h"
#include "core/log.h"
#include <string.h>

enum { TURN_TRIES = 3 };

/* Whatever keeps a later try from an answer leaves the first without one. */
dibs_status
dibs__convert_send(dibs_lock *lock, dibs__conversion *turn, dibsx_nsec deadline,
                   dibs__answer *ans, dibs_error *err)
{
    dibs_client *cl = lock->cl;
    dibs__store *st = lock->st;
    dibs_status rc = DIBS_UNKNOWN;

    pthread_mutex_unlock(&cl->mutex);
    for (int i = 0; i < TURN_TRIES && rc == DIBS_UNKNOWN; i++) {
        rc = st->ops->lease->convert(st, turn, deadline, ans, err);
        if (i > 0 && rc != DIBS_OK && rc != DIBS_BUSY && rc != DIBS_LOST)
            rc = dibsx_unanswered(err);
    }
    dibs__log(cl, DIBS_LOG_TRACE, "turned", "%s by %s: %s", turn->name,
              turn->owner, dibs_status_name(rc));
    pthread_mutex_lock(&cl->mutex);
    return rc;
}

/* An acquire that has had no release yet asked for a writer's lease, beside the
 * one that this handle would now turn. */
static bool writer_inside(const dibs_lock *lock)
{
    const dibs_lock *guest = lock->entry.guests;

    while (guest && guest->opts.mode != DIBS_EXCLUSIVE)
        guest = guest->entry.next_guest;
    return guest ||
           (lock->entry.depth > 1 && lock->opts.mode == DIBS_EXCLUSIVE);
}

/* A renewal under way carries the fence of before, and its answer would be taken
 * for a loss. Locks: cl->mutex, let go while waiting. */
static dibs_status
may_turn(dibs_lock *lock, dibs_lock_mode mode, dibs_error *err)
{
    while (dibs__lease_valid(&lock->lease, dibsx_now())) {
        if (mode == DIBS_SHARED && writer_inside(lock))
            return dibsx_fail(err, DIBS_INVALID,
                              "%s was entered more than once as a writer; "
                              "release to depth 1 first",
                              lock->name);
        if (dibs__lease_converting(&lock->lease))
            return DIBS_OK;
        pthread_cond_wait(&lock->cond, &lock->cl->mutex);
    }
    return dibsx_fail(err, DIBS_LOST, "%s is not held", lock->name);
}

/* What is believed after an answer to a turn from `was`. */
static void
settle(dibs_lock *lock, dibs_lock_mode was, dibs_lock_mode mode, dibs_status rc)
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
turn_to(dibs_lock *lock, dibs_lock_mode mode, dibs_error *err)
{
    dibs__lease *ls = &lock->lease;
    char owner[DIBS_OWNER_SIZE];
    dibs__conversion turn = {.owner = owner,
                             .to_owner = owner,
                             .mode = (dibs__mode)mode,
                             .replicas = dibs__fallback_replicas(lock)};
    dibs__answer ans = {0};
    dibs_lock_mode was = lock->mode;
    dibsx_nsec sent_at;
    dibs_status rc = may_turn(lock, mode, err);

    if (rc != DIBS_OK)
        return rc;
    sent_at = dibsx_now();
    memcpy(owner, ls->owner, sizeof(owner));
    turn.name = dibs__fallback_name(lock, owner);
    turn.fence = ls->fence;
    turn.ttl_ms = dibs__lease_renew_ms(ls, sent_at);
    lock->mode = DIBS_SHARED;
    rc =
        dibs__convert_send(lock, &turn,
                           dibs__client_deadline(lock->cl, sent_at), &ans, err);
    settle(lock, was, mode, rc);
    dibs__lease_converted(ls, sent_at, rc, &ans, dibsx_now());
    pthread_cond_broadcast(&lock->cond);
    dibs__keeper_watch(lock->cl, lock);
    if (rc == DIBS_OK && !dibs__lease_valid(ls, dibsx_now()))
        rc = dibsx_fail(err, DIBS_LOST, "the lease on %s ended meanwhile",
                        lock->name);
    return rc;
}

/* Asks the store. Locks: cl->mutex, let go meanwhile. */
static dibs_status
turn_held(dibs_lock *lock, dibs_lock_mode mode, dibs_error *err)
{
    dibs_status rc = DIBS_OK;

    if (lock->doubt == DIBS__LOWERING && mode == DIBS_EXCLUSIVE)
        rc = turn_to(lock, DIBS_SHARED, err);
    return rc == DIBS_OK ? turn_to(lock, mode, err) : rc;
}

/* One call on the handle that has the lease. */
static dibs_status
turn_call(dibs_lock *lock, dibs_lock_mode mode, dibs_error *err)
{
    dibs_status rc = dibs__lock_enter(lock, err);

    if (rc != DIBS_OK)
        return rc;
    if (lock->entry.depth == 0)
        rc = dibsx_fail(err, DIBS_LOST, "%s is not held", lock->name);
    else if (lock->entry.via)
        rc = dibsx_fail(err, DIBS_INVALID,
                        "%s was entered through another handle: turn that one",
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
        rc = turn_held(lock, mode, err);
    dibs__lock_exit(lock);
    return rc;
}

dibs_status dibs_lock_upgrade(dibs_lock *lock, dibs_error *err)
{
    DIBSX_UNCANCEL;

    return turn_call(lock, DIBS_EXCLUSIVE, err);
}

dibs_status dibs_lock_downgrade(dibs_lock *lock, dibs_error *err)
{
    DIBSX_UNCANCEL;

    return turn_call(lock, DIBS_SHARED, err);
}
