/* waiting.h - getting the lock, with signals served and people told meanwhile. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_CLI_WAITING_H
#define DIBS_CLI_WAITING_H

#include "cli/run_opts.h"
#include "cli/signals.h"

/* As dibs_lock_acquire(). *fatal is the signal that ended the wait, or that came
 * just as it ended by itself: then the lock may be held, and is to be freed. */
DIBS_MUST_CHECK dibs_status dibs__wait_acquire(dibs_client *cl, dibs_lock *lock,
                                               const dibs__run_opts *opts,
                                               const dibs__signals *sig,
                                               int *fatal, dibs_error *err);

#endif
