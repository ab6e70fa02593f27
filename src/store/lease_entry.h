/* lease_entry.h - one holder or waiter of a name, as the store contract shows it. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_LEASE_ENTRY_H
#define DIBS_STORE_LEASE_ENTRY_H

#include <dibs/types.h>

/* The text `who` of a holder or waiter, with its NUL: "host:pid label", or
 * "host:pid/identity label"; then, each after a tab, "by-hand" when the lease is
 * not renewed by itself and may outlive the process, and "key=value" for each
 * piece of metadata. The text before the first tab is cut to DIBS__WHO_PLAIN, which
 * Redis keeps compactly. */
enum { DIBS__WHO_PLAIN = 64, DIBS__WHO_MAX = 320 };

typedef enum dibs__mode {
    DIBS__EXCLUSIVE = 0,
    DIBS__SHARED = 1,
    DIBS__PERMITS = 2
} dibs__mode;

/* One holder, waiter, or other entry of a name, as `inspect` and `list` show
 * it. The moments of grant.h have become spans. */
typedef struct dibs__entry {
    char owner[DIBS_OWNER_SIZE];
    bool holder; /* else a waiter */
    bool claim;  /* a holder by hand-off that has not renewed yet */
    bool left;   /* released, but others are still kept out */
    dibs__mode mode;
    uint32_t permits;
    uint32_t capacity;
    int32_t priority;
    uint64_t fence;
    int64_t ttl_ms;
    int64_t age_ms;
    int64_t left_ms;
    char who[DIBS__WHO_MAX];
} dibs__entry;

/* The entries of one name: holders first, then waiters as they will be served.
 * Borrowed for the call. Return false to stop. The store is not locked while
 * this runs. */
typedef bool dibs__entries_fn(const char *name, const dibs__entry *entries,
                              size_t count, void *arg);

/* The entries of one name on their way to such a function. A store fills them in
 * and frees them with dibs__display_fini(). */
typedef struct dibs__display {
    dibs__entries_fn *each;
    void *arg;
    dibs__entry *entries;
    size_t room;
} dibs__display;

/* Room for so many in all. False when memory is short. */
bool dibs__display_room(dibs__display *dp, size_t count);
void dibs__display_fini(dibs__display *dp);

#endif
