/* guard.h - the other half of a fencing token: refusing those that are old.
 *
 * Whatever a lock protects remembers the highest fence it has seen and refuses a
 * smaller one. In one process a dibs_guard does it; for a resource without memory
 * of its own dibs_guard_admit_shared() remembers in the store. A database does it
 * best itself, in the statement that writes: docs/fencing.md has the lines.
 */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_GUARD_H
#define DIBS_GUARD_H

#include <dibs/client.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The highest fence seen. Zeroed storage has seen none. Any thread; only the
 * functions below touch it. */
typedef struct dibs_guard {
    uint64_t highest;
} dibs_guard;

/* DIBS_OK: the fence is not older than any seen, and is the highest from now on.
 * DIBS_STALE: a higher one was here; err says which. DIBS_INVALID: fence 0. */
DIBS_API DIBS_MUST_CHECK dibs_status dibs_guard_admit(dibs_guard *guard,
                                                      uint64_t fence,
                                                      dibs_error *err);

/* The same, remembered in the store as the value "fence:RESOURCE" for keep_ms
 * after its last use (0: for ever). Between this call and the write another may
 * come: it narrows the gap, where only a check in the write itself closes it.
 *   DIBS_INVALID               fence 0, or the value there is not a fence
 *   DIBS_UNAVAIL, DIBS_UNKNOWN not admitted; the same call may be made again */
DIBS_API DIBS_MUST_CHECK dibs_status
dibs_guard_admit_shared(dibs_client *client, const char *resource,
                        uint64_t fence, int64_t keep_ms, dibs_error *err);

#ifdef __cplusplus
}
#endif
#endif
