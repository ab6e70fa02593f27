/* shared_events.h - tells viewers what happens to the leases of a client.
 *
 * Only with dibs_client_opts.share_events. Events are gathered for a moment. A worker then
 * looks whether there are viewers, and sends them what there is, or drops it. Nothing
 * waits for that but dibs_close(), for a moment. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_CORE_STATS_SHARED_EVENTS_H
#define DIBS_CORE_STATS_SHARED_EVENTS_H

#include "core/lock/lock.h"
#include <dibs/viewer.h>

/* The lease that the handle has begins or ends now; `span` is how long it was waited for,
 * or held. Locks: cl->mutex. */
void dibs__shared_events_note(dibs_lock *lock, dibs_lease_event_kind kind,
                              dibsx_nsec span);

#endif
