/* record.h - counts acquires and leases for the client and for the name.
 *
 * Owns nothing: the counters are the client's (counters.h), the table of names is
 * name_table.h's.
 *
 * Any thread. Locks: cl->mutex for everything here. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_CORE_STATS_RECORD_H
#define DIBS_CORE_STATS_RECORD_H

#include "core/lock/lock.h"

/* An acquire that asked the store has ended with this status. */
void dibs__record_acquired(dibs_lock *lock, dibs_status rc, dibsx_nsec waited,
                           bool contended);

/* A lease has ended. */
void dibs__record_ended(dibs_lock *lock, bool lost, dibsx_nsec held);

/* A lease that was held until now has ended, or the use of an idle sticky one.
 * Does nothing if that was counted already. */
void dibs__record_use_ended(dibs_lock *lock, bool valid);

#endif
