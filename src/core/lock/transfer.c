/* transfer.c - a held lease goes on to another process, by a token.
 *
 * The calling thread does the asking, on either side. */
/* SPDX-License-Identifier: MIT */
#include "base/fail.h"
#include "base/uncancel.h"
#include "core/lock/adopt.h"
#include "core/lock/convert.h"
#include "core/lock/handle.h"
#include "core/lock/lock_opts.h"
#include "core/lock/release.h"
#include "core/lock/renew_now.h"
#include "core/stats/shared_events.h"
#include "core/who.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char mode_letters[] = "xsp"; /* in a token, by dibs_lock_mode */

/* Belief ends before anything is sent, so that from here on this process has
 * nothing, whatever the answer. Locks: cl->mutex, let go for the step. */
static dibs_status
transfer(dibs_lock *lock, char token[DIBS_TOKEN_SIZE], dibs_error *err)
{
    char owner[DIBS_OWNER_SIZE], heir[DIBS_OWNER_SIZE];
    dibsx_nsec now = dibsx_now();
    /* An adopted lease goes on in the mode of the handle, if it can. */
    dibs_lock_mode mode =
        lock->doubt == DIBS__ADOPTED ? lock->traits->opts.mode : lock->mode;
    dibs__conversion conversion = {.name = lock->name,
                                   .owner = owner,
                                   .to_owner = heir,
                                   .fence = lock->lease.fence,
                                   .mode = (dibs__mode)mode,
                                   .ttl_ms =
                                       dibs__lease_renew_ms(&lock->lease, now),
                                   .replicas = lock->traits->replicas};
    dibs__answer ans = {0};
    dibs_status rc = dibs__owner_new(lock->cl, heir, err);

    if (rc != DIBS_OK)
        return rc;
    memcpy(owner, lock->lease.owner, sizeof(owner));
    dibs__shared_events_note(lock, DIBS_LEASE_RELEASED, lock->lease.fence,
                             lock->lease.held_at);
    dibs__lock_forget(lock);
    rc = dibs__convert_send(lock, &conversion,
                            dibs__client_deadline(lock->cl, now), &ans, err);
    if (rc == DIBS_OK)
        snprintf(token, DIBS_TOKEN_SIZE, "%s.%" PRIu64 ".%c", heir, ans.fence,
                 mode_letters[mode]);
    return rc;
}

dibs_status dibs_lock_transfer(dibs_lock *lock, char token[DIBS_TOKEN_SIZE],
                               dibs_error *err)
{
    DIBSX_UNCANCEL;
    dibs_status rc = dibs__lock_enter(lock, err);
    const char *cannot;

    token[0] = '\0';
    if (rc != DIBS_OK)
        return rc;
    cannot = dibs__store_cannot(lock->cl->st, DIBS__CAN_CONVERT);
    if (lock->entry.depth == 0 || lock->entry.via ||
        !dibs__lease_valid(&lock->lease, dibsx_now()))
        rc = dibsx_fail(err, DIBS_LOST, "%s is not held by this handle",
                        lock->name);
    else if (lock->entry.depth > 1 || lock->entry.guests)
        rc = dibsx_fail(err, DIBS_INVALID,
                        "%s was entered more than once; release to depth 1 "
                        "first",
                        lock->name);
    else if (lock->st != lock->cl->st)
        rc = dibsx_fail(err, DIBS_UNSUPPORTED,
                        "%s is not held in the store, which is away: another "
                        "process could not accept it",
                        lock->name);
    else if (cannot)
        rc = dibsx_fail(err, DIBS_UNSUPPORTED, "%s", cannot);
    else
        rc = transfer(lock, token, err);
    dibs__lock_exit(lock);
    return rc;
}

/* "OWNER.FENCE.MODE", the mode as a letter. */
static bool read_token(const char *token, char owner[DIBS_OWNER_SIZE],
                       uint64_t *fence, dibs_lock_mode *mode)
{
    size_t len = DIBS_OWNER_SIZE - 1;
    const char *letter;
    uintmax_t number;
    char *end = NULL;

    if (!token || strnlen(token, DIBS_TOKEN_SIZE) <= len + 1 ||
        token[len] != '.' || token[len + 1] < '1' || token[len + 1] > '9')
        return false;
    errno = 0;
    number = strtoumax(token + len + 1, &end, 10);
    if (errno != 0 || number > INT64_MAX || end[0] != '.' || !end[1] || end[2])
        return false;
    letter = strchr(mode_letters, end[1]);
    if (!letter)
        return false;
    memcpy(owner, token, len);
    owner[len] = '\0';
    *fence = (uint64_t)number;
    *mode = (dibs_lock_mode)(letter - mode_letters);
    return true;
}

/* The store learns the doorbell of a lease that was handed on with its first renewal.
 * One without an answer is left to the renewer. Locks: cl->mutex, let go for the
 * step. */
static dibs_status name_doorbell(dibs_lock *lock, dibs__adopted *got,
                                 int64_t ttl_ms, dibs_error *err)
{
    dibsx_nsec sent_at = dibsx_now();
    dibs__renewal item = {.name = lock->name,
                          .owner = got->owner,
                          .fence = got->fence,
                          .ttl_ms = ttl_ms,
                          .replicas = lock->traits->replicas};
    dibs_status rc = dibs__renew_one(lock, &item, sent_at, err);

    if (rc == DIBS_OK) {
        got->sent_at = sent_at;
        got->left_ms = item.left_ms;
    }
    return rc == DIBS_LOST ? rc : DIBS_OK;
}

/* The store hands the lease on from the owner that the token names to a new one, so
 * that the token is used up: a second accept finds that its owner has nothing. A
 * request that arrives after its deadline leaves a lease that nobody knows, until its
 * ttl. Locks: cl->mutex, let go for the step. */
static dibs_status accept_lease(dibs_lock *lock, const char *owner,
                                uint64_t fence, dibs_error *err)
{
    char heir[DIBS_OWNER_SIZE];
    dibsx_nsec sent_at = dibsx_now();
    dibs__conversion conversion = {.name = lock->name,
                                   .owner = owner,
                                   .to_owner = heir,
                                   .fence = fence,
                                   .mode = (dibs__mode)lock->traits->opts.mode,
                                   .ttl_ms = lock->traits->opts.ttl_ms +
                                             lock->traits->opts.lock_delay_ms,
                                   .replicas = lock->traits->replicas};
    dibs__answer ans = {0};
    dibs__adopted got;
    dibs_status rc = dibs__adopt_prepare(lock, err);

    if (rc == DIBS_OK)
        rc = dibs__owner_new(lock->cl, heir, err);
    if (rc == DIBS_OK)
        rc = dibs__convert_send(lock, &conversion,
                                dibs__client_deadline(lock->cl, sent_at), &ans,
                                err);
    if (rc != DIBS_OK)
        return rc;
    got = (dibs__adopted){heir, ans.fence, sent_at, ans.left_ms};
    if (lock->traits->hears)
        rc = name_doorbell(lock, &got, conversion.ttl_ms, err);
    return rc == DIBS_OK ? dibs__adopt_hold(lock, &got, true, err) : rc;
}

dibs_status
dibs_lock_accept(dibs_lock *lock, const char *token, dibs_error *err)
{
    DIBSX_UNCANCEL;
    char owner[DIBS_OWNER_SIZE];
    dibs_lock_mode mode;
    uint64_t fence;
    dibs_status rc;

    if (!read_token(token, owner, &fence, &mode) || !dibs__owner_ok(owner))
        return dibsx_fail(err, DIBS_INVALID, "that is no token of a transfer");
    if (lock && lock->traits->opts.mode != mode)
        return dibsx_fail(err, DIBS_MISMATCH,
                          "%s was handed on as %s, and this handle is for %s",
                          lock->name, dibs__mode_name((dibs__mode)mode),
                          dibs__mode_name((dibs__mode)lock->traits->opts.mode));
    rc = dibs__adopt_enter(lock, err);
    if (rc != DIBS_OK)
        return rc;
    rc = accept_lease(lock, owner, fence, err);
    dibs__lock_exit(lock);
    return rc;
}
