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
    const char
        *identity;     /* thread or name within the process; "" the main one */
    const char *meta;  /* "key=value" texts, a tab between them; "" none */
    const char *stale; /* why the holder seems to be gone, or NULL */
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

/* A holder is stale when it has not renewed when it should have: once, and its
 * process is gone (known on this host), or twice, as if its node were gone. With
 * DIBS_LOCK_NO_RENEW nobody can tell, and it never is. A hint: the lease still
 * runs, its holder may come back, and containers may share the name of a host but
 * not its processes; the fence is what protects the resource. This ends those
 * leases, with an entry of the trail each; `reason` NULL: the hint is the reason;
 * *broken (may be NULL) is how many. `begins` as in dibs_lease_list(). */
DIBS_API DIBS_MUST_CHECK dibs_status dibs_lease_break_stale(dibs_client *client,
                                                            const char *begins,
                                                            const char *reason,
                                                            uint32_t *broken,
                                                            dibs_error *err);

/* Asks the holder with this fence, or every holder when it is 0, to give the
 * lease back. A holder acts on it if it has an on_yield callback or is sticky;
 * *asked (may be NULL) is how many have a doorbell to be told by. It may go on as
 * if nothing was said.
 *   DIBS_NOTFOUND, DIBS_STALE   as dibs_lease_break() */
DIBS_API DIBS_MUST_CHECK dibs_status dibs_lease_yield(dibs_client *client,
                                                      const char *name,
                                                      uint64_t fence,
                                                      uint32_t *asked,
                                                      dibs_error *err);

/* Ends the lease of the holder with this fence, or of every holder when fence
 * is 0; the next in the queue is served at once. The former holder learns of it
 * at its next renewal or by its doorbell: until then it still believes, so the
 * fence is what protects the resource. `reason` (may be NULL) goes to the log and
 * the trail; *broken (may be NULL) is how many ended.
 *   DIBS_NOTFOUND  nobody holds it
 *   DIBS_STALE     held, but under another fence; nothing was changed */
DIBS_API DIBS_MUST_CHECK dibs_status
dibs_lease_break(dibs_client *client, const char *name, uint64_t fence,
                 const char *reason, uint32_t *broken, dibs_error *err);

/* What was done by force, kept by the store: the latest thousand or so, for the
 * clients of each prefix. */
typedef struct dibs_trail_entry {
    uint64_t position;
    int64_t wall_us;    /* on the store's clock */
    const char *action; /* "break", "break-stale" */
    const char *name;   /* without the client's prefix */
    const char *by;     /* "host:pid label" of who did it */
    const char *reason; /* "" when none was given; cut to some 500 bytes */
    const char *holder; /* the same of who lost it; "" when not known */
    uint64_t fence;     /* of the lease that was ended */
} dibs_trail_entry;

typedef bool dibs_trail_fn(const dibs_trail_entry *entry, void *arg);

/* Entries after a position (0: from the oldest), in order. Each return false
 * stops. */
DIBS_API DIBS_MUST_CHECK dibs_status dibs_trail_read(dibs_client *client,
                                                     uint64_t after,
                                                     dibs_trail_fn *each,
                                                     void *arg,
                                                     dibs_error *err);

/* One who waits in a circle: it holds `holds` and waits for `wants`, which the
 * next one of the circle holds. */
typedef struct dibs_wait_link {
    const char *who; /* "host:pid" or "host:pid/identity" */
    const char *label;
    const char *holds; /* names without the client's prefix */
    uint64_t fence;    /* under which it holds that */
    const char *wants;
    int64_t waited_ms;
} dibs_wait_link;

/* A circle of at least two, or of one that waits for itself. */
typedef bool
dibs_deadlock_fn(const dibs_wait_link *links, size_t count, void *arg);

/* Finds those who wait for each other in circles among the names in use; each of
 * them is shown in at least one circle. A reader that stands behind a writer waits
 * for what the writer waits for, and for permits nobody waits in a circle while a
 * release that can still happen would do. Who waits and who holds are told apart
 * by host, process and identity (the thread by default), so a program that hands
 * handles between threads may name an identity to be seen right. Locks with a
 * bounded wait get out of a circle by themselves. */
DIBS_API DIBS_MUST_CHECK dibs_status dibs_deadlocks(dibs_client *client,
                                                    const char *begins,
                                                    dibs_deadlock_fn *each,
                                                    void *arg, dibs_error *err);

/* Spans in microseconds; from buckets, so within an eighth of the truth. */
typedef struct dibs_spans {
    uint64_t count;
    uint64_t p50_us;
    uint64_t p95_us;
    uint64_t p99_us;
    uint64_t max_us;
} dibs_spans;

/* What became of the acquires of one name. */
typedef struct dibs_name_stats {
    size_t size;
    const char *name;  /* without the client's prefix */
    uint64_t attempts; /* = acquired + busy + failed + those that still wait */
    uint64_t acquired;
    uint64_t busy;   /* refused, or not granted in time */
    uint64_t failed; /* ended by an error */
    uint64_t released;
    uint64_t lost;
    uint64_t contended; /* acquires that had to wait, or were refused */
    dibs_spans wait;    /* from the call to the grant */
    dibs_spans hold;    /* from the grant to the end */
} dibs_name_stats;

typedef bool dibs_name_stats_fn(const dibs_name_stats *stats, void *arg);

/* Names that this client has used (the latest 1,024), the most contended first. */
DIBS_API DIBS_MUST_CHECK dibs_status dibs_name_stats_own(
    dibs_client *client, dibs_name_stats_fn *each, void *arg, dibs_error *err);

/* The same from all clients of this prefix that share theirs
 * (dibs_client_opts.share_stats), as of a few seconds ago; the 4,096 most
 * contended. Kept for a day after the last use, as values under keys that begin
 * with "dibs.stats/"; names that leave no room for that are not shared. */
DIBS_API DIBS_MUST_CHECK dibs_status
dibs_name_stats_shared(dibs_client *client, const char *begins,
                       dibs_name_stats_fn *each, void *arg, dibs_error *err);

#ifdef __cplusplus
}
#endif
#endif
