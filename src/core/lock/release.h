/* release.h - releases a lease: belief ends first, then the request is sent.
 *
 * Owns the release that is yet to be sent. Runs on the thread that releases the lease,
 * or on a runner (async.h).
 *
 * Locks: cl->mutex for everything here. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_CORE_LOCK_RELEASE_H
#define DIBS_CORE_LOCK_RELEASE_H

#include "store/store.h"
#include <dibs/lock.h>

/* A release that is yet to be sent; belief has ended. */
typedef struct dibs__pending_release {
    dibs_lock
        *holder; /* had the lease; with a reference. NULL: nothing to send */
    dibs__store *st;
    dibs__leave leave; /* its texts are here, and in the holder */
    bool sent_before;  /* and its answer was lost */
    char owner[DIBS_OWNER_SIZE];
} dibs__pending_release;

/* The two halves of a release. Begin ends belief. With pending->holder set, send is
 * yet to pass the release to the store: it lets the mutex go for the step and
 * drops the reference. Within limit_ms (0: the client's timeout). Try does not drop the
 * reference: it may be called again. */
dibs_status dibs__release_begin(dibs_lock *lock, dibs__pending_release *pending,
                                dibs_error *err);
dibs_status dibs__release_send(dibs__pending_release *pending, int64_t limit_ms,
                               dibs_error *err);
dibs_status dibs__release_try(dibs__pending_release *pending, int64_t limit_ms,
                              dibs_error *err);

/* The second half for a driver that sends the releases of many: the step to send,
 * then its log line (locks: none held) and, if its answer is known, its end. */
void dibs__release_step(dibs__pending_release *pending, dibs__lease_step *step,
                        dibs_error *err);
void dibs__release_trace(const dibs__pending_release *pending, dibs_status rc);
void dibs__release_end(dibs__pending_release *pending);

/* Ends belief and sends the release, within limit_ms (0: the client's timeout);
 * the mutex is let go for the step. Answers as dibs_lock_release(). */
dibs_status
dibs__lock_give_up(dibs_lock *lock, int64_t limit_ms, dibs_error *err);

/* The same for a caller without an error to fill: a failure is logged. The
 * mutex is let go meanwhile. */
void dibs__lock_let_go(dibs_lock *lock);

/* Ends belief and sends nothing: the entry in the store expires. */
void dibs__lock_forget(dibs_lock *lock);

#endif
