/* lease_args.h - the arguments and answers of the lease steps. Spans, never moments:
 * each side counts on its own clock. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_LEASE_ARGS_H
#define DIBS_STORE_LEASE_ARGS_H

#include "store/lease_entry.h"

/* How long a lease granted by hand-off stands until it is renewed, and how long
 * a waiter keeps its place after its last ask. */
enum { DIBS__CLAIM_MS = 3000, DIBS__PLACE_MS = 3000, DIBS__TOMB_MS = 10000 };

/* No lease is asked for longer than this, with its lock delay. No store has a use
 * for spans beyond the other, which are some 3,000 years. */
enum { DIBS__LEASE_MAX_MS = 24 * 3600 * 1000 };
#define DIBS__SPAN_MAX_MS INT64_C(100000000000000)

enum {
    DIBS__ASK_QUEUE = 1 << 0, /* join the queue when refused */
    DIBS__ASK_BARGE = 1 << 1, /* need not wait behind the queue */
    DIBS__ASK_TELL = 1 << 2 /* as a holder, notify me when others are refused */
};

enum { DIBS__ALL_MAX = 64 }; /* names that one step can acquire */

typedef struct dibs__ask {
    const char *name;
    const char *owner; /* DIBS_OWNER_SIZE - 1 hexadecimal digits */
    dibs__mode mode;
    uint32_t permits;  /* for DIBS__PERMITS: how many, */
    uint32_t capacity; /* ... of how many; else 1 and 0 */
    uint32_t flags;    /* DIBS__ASK_* */
    int32_t priority;  /* higher goes first */
    int64_t ttl_ms;
    int64_t most_ms;   /* more cannot be left of what is granted, be it by an
                          earlier ask or by hand-off; 0: DIBS__LEASE_MAX_MS */
    const char *who;   /* "host:pid label" */
    uint32_t replicas; /* so many must have it too, or it is not granted; 0 */
    bool alone; /* a hint: the last time it was granted at once, so that perhaps
                   the name is free, and the short way may be tried first */
} dibs__ask;

/* The capacity that it is about; 0 for a lock. */
static inline uint32_t dibs__ask_capacity(const dibs__ask *ask)
{
    return ask->mode == DIBS__PERMITS ? ask->capacity : 0;
}

typedef struct dibs__answer {
    uint64_t fence;  /* DIBS_OK: the lease's; DIBS_BUSY: the store's watermark,
                        the highest fence it had granted at that moment; in a
                        cluster that of the name's slot */
    int64_t left_ms; /* DIBS_OK: of the lease; DIBS_BUSY: until the first holder
                        in the way could end */
    bool queued;     /* DIBS_BUSY: has a place in the queue */
    bool claim;      /* DIBS_OK: granted by hand-off, stands for a claim only */
    uint32_t ahead;  /* DIBS_BUSY: waiters that go first */
    uint32_t acked;  /* DIBS_OK: replicas that have it, if any were asked for */
    bool under_replicated; /* too few replicas acknowledged the grant */
} dibs__answer;

typedef struct dibs__renewal {
    const char *name;
    const char *owner;
    uint64_t fence;
    int64_t ttl_ms;
    uint32_t replicas; /* so many must have it too */

    dibs_status rc;  /* out: DIBS_OK, DIBS_LOST, or what its server met;
                        DIBS_UNKNOWN also when too few replicas have it */
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

typedef struct dibs__conversion {
    const char *name;
    const char *owner;
    uint64_t fence;
    dibs__mode mode;      /* from now on; permits stay permits */
    const char *to_owner; /* has it from now on; `owner` when it stays */
    int64_t ttl_ms;       /* at least so much is left afterwards */
    uint32_t replicas;    /* so many must have it too, else DIBS_UNKNOWN */
} dibs__conversion;

#endif
