/* guard.h - the other half of a fencing token: refusing old ones.
 *
 * A resource that a lock protects remembers the highest fence it has seen and
 * refuses a smaller one. A dibs_guard does that within one process. For a
 * resource without memory, dibs_guard_admit_shared() remembers the fence in the
 * store. A database should check it in the statement that writes: see
 * docs/fencing.md.
 */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_GUARD_H
#define DIBS_GUARD_H

#include <dibs/client.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The highest fence seen. Initialize it with zeros and let only
 * dibs_guard_admit() change it. */
typedef struct dibs_guard {
    uint64_t highest;
} dibs_guard;

/* Compares the fence with the highest and remembers the higher one. One atomic
 * operation: any thread, never blocks.
 *   DIBS_OK       the fence is the highest, or equal to it
 *   DIBS_STALE    a higher fence was seen; the message names it
 *   DIBS_INVALID  the fence is 0: the lock is not held */
DIBS_API DIBS_MUST_CHECK dibs_status dibs_guard_admit(dibs_guard *guard,
                                                      uint64_t fence,
                                                      dibs_error *err);

/* The same with a memory in the store: the value "fence:RESOURCE", kept for
 * keep_ms after its last use (0: for ever). Any thread; blocks for the store. A
 * later holder may still write between this call and the write. Only a check
 * inside the write closes that gap.
 *   DIBS_OK, DIBS_STALE  as above
 *   DIBS_INVALID         the fence is 0, keep_ms is negative, the name is too
 *                        long, or the value is not a fence
 *   DIBS_UNSUPPORTED     the store has no values
 *   DIBS_UNAVAIL, DIBS_UNKNOWN  not admitted; repeat the call */
DIBS_API DIBS_MUST_CHECK dibs_status
dibs_guard_admit_shared(dibs_client *client, const char *resource,
                        uint64_t fence, int64_t keep_ms, dibs_error *err);

#ifdef __cplusplus
}
#endif
#endif
