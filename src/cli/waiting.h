/* waiting.h - getting the lock, with signals served and people told meanwhile. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_CLI_WAITING_H
#define DIBS_CLI_WAITING_H

#include "cli/claim.h"
#include "cli/signals.h"
#include "cli/want.h"

/* As dibs__claim_acquire(). *fatal is the signal that ended the wait, or that
 * came just as it ended by itself: then it may be held, and is to be given back.
 */
DIBS_MUST_CHECK dibs_status dibs__wait_acquire(dibs_client *cl,
                                               dibs__claim *claim,
                                               const dibs__want *want,
                                               const dibs__signals *sig,
                                               int *fatal, dibs_error *err);

#endif
