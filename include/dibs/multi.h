/* multi.h - several names at once: all or none.
 *
 * Exclusive sets whose names are all free take one step, if the store can.
 * Otherwise the client acquires the names one by one in a fixed order, so that
 * sets cannot deadlock. One deadline covers the set. After a refusal the client
 * releases the names that it had acquired. A program that also acquires several
 * of the names with single locks must do so in the order of the names.
 *
 * Threads: any thread may use a set. Acquire, try, release and free block; one
 * acquire, try or release at a time may run on a set. Cancel and the calls that
 * read the set return at once and may run at any time before free.
 */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_MULTI_H
#define DIBS_MULTI_H

#include <dibs/lock.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dibs_multi dibs_multi;

/* The largest number of names in a set. */
#define DIBS_MULTI_MAX 64

/* Makes a handle on `count` names. Does not contact the store. A repeated name
 * counts once. The options apply to each name; wait_ms and retries apply to the
 * set. After a loss the client calls on_lost with the lock of the lost name. The
 * set is then no longer held, and dibs_multi_release() releases the rest. Free
 * it with dibs_multi_free(), before dibs_close().
 *   DIBS_INVALID  no names, too many, or a malformed one; or an option that sets
 *                 lack: DIBS_PERMITS, DIBS_LOCK_REENTRANT, DIBS_LOCK_STICKY,
 *                 progress_ms */
DIBS_API DIBS_MUST_CHECK dibs_status
dibs_multi_new(dibs_client *client, const char *const *names, size_t count,
               const dibs_lock_opts *opts, dibs_multi **out, dibs_error *err);

/* Releases the set if it is held, then frees it. NULL is a no-op. */
DIBS_API void dibs_multi_free(dibs_multi *multi);

/* As dibs_lock_acquire(), dibs_lock_try() and dibs_lock_cancel(), with the same
 * statuses. If a lease is lost while the client waits for the others, it starts
 * again within the deadline. After any status but DIBS_OK no name is held, and
 * the message names the one in the way.
 *   DIBS_INVALID  the set is held already, or another call runs on it */
DIBS_API DIBS_MUST_CHECK dibs_status dibs_multi_acquire(dibs_multi *multi,
                                                        dibs_error *err);
DIBS_API DIBS_MUST_CHECK dibs_status dibs_multi_try(dibs_multi *multi,
                                                    dibs_error *err);
DIBS_API void dibs_multi_cancel(dibs_multi *multi);

/* Releases all names, in reverse order, each within the client's timeout.
 *   DIBS_OK       every lease was valid to the end
 *   DIBS_LOST     at least one lease had ended, or the set was not held
 *   DIBS_UNAVAIL, DIBS_UNKNOWN  the store may keep some names until their ttl
 *   DIBS_INVALID  another call runs on the set; nothing changed */
DIBS_API dibs_status dibs_multi_release(dibs_multi *multi, dibs_error *err);

/* DIBS_OK while every lease is valid, otherwise DIBS_LOST; and the shortest
 * validity of all, 0 when one has ended. They never block. */
DIBS_API DIBS_MUST_CHECK dibs_status dibs_multi_check(const dibs_multi *multi);
DIBS_API int64_t dibs_multi_valid_ms(const dibs_multi *multi);

/* The locks of the set, ordered by name; each has its own fence and lost_fd. The
 * set owns them: read them, do not acquire, release or free them. Lock and name
 * are NULL when `i` is out of range. */
DIBS_API size_t dibs_multi_count(const dibs_multi *multi);
DIBS_API dibs_lock *dibs_multi_lock(const dibs_multi *multi, size_t i);
DIBS_API const char *dibs_multi_name(const dibs_multi *multi, size_t i);

#ifdef __cplusplus
}
#endif
#endif
