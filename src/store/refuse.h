/* refuse.h - the refusals of steps on a name, in the same words for every store.
 * Pure; any thread. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_REFUSE_H
#define DIBS_STORE_REFUSE_H

#include "store/lease_args.h"

/* Names are cut here, so that the rest of a message is not. */
#define DIBS__NAME_SHOWN "%.120s"

/* DIBS_INVALID: an ask that no store takes; DIBS_OK: they may. */
DIBS_MUST_CHECK dibs_status dibs__refuse_ask(const dibs__ask *ask,
                                             dibs_error *err);

/* DIBS_LOST: a tombstone stands; it had no lease to give up; it has none under the
 * fence that it says. */
dibs_status dibs__refuse_left(const char *name, dibs_error *err);
dibs_status dibs__refuse_absent(const char *name, dibs_error *err);
dibs_status dibs__refuse_fence(const char *name, dibs_error *err);

/* DIBS_MISMATCH: the name lives as permits of that capacity, or as a lock, which
 * has none (0). */
dibs_status
dibs__refuse_kind(const dibs__ask *ask, uint32_t capacity, dibs_error *err);

/* DIBS_BUSY: `who` is the text of the holder in the way; "" when it is not
 * known. */
dibs_status
dibs__refuse_held(const char *name, const char *who, dibs_error *err);
dibs_status
dibs__refuse_shared(const char *name, const char *who, dibs_error *err);

/* DIBS_BUSY: a queue that is to be removed still has these. */
dibs_status dibs__refuse_removal(int64_t items, int64_t dead, int64_t consumers,
                                 dibs_error *err);

#endif
