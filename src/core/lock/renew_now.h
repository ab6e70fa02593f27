/* renew_now.h - taking over a lease that another process left. Runs on the thread that
 * calls, and owns nothing. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_CORE_LOCK_RENEW_NOW_H
#define DIBS_CORE_LOCK_RENEW_NOW_H

#include "core/lock/lock.h"

/* As dibs_lock_adopt(); `sure`: it is what the options say. Locks: none held. */
DIBS_MUST_CHECK dibs_status dibs__lock_take_over(dibs_lock *lock,
                                                 const char *owner,
                                                 uint64_t fence, bool sure,
                                                 dibs_error *err);

#endif
