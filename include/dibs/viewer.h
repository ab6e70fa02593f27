/* viewer.h - leases as they come and go, told by the clients that have them.
 *
 * A look at the store (monitor.h) misses a lease that is held for less than its step.
 * Clients with dibs_client_opts.share_events tell what happens to their leases while
 * there is a viewer with the same prefix, and nothing while there is none. It comes in
 * messages (events.h), up to half a second late, which the store does not keep. Only a
 * look shows the leases of other clients, and the end of those whose client died. The same
 * goes for leases that a client leaves to another or adopts. A quorum (redlock:) has no
 * viewers: DIBS_UNSUPPORTED.
 *
 * Threads: any thread may make these calls, but one at a time for each viewer. They
 * block for the store. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_VIEWER_H
#define DIBS_VIEWER_H

#include <dibs/client.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum dibs_lease_event_kind {
    DIBS_LEASE_ACQUIRED = 0,
    DIBS_LEASE_RELEASED,
    DIBS_LEASE_LOST,  /* it ended before its holder released it */
    DIBS_LEASE_MISSED /* some events did not come; look at the store */
} dibs_lease_event_kind;

/* One thing that happened to a lease. The texts are valid until the next call for the
 * viewer; those of DIBS_LEASE_MISSED are "". */
typedef struct dibs_lease_event {
    dibs_lease_event_kind kind;
    const char *name; /* without the client's prefix */
    const char *host;
    int64_t pid;
    const char *identity; /* as in dibs_party */
    const char *label;
    const char *mode; /* "exclusive", "shared", "permits" */
    uint64_t fence;
    int64_t span_ms; /* how long it waited for the lease, or held it */
    int64_t age_ms;  /* from what happened until its client told it */
    uint64_t missed; /* of DIBS_LEASE_MISSED: so many; 0: not known */
} dibs_lease_event;

typedef struct dibs_viewer dibs_viewer;

/* Begins to view the leases of the client's prefix. Clients that share their events
 * notice it within about two seconds. Free it with dibs_viewer_free().
 *   DIBS_UNAVAIL      the store cannot be heard now
 *   DIBS_DENIED       the store forbids it
 *   DIBS_UNSUPPORTED  a quorum; the message says why */
DIBS_API DIBS_MUST_CHECK dibs_status dibs_viewer_new(dibs_client *client,
                                                     dibs_viewer **out,
                                                     dibs_error *err);

/* Waits for the next event, for wait_ms at most. -1: without limit; 0: looks once. A
 * viewer that does not call it for ten seconds gets no more news until it does.
 *   DIBS_TIMEOUT    no event in time
 *   DIBS_CANCELLED  dibs_viewer_cancel() or dibs_close() ended the wait
 *   DIBS_UNAVAIL    the time is over and the store could not be heard */
DIBS_API DIBS_MUST_CHECK dibs_status dibs_viewer_next(dibs_viewer *viewer,
                                                      int64_t wait_ms,
                                                      dibs_lease_event *out,
                                                      dibs_error *err);

/* Ends the wait of dibs_viewer_next() on another thread, or the next one. Does not block;
 * not safe in a signal handler. */
DIBS_API void dibs_viewer_cancel(dibs_viewer *viewer);

/* Frees the viewer; no other thread may use it any more. NULL is a no-op. */
DIBS_API void dibs_viewer_free(dibs_viewer *viewer);

#ifdef __cplusplus
}
#endif
#endif
