/* enter.h - an acquire that the store need not be asked for.
 *
 * Owns nothing. Runs on the thread that acquires. Locks: cl->mutex. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_CORE_LOCK_ENTER_H
#define DIBS_CORE_LOCK_ENTER_H

#include "core/lock/lock.h"

/* Before an acquire asks the store: whether it can be answered here. If *done
 * is unset, ask the store. Else the acquire is over with the status returned:
 * entered again, an idle sticky lease in use again, or an error. `waits`: it
 * would join the queue. */
DIBS_MUST_CHECK dibs_status dibs__reentry_enter(dibs_lock *lock, bool waits,
                                                bool *done, dibs_error *err);

#endif
