/* monitor.h - what the files of the lock monitor share: signs that a holder is gone,
 * and the trail of what was done by force. Owns nothing. Any thread, without the
 * client's mutex. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_CORE_MONITOR_MONITOR_H
#define DIBS_CORE_MONITOR_MONITOR_H

#include "core/client.h"
#include "core/who.h"

enum { DIBS__HINT_MAX = 64 };

/* Why the holder seems to be gone, into `hint`; false when it does not.
 *
 * A lease that is renewed by itself is renewed DIBS_RENEWALS_PER_TTL times in its
 * ttl. A holder counts as gone after it missed a renewal: one if this host knows that
 * the process has ended, two otherwise. Leases that the program renews, claims, and
 * released entries never count as gone.
 *
 * It is a hint. Containers may share the name of a host and not its processes,
 * and a node that is only cut off comes back: the fence is what protects. */
bool dibs__stale_hint(const dibs_client *cl, const dibs__entry *entry,
                      const dibs__who *who, char hint[DIBS__HINT_MAX]);

/* One lease that was ended by force. Texts are as the caller has them; the name
 * is without the client's prefix. */
typedef struct dibs__trail_item {
    const char *action;
    const char *name;
    const char *reason; /* may be NULL */
    const char *holder; /* its line in the store; "" when it is not known */
    uint64_t fence;
} dibs__trail_item;

/* Writes it to the trail. A failure is logged only, as the lease has ended. */
void dibs__trail_add(dibs_client *cl, const dibs__trail_item *item);

#endif
