/* ttl.h - the range of lease lengths. Pure. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_CORE_TTL_H
#define DIBS_CORE_TTL_H

#include "base/fail.h"
#include "store/lease.h"

enum {
    DIBS__TTL_DEFAULT_MS = 30000,
    DIBS__TTL_MIN_MS = 10,
    DIBS__TTL_MAX_MS = DIBS__LEASE_MAX_MS
};

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

#endif
