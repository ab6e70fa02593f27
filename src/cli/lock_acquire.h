/* lock_acquire.h - getting the lock, with signals served and people told meanwhile. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_CLI_LOCK_ACQUIRE_H
#define DIBS_CLI_LOCK_ACQUIRE_H

#include "cli/lock_or_set.h"
#include "cli/lock_request.h"
#include "exec/signals.h"

/* As dibs__lock_or_set_acquire(). *fatal is the signal that ended the wait, or that
 * came just as it ended by itself: then it may be held, and is to be given back.
 */
DIBS_MUST_CHECK dibs_status dibs__cli_acquire(dibs_client *cl,
                                              dibs__lock_or_set *locks,
                                              const dibs__lock_request *request,
                                              const dibs__signals *sig,
                                              int *fatal, dibs_error *err);

#endif
