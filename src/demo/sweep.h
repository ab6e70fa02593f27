/* sweep.h - no lock is left behind: what workers that were killed still hold is
 * taken from them when all have ended. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_DEMO_SWEEP_H
#define DIBS_DEMO_SWEEP_H

#include "demo/log.h"
#include <dibs/dibs.h>

/* To be called by the primary when none of its workers runs. A lease that cannot be
 * taken back is in the log; it ends with its ttl. */
void dibs__demo_sweep(dibs_client *cl, const dibs__demo_log *log);

#endif
