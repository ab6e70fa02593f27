/* warmup.h - the shared value is there before the first request: the guard that
 * lets it be initialised once a minute, whoever starts. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_DEMO_WARMUP_H
#define DIBS_DEMO_WARMUP_H

#include "demo/work.h"

/* Uses the value that is there if WARMUP_LAST_SUCCESSFUL is of the current minute
 * (UTC), looking up to three times, 100 to 500 ms apart; else initialises both,
 * under the lock, so that of many who start together one does. DIBS_CANCELLED: the
 * worker stops. */
DIBS_MUST_CHECK dibs_status dibs__demo_warm_up(dibs__demo_work *work,
                                               dibs_error *err);

#endif
