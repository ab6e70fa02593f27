/* monitor.h - who holds what, who waits for it, and taking it away by force.
 *
 * Ages and times left are computed by the store, on its own clock. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_MONITOR_H
#define DIBS_MONITOR_H

#include <dibs/client.h>
#include <dibs/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One holder or one waiter. */
typedef struct dibs_party {
    const char *owner; /* 32 hexadecimal digits */
    const char *host;
    int64_t pid;
    const char *label; /* "" when none was given */
    const char *mode;  /* "exclusive", "shared", "permits" */
    uint32_t permits;
    int32_t priority;
    uint64_t fence;  /* 0 for a waiter */
    int64_t ttl_ms;  /* what was asked for */
    int64_t age_ms;  /* since it was granted, or began to wait */
    int64_t left_ms; /* of the lease, or of the place in the queue */
    bool claim;      /* granted by hand-off and not yet confirmed */
    bool left;       /* released; others are kept out until left_ms ends */
} dibs_party;

/* A name with all that is known of it. Waiters are in the order in which they
 * will be served. Borrowed for the call. */
typedef struct dibs_lease_info {
    const char *name;  /* without the client's prefix */
    uint32_t capacity; /* permits in all; 0: not a semaphore */
    const dibs_party *holders;
    size_t holder_count;
    const dibs_party *waiters;
    size_t waiter_count;
} dibs_lease_info;

/* Return false to stop. The store has been read by then: the function may use
 * the client. */
typedef bool dibs_lease_fn(const dibs_lease_info *info, void *arg);

/* Every name in use that begins with `begins` (NULL or "": all), in order. */
DIBS_API DIBS_MUST_CHECK dibs_status dibs_lease_list(dibs_client *client,
                                                     const char *begins,
                                                     dibs_lease_fn *each,
                                                     void *arg,
                                                     dibs_error *err);

/* One name. DIBS_NOTFOUND: nobody holds it and nobody waits. */
DIBS_API DIBS_MUST_CHECK dibs_status dibs_lease_show(dibs_client *client,
                                                     const char *name,
                                                     dibs_lease_fn *each,
                                                     void *arg,
                                                     dibs_error *err);

/* Ends the lease of the holder with this fence, or of every holder when fence
 * is 0; the next in the queue is served at once. The former holder learns of it
 * at its next renewal or by its doorbell: until then it still believes, so the
 * fence is what protects the resource. `reason` (may be NULL) goes to the log;
 * *broken (may be NULL) is how many ended.
 *   DIBS_NOTFOUND  nobody holds it
 *   DIBS_STALE     held, but under another fence; nothing was changed */
DIBS_API DIBS_MUST_CHECK dibs_status
dibs_lease_break(dibs_client *client, const char *name, uint64_t fence,
                 const char *reason, uint32_t *broken, dibs_error *err);

#ifdef __cplusplus
}
#endif
#endif
