/* log.h - the log steps of the store contract: entries in order, kept for a
 * while.
 *
 * A topic is a name of its own. Positions rise and are never used again, as fences; the
 * numbers between two positions mean nothing. An entry knows the position before it in
 * its topic. A reader that comes from another position has missed entries that were
 * trimmed, or the store has gone back and lost some.
 *
 * An append tells the topic "log:TOPIC" its position (store/topic.h). */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_LOG_H
#define DIBS_STORE_LOG_H

#include "base/clock.h"
#include <dibs/types.h>

struct dibs__store;

enum {
    DIBS__LOG_DATA_MAX = 64 << 10,
    DIBS__LOG_KEEP_MAX = 1 << 20,
    DIBS__LOG_REPEAT_MS = 60000, /* an append is repeated within this */
    DIBS__LOG_TRIM_MAX = 1000    /* entries that one trim removes */
};

#define DIBS__LANE_MAX      ((UINT64_C(1) << 53) - 1)
#define DIBS__PRIOR_UNKNOWN UINT64_MAX

typedef struct dibs__log_entry {
    uint64_t position;
    uint64_t
        prior; /* the position before it in the topic, 0 for none, though it may
                       be trimmed; DIBS__PRIOR_UNKNOWN: of an older version */
    int64_t store_wall_us; /* when it was appended, on the store's clock; never
                              above the position */
    const void *data;      /* borrowed for the call */
    size_t len;
} dibs__log_entry;

/* Return false to stop. The store is not locked while this runs. */
typedef bool dibs__log_fn(const dibs__log_entry *entry, void *arg);

/* An entry to append. A lane is drawn at random by a writer, its numbers rise from 1, and
 * it has one request under way at a time. So the store keeps one row for each
 * writer that was active, where ids of entries would need one for each entry. */
typedef struct dibs__append {
    const char *topic;
    uint64_t lane;   /* 1 to DIBS__LANE_MAX; 0: the append is not idempotent */
    uint64_t number; /* of the request; the same again for a repeat */
    const void *data;
    size_t len;
    uint32_t keep;      /* entries; at least so many stay by this limit */
    int64_t keep_bytes; /* of data; 0: without limit */
    int64_t keep_ms;    /* 0: without limit */
} dibs__append;

typedef struct dibs__log_span {
    uint64_t first; /* the oldest entry that is kept; 0: none */
    uint64_t last;  /* the newest that ever was, kept or not; 0: none */
    uint64_t count; /* of entries that are kept */
    int64_t bytes;  /* of their data */
} dibs__log_span;

/* A topic of a list. */
typedef struct dibs__log_row {
    char name[DIBS_NAME_MAX + 1];
    dibs__log_span span;
} dibs__log_row;

/* Called for each topic; false: no more. */
typedef bool dibs__log_row_fn(const dibs__log_row *row, void *arg);

enum { DIBS__LOG_LIST_MAX = 250 };

/* Which topics a list is to have. */
typedef struct dibs__log_query {
    const char *begins; /* their names begin with it */
    const char *after;  /* they come behind this name; "": from the first */
    size_t max;         /* a list may end after DIBS__LOG_LIST_MAX already */
} dibs__log_query;

/* The topics of one list, where a short list costs the store less than a long one. */
static inline size_t dibs__log_list_max(const dibs__log_query *query)
{
    return query->max < DIBS__LOG_LIST_MAX ? query->max : DIBS__LOG_LIST_MAX;
}

/* The least text that a topic of the list can have: no name has a control character, so
 * that what comes behind a name is not below that name and a 1. It finds the first topic
 * without a look at the entries of the one before. */
enum { DIBS__LOG_FROM_SIZE = DIBS_NAME_MAX + 2 };
void dibs__log_list_from(const dibs__log_query *query,
                         char out[DIBS__LOG_FROM_SIZE]);

typedef struct dibs__log_ops {
    /* Adds an entry at the end; the oldest beyond a limit may go, a few for each
     * append. With a lane, a repeat within DIBS__LOG_REPEAT_MS adds nothing and has
     * the same position. Without one, the entry may be there after DIBS_UNKNOWN.
     *   DIBS_LOST  the lane has done a later number; nothing changed */
    dibs_status (*append)(struct dibs__store *st, const dibs__append *what,
                          dibsx_nsec deadline, uint64_t *position,
                          dibs_error *err);

    /* Up to `max` entries after a position (0: from the oldest), in order. */
    dibs_status (*read)(struct dibs__store *st, const char *topic,
                        uint64_t after, size_t max, dibsx_nsec deadline,
                        dibs__log_fn *each, void *arg, dibs_error *err);

    /* The bounds of a topic at one moment; zeros where nothing was appended. */
    dibs_status (*bounds)(struct dibs__store *st, const char *topic,
                          dibsx_nsec deadline, dibs__log_span *out,
                          dibs_error *err);

    /* Removes the oldest entries up to and with a position, DIBS__LOG_TRIM_MAX at
     * most; *gone says how many. Positions go on behind those that are gone. */
    dibs_status (*trim)(struct dibs__store *st, const char *topic,
                        uint64_t through, dibsx_nsec deadline, uint64_t *gone,
                        dibs_error *err);

    /* The topics to which something was appended, in the order of the bytes of their
     * names, each with its bounds at one moment. Fewer than `max`, or than
     * DIBS__LOG_LIST_MAX: there are no more. The store is not locked while `each`
     * runs. For the deadline see the rosters of store/roster.h. */
    dibs_status (*logs)(struct dibs__store *st, const dibs__log_query *query,
                        dibsx_nsec deadline, dibs__log_row_fn *each, void *arg,
                        dibs_error *err);
} dibs__log_ops;

/* As DIBS__LEASE_STEPS(). */
#define DIBS__LOG_STEPS(X)                                                     \
    X(append, APPEND)                                                          \
    X(read, READ)                                                              \
    X(bounds, BOUNDS)                                                          \
    X(trim, TRIM)                                                              \
    X(logs, LOGS)

/* Refuses an entry that no store takes. Pure. */
DIBS_MUST_CHECK dibs_status dibs__append_check(const dibs__append *what,
                                               dibs_error *err);

/* The answer to a number that is over: DIBS_LOST. */
dibs_status dibs__append_late(dibs_error *err);

#endif
