/* lock_opts.h - what a lock handle was asked to be, checked and copied.
 *
 * Owns nothing: traits.h has the options, and copies of their texts. Any thread. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_CORE_LOCK_LOCK_OPTS_H
#define DIBS_CORE_LOCK_LOCK_OPTS_H

#include "base/fail.h"
#include "store/lease.h"
#include <dibs/lock.h>

/* The range of lease lengths. */
enum {
    DIBS__TTL_DEFAULT_MS = 30000,
    DIBS__TTL_MIN_MS = 10,
    DIBS__TTL_MAX_MS = DIBS__LEASE_MAX_MS
};

/* More often than this is of no use to anyone. */
enum { DIBS__RENEW_MIN_MS = 10 };

/* How long others may be kept out after a lease, at most. */
#define DIBS__HOLD_MIN_MAX_MS ((int64_t)365 * 24 * 3600 * 1000)

static inline bool dibs__ttl_ok(int64_t ttl_ms)
{
    return ttl_ms >= DIBS__TTL_MIN_MS && ttl_ms <= DIBS__TTL_MAX_MS;
}

static inline dibs_status dibs__ttl_fail(dibs_error *err)
{
    return dibsx_fail(err, DIBS_INVALID, "the ttl must be from 10 ms to 24 h");
}

/* Sets what the handle has of its options; lock->cl is set. Freed by
 * dibs__opts_fini(), also after a failure. Locks: none held; fini: cl->mutex. */
DIBS_MUST_CHECK dibs_status dibs__opts_read(dibs_lock *lock,
                                            const dibs_lock_opts *opts,
                                            dibs_error *err);
void dibs__opts_fini(dibs_lock *lock);

/* Whether the holder must get the notices of its doorbell. */
bool dibs__opts_hear(const dibs_lock_opts *opts);

#endif
