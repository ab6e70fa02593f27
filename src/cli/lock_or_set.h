/* lock_or_set.h - what run and acquire take: one lock, or several at once. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_CLI_LOCK_OR_SET_H
#define DIBS_CLI_LOCK_OR_SET_H

#include <dibs/dibs.h>

typedef struct dibs__lock_or_set {
    dibs_lock *lock;   /* for one name, */
    dibs_multi *multi; /* or for several */
    const char *name;  /* of the lock; borrowed */
    bool taken;
} dibs__lock_or_set;

/* Touches no store. End with dibs__lock_or_set_fini(), which gives back what is held.
 */
DIBS_MUST_CHECK dibs_status dibs__lock_or_set_init(
    dibs__lock_or_set *locks, dibs_client *cl, const char *const *names,
    size_t count, const dibs_lock_opts *opts, dibs_error *err);
void dibs__lock_or_set_fini(dibs__lock_or_set *locks);

/* As the calls on a lock. */
DIBS_MUST_CHECK dibs_status dibs__lock_or_set_acquire(dibs__lock_or_set *locks,
                                                      dibs_error *err);
DIBS_MUST_CHECK dibs_status dibs__lock_or_set_try(dibs__lock_or_set *locks,
                                                  dibs_error *err);
void dibs__lock_or_set_cancel(dibs__lock_or_set *locks);
DIBS_MUST_CHECK dibs_status dibs__lock_or_set_renew(dibs__lock_or_set *locks,
                                                    dibs_error *err);
void dibs__lock_or_set_tick(dibs__lock_or_set *locks);

/* DIBS_OK also when nothing was held. */
dibs_status
dibs__lock_or_set_release(dibs__lock_or_set *locks, dibs_error *err);
void dibs__lock_or_set_leave(dibs__lock_or_set *locks);

/* The least of all. */
int64_t dibs__lock_or_set_valid_ms(const dibs__lock_or_set *locks);

/* The locks of it, in an order of their own. */
size_t dibs__lock_or_set_count(const dibs__lock_or_set *locks);
dibs_lock *dibs__lock_or_set_lock(const dibs__lock_or_set *locks, size_t i);
const char *dibs__lock_or_set_name(const dibs__lock_or_set *locks, size_t i);

/* The lock of a name that is among them. */
dibs_lock *
dibs__lock_or_set_find(const dibs__lock_or_set *locks, const char *name);

/* The name that is valid for the shortest time, and the one waited for just now:
 * the first in the pause between two tries. */
const char *dibs__lock_or_set_weakest(const dibs__lock_or_set *locks);
const char *dibs__lock_or_set_waiting(const dibs__lock_or_set *locks);

#endif
