/* convert.h - conversion of a held lease: the part that an upgrade, a downgrade and a
 * transfer share.
 *
 * Owns nothing. Runs on the thread that calls. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_CORE_LOCK_CONVERT_H
#define DIBS_CORE_LOCK_CONVERT_H

#include "core/lock/lock.h"

/* Sends a conversion, again when its answer was lost. Locks: cl->mutex, let go for the
 * step. */
DIBS_MUST_CHECK dibs_status dibs__convert_send(dibs_lock *lock,
                                               dibs__conversion *conversion,
                                               dibsx_nsec deadline,
                                               dibs__answer *ans,
                                               dibs_error *err);

#endif
