/* multi.h - several names at once: all of them or none.
 *
 * In one step where the store can and all are free; else one by one in a fixed
 * order, so that two who want the same names cannot wait for each other. One
 * total deadline covers the set; what was taken before a refusal is given back.
 *
 * Threads: as a lock handle, one call at a time that talks to the store; cancel
 * and what reads the handle may be called from any thread at any time.
 */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_MULTI_H
#define DIBS_MULTI_H

#include <dibs/lock.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dibs_multi dibs_multi;

/* The most names of a set. */
#define DIBS_MULTI_MAX 64

/* Makes a handle on `count` names; touches no store. A name given twice counts
 * once. The options hold for each of them, but for wait_ms and the retries, which
 * are for the set. mode is DIBS_EXCLUSIVE or DIBS_SHARED; re-entry, stickiness and
 * progress_ms are not for sets. `on_lost` is called with the lock of the name that
 * was lost: the set is no longer held then, and dibs_multi_release() gives back
 * the rest of it. Free it with dibs_multi_free(). */
DIBS_API DIBS_MUST_CHECK dibs_status
dibs_multi_new(dibs_client *client, const char *const *names, size_t count,
               const dibs_lock_opts *opts, dibs_multi **out, dibs_error *err);
DIBS_API void dibs_multi_free(dibs_multi *multi); /* releases; NULL: no-op */

/* As the calls on a single lock. An error names the name that was in the way.
 * After anything but DIBS_OK none of them is held. */
DIBS_API DIBS_MUST_CHECK dibs_status dibs_multi_acquire(dibs_multi *multi,
                                                        dibs_error *err);
DIBS_API DIBS_MUST_CHECK dibs_status dibs_multi_try(dibs_multi *multi,
                                                    dibs_error *err);
DIBS_API void dibs_multi_cancel(dibs_multi *multi);

/* Gives all back, in the reverse order. DIBS_LOST: at least one had ended. */
DIBS_API dibs_status dibs_multi_release(dibs_multi *multi, dibs_error *err);

/* DIBS_OK while every one may be relied on; the least time left of all. */
DIBS_API DIBS_MUST_CHECK dibs_status dibs_multi_check(const dibs_multi *multi);
DIBS_API int64_t dibs_multi_valid_ms(const dibs_multi *multi);

/* The locks of the set, in its order; each has its own fence and lost_fd. They
 * stay the set's: look at them, do not acquire, release or free them. */
DIBS_API size_t dibs_multi_count(const dibs_multi *multi);
DIBS_API dibs_lock *dibs_multi_lock(const dibs_multi *multi, size_t i);
DIBS_API const char *dibs_multi_name(const dibs_multi *multi, size_t i);

#ifdef __cplusplus
}
#endif
#endif
