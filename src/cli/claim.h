/* claim.h - what run and acquire take: one lock, or several at once. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_CLI_CLAIM_H
#define DIBS_CLI_CLAIM_H

#include <dibs/dibs.h>

typedef struct dibs__claim {
    dibs_lock *lock;   /* for one name, */
    dibs_multi *multi; /* or for several */
    const char *name;  /* of the lock; borrowed */
    bool taken;
} dibs__claim;

/* Touches no store. End with dibs__claim_fini(), which gives back what is held.
 */
DIBS_MUST_CHECK dibs_status
dibs__claim_init(dibs__claim *claim, dibs_client *cl, const char *const *names,
                 size_t count, const dibs_lock_opts *opts, dibs_error *err);
void dibs__claim_fini(dibs__claim *claim);

/* As the calls on a lock. */
DIBS_MUST_CHECK dibs_status dibs__claim_acquire(dibs__claim *claim,
                                                dibs_error *err);
DIBS_MUST_CHECK dibs_status dibs__claim_try(dibs__claim *claim,
                                            dibs_error *err);
void dibs__claim_cancel(dibs__claim *claim);
DIBS_MUST_CHECK dibs_status dibs__claim_renew(dibs__claim *claim,
                                              dibs_error *err);
void dibs__claim_tick(dibs__claim *claim);

/* DIBS_OK also when nothing was held. */
dibs_status dibs__claim_release(dibs__claim *claim, dibs_error *err);
void dibs__claim_leave(dibs__claim *claim);

/* The least of all. */
int64_t dibs__claim_valid_ms(const dibs__claim *claim);

/* The locks of it, in an order of their own. */
size_t dibs__claim_count(const dibs__claim *claim);
dibs_lock *dibs__claim_lock(const dibs__claim *claim, size_t i);
const char *dibs__claim_name(const dibs__claim *claim, size_t i);

/* The lock of a name that is among them. */
dibs_lock *dibs__claim_find(const dibs__claim *claim, const char *name);

/* The name that is valid for the shortest time, and the one waited for just now:
 * the first in the pause between two tries. */
const char *dibs__claim_weakest(const dibs__claim *claim);
const char *dibs__claim_waiting(const dibs__claim *claim);

#endif
