/* enter.c - an acquire that the store need not be asked for: the owner has the
 * lease already.
 *
 * Runs on the thread that acquires. */
/* SPDX-License-Identifier: MIT */
#include "core/lock/enter.h"

#include "base/fail.h"
#include "core/lock/handle.h"
#include "core/lock/reentry.h"
#include "core/lock/release.h"
#include "core/lock/sticky.h"
#include "core/stats/record.h"
#include "core/stats/shared_events.h"

static bool is_reentrant(const dibs_lock *lock)
{
    return (lock->traits->opts.flags & DIBS_LOCK_REENTRANT) != 0;
}

/* A writer's lease also lets its owner read. */
static bool has_right(const dibs_lock *lock, const dibs_lock *at)
{
    return at->mode == lock->traits->opts.mode || at->mode == DIBS_EXCLUSIVE;
}

/* One more acquire of a handle that is in use. */
static dibs_status enter_again(dibs_lock *lock, dibs_error *err)
{
    if (!dibs__reentry_is_owner(lock))
        return dibsx_fail(err, DIBS_INVALID,
                          "this handle holds %s for another owner; give each "
                          "its own handle",
                          lock->name);
    if (!is_reentrant(lock))
        return dibsx_fail(err, DIBS_INVALID,
                          "this handle holds %s already; DIBS_LOCK_REENTRANT "
                          "would let its owner in again",
                          lock->name);
    if (!has_right(lock, lock->entry.via ? lock->entry.via : lock))
        return dibsx_fail(err, DIBS_INVALID,
                          "%s is held as a reader, as far as is known, and "
                          "this handle asks for a writer; upgrade it first",
                          lock->name);
    if (lock->entry.depth == UINT32_MAX)
        return dibsx_fail(err, DIBS_INVALID, "%s was entered too often",
                          lock->name);
    lock->entry.depth++;
    return DIBS_OK;
}

/* If the lock has a lease of its own by now, that is an idle sticky one which
 * another client wants: a worker releases it, and the lock stays a guest. */
static void become_guest(dibs_lock *lock, dibs_lock *host, dibsx_nsec now)
{
    if (lock->lease.state != DIBS__LEASE_FREE &&
        !dibs__lease_valid(&lock->lease, now))
        dibs__lock_forget(lock);
    dibs__reentry_join(lock, host);
}

static bool may_enter(const dibs_lock *lock, const dibs_lock *other)
{
    return is_reentrant(lock) && is_reentrant(other) && has_right(lock, other);
}

static bool modes_conflict(const dibs_lock *lock, const dibs_lock *other)
{
    return other->mode == DIBS_EXCLUSIVE ||
           lock->traits->opts.mode == DIBS_EXCLUSIVE;
}

/* A guest leaves the lease of its host, which ends with the last handle in
 * it. */
static void leave_host(dibs_lock *lock)
{
    dibs_lock *host = lock->entry.via;

    dibs__reentry_quit(lock);
    if (!dibs__reentry_in_use(host))
        dibs__lock_forget(host);
    dibs__lock_unref(host);
}

/* An acquire replaces a lease that is lost. The loss is counted here if the
 * keeper has not done so. It is not announced any more: the program would think
 * that the next lease was lost. */
static void replace_lost(dibs_lock *lock, dibsx_nsec now)
{
    if (lock->entry.via) {
        leave_host(lock);
    } else {
        if (!lock->lease.announced)
            dibs__shared_events_note(lock, DIBS_LEASE_LOST, lock->lease.fence,
                                     lock->lease.held_at);
        dibs__record_use_ended(lock, false);
        (void)dibs__lease_due(&lock->lease, now);
        dibs__reentry_end(lock);
    }
    dibs__reentry_rename(lock);
}

dibs_status
dibs__reentry_enter(dibs_lock *lock, bool waits, bool *done, dibs_error *err)
{
    const dibs_lock *at = lock->entry.via ? lock->entry.via : lock;
    dibsx_nsec now = dibsx_now();
    dibs_lock *other;

    *done = true;
    if (dibs__reentry_in_use(lock) && dibs__lease_valid(&at->lease, now))
        return enter_again(lock, err);
    if (dibs__reentry_in_use(lock))
        replace_lost(lock, now);
    if (dibs__sticky_reuse(lock, now)) {
        dibs__reentry_acquired(lock);
        return DIBS_OK;
    }
    other = dibs__reentry_elsewhere(lock, now);
    if (other && may_enter(lock, other)) {
        become_guest(lock, other, now);
        return DIBS_OK;
    }
    if (other && waits && modes_conflict(lock, other))
        return dibsx_fail(err, DIBS_INVALID,
                          "this owner holds %s through another handle and "
                          "would wait for itself",
                          lock->name);
    *done = false;
    return DIBS_OK;
}
