/* shared_events.h - tells viewers what happens to the leases of a client.
 *
 * Only with dibs_client_opts.share_events. Events are gathered for a moment. A worker then
 * looks whether there are viewers, and sends them what there is, or drops it. Nothing
 * waits for that but dibs_close(). Leases that the client leaves to others, and those that
 * it adopted, about which it knows little, are not told of. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_CORE_STATS_SHARED_EVENTS_H
#define DIBS_CORE_STATS_SHARED_EVENTS_H

#include "core/lock/lock.h"
#include <dibs/viewer.h>

/* As the next, for a client that shares. Locks: cl->mutex. */
void dibs__shared_events_add(dibs_lock *lock, dibs_lease_event_kind kind,
                             uint64_t fence, dibsx_nsec since);

/* A lease of the handle begins or ends now: it was waited for, or held, since then.
 * Locks: cl->mutex. */
static inline void
dibs__shared_events_note(dibs_lock *lock, dibs_lease_event_kind kind,
                         uint64_t fence, dibsx_nsec since)
{
    if (lock->cl->share_events)
        dibs__shared_events_add(lock, kind, fence, since);
}

#endif
