/* renew_now.h - one renewal that the caller waits for. Runs on the calling thread, and
 * owns nothing. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_CORE_LOCK_RENEW_NOW_H
#define DIBS_CORE_LOCK_RENEW_NOW_H

#include "core/lock/lock.h"

/* Sends it; its own status when the step was done. Locks: cl->mutex, let go for the step. */
DIBS_MUST_CHECK dibs_status dibs__renew_one(dibs_lock *lock,
                                            dibs__renewal *item,
                                            dibsx_nsec sent_at,
                                            dibs_error *err);

#endif
