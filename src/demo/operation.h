/* operation.h - one operation under the lock, as the log tells it. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_DEMO_OPERATION_H
#define DIBS_DEMO_OPERATION_H

#include "demo/work.h"

/* Takes the lock, works for `duration_ms`, writes the value, gives the lock back.
 * `wait_ms` negative waits without limit. *ad is what was written.
 *   DIBS_BUSY, DIBS_TIMEOUT   the lock was not granted in time
 *   DIBS_LOST, DIBS_STALE     it was lost meanwhile; nothing was written
 *   DIBS_CANCELLED            the worker stops; nothing was written
 *   else                      the store is away, or worse */
DIBS_MUST_CHECK dibs_status
dibs__demo_operate(dibs__demo_work *work, const char *name, int64_t duration_ms,
                   int64_t wait_ms, dibs__demo_ad *ad, dibs_error *err);

#endif
