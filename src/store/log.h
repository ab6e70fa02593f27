/* log.h - the log steps of the store contract: entries in order, kept for a
 * while.
 *
 * A topic is a name of its own. Positions rise over all topics and are never
 * used again, as fences; a gap between two positions means nothing. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_LOG_H
#define DIBS_STORE_LOG_H

#include "base/clock.h"
#include <dibs/types.h>

struct dibs__store;

enum { DIBS__LOG_DATA_MAX = 64 << 10, DIBS__LOG_KEEP_MAX = 1 << 20 };

typedef struct dibs__log_entry {
    uint64_t position;
    int64_t store_wall_us; /* when it was appended, on the store's clock */
    const void *data;      /* borrowed for the call */
    size_t len;
} dibs__log_entry;

/* Return false to stop. The store is not locked while this runs. */
typedef bool dibs__log_fn(const dibs__log_entry *entry, void *arg);

typedef struct dibs__log_ops {
    /* Adds an entry at the end; the oldest beyond `keep` may go. An append is not
     * idempotent: after DIBS_UNKNOWN it may be there. */
    dibs_status (*append)(struct dibs__store *st, const char *topic,
                          const void *data, size_t len, uint32_t keep,
                          dibsx_nsec deadline, uint64_t *position,
                          dibs_error *err);

    /* Up to `max` entries after a position (0: from the oldest), in order. */
    dibs_status (*read)(struct dibs__store *st, const char *topic,
                        uint64_t after, size_t max, dibsx_nsec deadline,
                        dibs__log_fn *each, void *arg, dibs_error *err);
} dibs__log_ops;

/* As DIBS__LEASE_STEPS(). */
#define DIBS__LOG_STEPS(X)                                                     \
    X(append, APPEND)                                                          \
    X(read, READ)

#endif
