/* lease.h - the lease steps of the store contract.
 *
 * Owners are unique per acquisition and every step is idempotent by owner, so a
 * step whose answer was lost is simply sent again. The rule by which a lease is
 * granted is in store/grant.h. Times that cross this border are spans, never
 * moments: each side counts on its own clock. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_LEASE_H
#define DIBS_STORE_LEASE_H

#include "base/clock.h"
#include "store/entry.h"

struct dibs__store;

/* How long a lease granted by hand-off stands until it is renewed, and how long
 * a waiter keeps its place after its last ask. */
enum { DIBS__CLAIM_MS = 3000, DIBS__PLACE_MS = 3000, DIBS__TOMB_MS = 10000 };

enum {
    DIBS__ASK_QUEUE = 1 << 0, /* join the queue when refused */
    DIBS__ASK_BARGE = 1 << 1  /* need not wait behind the queue */
};

typedef struct dibs__ask {
    const char *name;
    const char *owner; /* DIBS_OWNER_SIZE - 1 hexadecimal digits */
    dibs__mode mode;
    uint32_t permits;  /* for DIBS__PERMITS: how many, */
    uint32_t capacity; /* ... of how many; else 1 and 0 */
    uint32_t flags;    /* DIBS__ASK_* */
    int32_t priority;  /* higher goes first */
    int64_t ttl_ms;
    const char *who; /* "host:pid label" */
} dibs__ask;

typedef struct dibs__answer {
    uint64_t fence;  /* DIBS_OK: the lease's; DIBS_BUSY: the store's watermark,
                        the highest fence it had granted at that moment */
    int64_t left_ms; /* DIBS_OK: of the lease; DIBS_BUSY: until the first holder
                        in the way could end */
    bool queued;     /* DIBS_BUSY: has a place in the queue */
    bool claim;      /* DIBS_OK: granted by hand-off, stands for a claim only */
    uint32_t ahead;  /* DIBS_BUSY: waiters that go first */
} dibs__answer;

typedef struct dibs__renewal {
    const char *name;
    const char *owner;
    uint64_t fence;
    int64_t ttl_ms;

    dibs_status rc;  /* out: DIBS_OK or DIBS_LOST */
    int64_t left_ms; /* out: of the lease, never less than before */
    bool wanted;     /* out: someone waits for the name */
} dibs__renewal;

typedef struct dibs__leave {
    const char *name;
    const char *owner;
    bool unanswered; /* another request of this owner has had no answer: leave a
                        tombstone, so that it grants nothing when it arrives */
    int64_t keep_ms; /* others are kept out for this long yet; 0: none */
    bool alone;      /* a hint: it was granted at once, so that perhaps nobody
                        waits, and the short way may be tried first */
} dibs__leave;

typedef enum dibs__news {
    DIBS__NEWS_GRANTED, /* the place in the queue became a claim */
    DIBS__NEWS_BROKEN,  /* the lease was taken away by force */
    DIBS__NEWS_MISSED   /* rings may have been lost: who waits had better ask;
                           has neither owner nor fence */
} dibs__news;

/* A notice on the doorbell of a client. */
typedef struct dibs__ring {
    char owner[DIBS_OWNER_SIZE];
    dibs__news news;
    uint64_t fence; /* of the grant, or of the lease that was broken */
} dibs__ring;

typedef struct dibs__lease_ops {
    /* Asks for a lease. First ends what has expired and serves the queue, as
     * the grant rule has it; whoever is served is rung.
     *   DIBS_OK        the owner holds it: by this ask, or since an earlier one,
     *                  whose fence and time left it then gives
     *   DIBS_BUSY      not granted; with DIBS__ASK_QUEUE the owner has a place
     *                  for DIBS__PLACE_MS, else there is no trace of it
     *   DIBS_LOST      the owner has left: a tombstone stands; no trace
     *   DIBS_MISMATCH  the name lives as another kind; no trace; err names both
     */
    dibs_status (*acquire)(struct dibs__store *st, const dibs__ask *ask,
                           dibsx_nsec deadline, dibs__answer *ans,
                           dibs_error *err);

    /* Renews many at once, each by owner and fence, to at least its ttl from
     * now. DIBS_OK: every item has its own rc. Else no item was renewed for
     * certain (DIBS_UNAVAIL) or perhaps some were (DIBS_UNKNOWN). */
    dibs_status (*renew)(struct dibs__store *st, dibs__renewal *items,
                         size_t count, dibsx_nsec deadline, dibs_error *err);

    /* Gives up whatever the owner has: its lease, its place, or a grant that it
     * has not heard of. Serves the queue and rings.
     *   DIBS_OK    it had a lease; now it has nothing
     *   DIBS_LOST  it had no lease (a place, if any, is gone) */
    dibs_status (*release)(struct dibs__store *st, const dibs__leave *leave,
                           dibsx_nsec deadline, dibs_error *err);

    /* DIBS_NOTFOUND: nobody holds the name and nobody waits. */
    dibs_status (*inspect)(struct dibs__store *st, const char *name,
                           dibsx_nsec deadline, dibs__entries_fn *each,
                           void *arg, dibs_error *err);

    /* Every name in use that begins with `begins`, in order. */
    dibs_status (*list)(struct dibs__store *st, const char *begins,
                        dibsx_nsec deadline, dibs__entries_fn *each, void *arg,
                        dibs_error *err);

    /* Ends the lease with this fence, or every lease of the name when it is 0;
     * rings those that had it, serves the queue.
     *   DIBS_OK        *broken leases ended
     *   DIBS_NOTFOUND  nobody holds it
     *   DIBS_STALE     held under other fences; nothing changed */
    dibs_status (*take)(struct dibs__store *st, const char *name,
                        uint64_t fence, dibsx_nsec deadline, uint32_t *broken,
                        dibs_error *err);
} dibs__lease_ops;

#endif
