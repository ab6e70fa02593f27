/* monitor.h - holders and waiters, revocation, deadlocks, statistics.
 *
 * The store computes ages and remaining times on its own clock.
 *
 * Threads: any thread may make these calls. They block for the store, except
 * dibs_name_stats_own(). Callbacks run on the calling thread and may use the
 * client. Their arguments are valid during the call only. A callback that
 * returns false ends the listing. */
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
    const char *label; /* "": none */
    const char *mode;  /* "exclusive", "shared", "permits" */
    uint32_t permits;
    int32_t priority;
    uint64_t fence;  /* 0 for a waiter */
    int64_t ttl_ms;  /* the lease length it asked for */
    int64_t age_ms;  /* since the grant, or since it began to wait */
    int64_t left_ms; /* of the lease, or of the place in the queue */
    bool claim;      /* granted to a waiter that has not confirmed it yet */
    bool left;       /* released; hold_min_ms keeps others out for left_ms */
    const char
        *identity;     /* thread or name within the process; "" the main one */
    const char *meta;  /* "key=value" texts, separated by tabs; "": none */
    const char *stale; /* why the holder seems to be gone; NULL: it does not */
} dibs_party;

/* A name with its holders and its waiters, in the order of service. */
typedef struct dibs_lease_info {
    const char *name;  /* without the client's prefix */
    uint32_t capacity; /* of a semaphore; 0: not one */
    const dibs_party *holders;
    size_t holder_count;
    const dibs_party *waiters;
    size_t waiter_count;
} dibs_lease_info;

typedef bool dibs_lease_fn(const dibs_lease_info *info, void *arg);

/* Calls `each` for every name in use that begins with `begins` (NULL or "":
 * all), in order. */
DIBS_API DIBS_MUST_CHECK dibs_status dibs_lease_list(dibs_client *client,
                                                     const char *begins,
                                                     dibs_lease_fn *each,
                                                     void *arg,
                                                     dibs_error *err);

/* Calls `each` for one name.
 *   DIBS_NOTFOUND  the name has no holder and no waiter */
DIBS_API DIBS_MUST_CHECK dibs_status dibs_lease_show(dibs_client *client,
                                                     const char *name,
                                                     dibs_lease_fn *each,
                                                     void *arg,
                                                     dibs_error *err);

/* Revokes the leases of stale holders, each with an entry in the trail. A holder
 * is stale if it missed one renewal and its process is gone (known on this host
 * only), or if it missed two. With DIBS_LOCK_NO_RENEW it never is.
 *
 * Staleness is a hint: the lease still runs and its holder may come back.
 * Containers may share a host name but not processes. The fence protects the
 * resource. `begins` is as in dibs_lease_list(). `reason` goes to the trail
 * (NULL: the hint). *broken (may be NULL) receives the number of leases, also
 * after a failure.
 *   DIBS_UNKNOWN  no answer; some may be revoked. Repeat the call */
DIBS_API DIBS_MUST_CHECK dibs_status dibs_lease_break_stale(dibs_client *client,
                                                            const char *begins,
                                                            const char *reason,
                                                            uint32_t *broken,
                                                            dibs_error *err);

/* Asks the holder with this fence, or every holder when it is 0, to release. A
 * holder hears it if it has an on_yield callback or a sticky lock; it may ignore
 * it. *asked (may be NULL) receives the number of holders with a doorbell.
 *   DIBS_NOTFOUND, DIBS_STALE   as dibs_lease_break()
 *   DIBS_UNSUPPORTED            the store has no doorbell */
DIBS_API DIBS_MUST_CHECK dibs_status dibs_lease_yield(dibs_client *client,
                                                      const char *name,
                                                      uint64_t fence,
                                                      uint32_t *asked,
                                                      dibs_error *err);

/* Revokes the lease of the holder with this fence, or of every holder when it is
 * 0. The store grants the name to the next waiter at once. The former holder
 * finds out by its doorbell or at its next renewal. Until then only the fence
 * protects the resource. `reason` (may be NULL) goes to the log and the trail.
 * *broken (may be NULL) receives the number of leases.
 *   DIBS_NOTFOUND  the name has no holder
 *   DIBS_STALE     held under another fence; nothing changed */
DIBS_API DIBS_MUST_CHECK dibs_status
dibs_lease_break(dibs_client *client, const char *name, uint64_t fence,
                 const char *reason, uint32_t *broken, dibs_error *err);

/* One revocation, or another change that an operator made. The store keeps about the
 * latest 1,000 for each prefix. */
typedef struct dibs_trail_entry {
    uint64_t position;
    int64_t wall_us; /* on the store's clock */
    const char
        *action;      /* "break", "break-stale", or as dibs_trail_add() says */
    const char *name; /* without the client's prefix */
    const char *by;   /* the client that did it: "host:pid label" */
    const char *reason; /* "": none; cut to 511 bytes */
    const char *holder; /* the former holder, likewise; "": not known */
    uint64_t fence;     /* of the revoked lease; 0: none */
} dibs_trail_entry;

typedef bool dibs_trail_fn(const dibs_trail_entry *entry, void *arg);

/* Calls `each` for the entries after a position (0: from the oldest), in order.
 *   DIBS_UNSUPPORTED  the store has no log */
DIBS_API DIBS_MUST_CHECK dibs_status dibs_trail_read(dibs_client *client,
                                                     uint64_t after,
                                                     dibs_trail_fn *each,
                                                     void *arg,
                                                     dibs_error *err);

/* Adds an entry about a change that was made. `action` is 1 to 31 of a to z, 0 to 9 and
 * "-", such as "queue-purge"; `name` says of which thing. `reason` may be NULL. Revocations
 * have an entry already.
 *   DIBS_INVALID      the action or the name is malformed
 *   DIBS_UNSUPPORTED  the store has no log */
DIBS_API DIBS_MUST_CHECK dibs_status
dibs_trail_add(dibs_client *client, const char *action, const char *name,
               uint64_t fence, const char *reason, dibs_error *err);

/* One member of a deadlock: it holds `holds` and waits for `wants`, which the
 * next member holds. */
typedef struct dibs_wait_link {
    const char *who; /* "host:pid" or "host:pid/identity" */
    const char *label;
    const char *holds; /* names are without the client's prefix */
    uint64_t fence;    /* of `holds` */
    const char *wants;
    int64_t waited_ms;
} dibs_wait_link;

/* A deadlock of at least two members, or of one that waits for itself. */
typedef bool
dibs_deadlock_fn(const dibs_wait_link *links, size_t count, void *arg);

/* Finds deadlocks among the names in use that begin with `begins`, and calls
 * `each` per deadlock. Every member appears at least once, within a bounded search.
 * A reader behind a waiting writer counts as waiting for the holders that the
 * writer waits for. A semaphore is part of a deadlock only if no possible
 * release would help.
 *
 * Host, process and identity (by default the thread) identify a member. A
 * program that moves handles between threads should set opts.identity. A process
 * that waits on behalf of leases of another process lists their owners in
 * opts.meta: "within=OWNER,OWNER", each with 8 digits at least. Its wait counts as
 * one of their holders, too; dibs run does so inside another. An acquire with a
 * timeout leaves a deadlock by itself.
 *   DIBS_NOMEM  no memory, or too many waiters */
DIBS_API DIBS_MUST_CHECK dibs_status dibs_deadlocks(dibs_client *client,
                                                    const char *begins,
                                                    dibs_deadlock_fn *each,
                                                    void *arg, dibs_error *err);

/* A distribution of times in microseconds. The percentiles come from buckets and
 * are accurate to a sixteenth. */
typedef struct dibs_spans {
    uint64_t count;
    uint64_t p50_us;
    uint64_t p95_us;
    uint64_t p99_us;
    uint64_t max_us;
    uint64_t mean_us; /* of the exact times */
} dibs_spans;

/* How many times were about as long as this, to a sixteenth. */
typedef struct dibs_span_count {
    uint64_t span_us;
    uint64_t count;
} dibs_span_count;

/* Counters of one name. */
typedef struct dibs_name_stats {
    size_t size;       /* of the fields that the library has set */
    const char *name;  /* without the client's prefix */
    uint64_t attempts; /* acquired + busy + failed + acquires in progress */
    uint64_t acquired;
    uint64_t busy;   /* refused, timed out or cancelled */
    uint64_t failed; /* ended by an error */
    uint64_t released;
    uint64_t lost;
    uint64_t contended; /* acquires that had to wait or were refused */
    dibs_spans wait;    /* from the call to the grant */
    dibs_spans hold;    /* from the grant to the end */
    uint64_t wait_total_us, hold_total_us; /* of the exact times */
    const dibs_span_count *wait_counts; /* the distribution, shortest first */
    size_t wait_counts_len;
    const dibs_span_count *hold_counts;
    size_t hold_counts_len;
} dibs_name_stats;

typedef bool dibs_name_stats_fn(const dibs_name_stats *stats, void *arg);

/* Calls `each` for the names that this client used (the latest 1,024), the most
 * contended first. Does not contact the store.
 *   DIBS_NOMEM  no memory */
DIBS_API DIBS_MUST_CHECK dibs_status dibs_name_stats_own(
    dibs_client *client, dibs_name_stats_fn *each, void *arg, dibs_error *err);

/* The same for all clients of this prefix with dibs_client_opts.share_stats,
 * some seconds old: the 4,096 most contended names that begin with `begins`. The
 * store keeps them as values "dibs.stats/NAME" for a day after the last use.
 * Names too long for such a key are missing.
 *   DIBS_UNSUPPORTED  the store has no values */
DIBS_API DIBS_MUST_CHECK dibs_status
dibs_name_stats_shared(dibs_client *client, const char *begins,
                       dibs_name_stats_fn *each, void *arg, dibs_error *err);

#ifdef __cplusplus
}
#endif
#endif
