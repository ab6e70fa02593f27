/* adopt.h - a handle takes over a lease that it did not acquire: what an adoption and
 * the acceptance of a transfer share.
 *
 * Owns nothing. Runs on the calling thread. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_CORE_LOCK_ADOPT_H
#define DIBS_CORE_LOCK_ADOPT_H

#include "core/lock/lock.h"

/* A lease of the store that becomes the handle's. */
typedef struct dibs__adopted {
    const char *owner;
    uint64_t fence;
    dibsx_nsec sent_at; /* of the first request that can have given it */
    int64_t left_ms;    /* by the answer */
} dibs__adopted;

/* Whether it is written as owners are. */
bool dibs__owner_ok(const char *owner);

/* Enters the handle, with its doorbell open where the options need one. On DIBS_OK
 * the client's mutex is held; end with dibs__lock_exit(). */
DIBS_MUST_CHECK dibs_status dibs__adopt_enter(dibs_lock *lock, dibs_error *err);

/* Before the store is asked. DIBS_INVALID: the handle is in use. Locks: cl->mutex. */
DIBS_MUST_CHECK dibs_status dibs__adopt_prepare(dibs_lock *lock,
                                                dibs_error *err);

/* The handle holds the lease. `sure`: in the mode of its options. DIBS_LOST: the answer
 * came too late, and the handle is free. Locks: cl->mutex. */
DIBS_MUST_CHECK dibs_status dibs__adopt_hold(dibs_lock *lock,
                                             const dibs__adopted *ad, bool sure,
                                             dibs_error *err);

#endif
