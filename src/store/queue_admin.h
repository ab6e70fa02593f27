/* queue_admin.h - the bounds of queues, and the steps of an operator: set, stats, peek,
 * purge, redrive, remove, list. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_QUEUE_ADMIN_H
#define DIBS_STORE_QUEUE_ADMIN_H

#include "base/clock.h"
#include <dibs/types.h>

struct dibs__store;

enum {
    DIBS__ITEM_MAX = (256 << 10) + (16 << 10), /* data and headers */
    DIBS__DEDUP_MAX = 64,
    DIBS__WORKER_MAX = 128, /* with its NUL, as the next */
    DIBS__REASON_MAX = 256,
    DIBS__RESULT_MAX = 1024,
    DIBS__PURGE_MAX = 1000,      /* items of one purge or redrive */
    DIBS__QUEUE_LIST_MAX = 1000, /* names of one list */

    DIBS__QUEUE_BATCH = 128,         /* items, settlements, tokens of a step */
    DIBS__QUEUE_BYTES = 1 << 20,     /* data of a push; of what reserve takes */
    DIBS__PUSH_KEPT_MS = 60000,      /* answers to pushes, at least */
    DIBS__LOST_DELAY_MAX_MS = 60000, /* 1st loss: 0, 2nd: 2 s, 3rd: 4 s .. */

    DIBS__QUEUE_CAP = 1000000, /* defaults of the settings */
    DIBS__QUEUE_TRIES = 16,
    DIBS__QUEUE_DEADS = 10000,
    DIBS__QUEUE_LOST_MAX = 4
};

/* An item is in one place at a time. */
typedef enum dibs__item_place {
    DIBS__PLACE_READY = 1 << 0,
    DIBS__PLACE_LATER = 1 << 1, /* delayed */
    DIBS__PLACE_OUT = 1 << 2,   /* delivered, and not settled */
    DIBS__PLACE_DEAD = 1 << 3,
    DIBS__PLACE_DONE = 1 << 4 /* a record of an item that is gone */
} dibs__item_place;

enum {
    DIBS__SET_PAUSED = 1 << 0,
    DIBS__SET_SERIAL = 1 << 1,
    DIBS__SET_CAP = 1 << 2,
    DIBS__SET_TRIES = 1 << 3,
    DIBS__SET_DEADS = 1 << 4,
    DIBS__SET_LOST_MAX = 1 << 5,
    DIBS__SET_KEEP_DONE = 1 << 6
};

/* 0 of a number: the default. */
typedef struct dibs__queue_conf {
    bool paused;    /* nothing is delivered; the rest goes on */
    bool serial;    /* one item is out at a time; its retry holds up the rest */
    uint32_t cap;   /* items that are ready, later or out */
    uint32_t tries; /* attempts of an item, until it is dead */
    uint32_t deads; /* dead letters; the oldest are dropped */
    uint32_t
        lost_max; /* deliveries that end without a word, until it is dead */
    uint32_t keep_done; /* records of the last items that were acked */
} dibs__queue_conf;

typedef struct dibs__queue_stats {
    dibs__queue_conf conf; /* with the defaults */
    uint64_t ready, later, out, dead;
    uint64_t done;     /* records that are kept */
    uint64_t beyond;   /* records that are there still, and are not shown */
    uint64_t lanes;    /* that reserve, and live */
    uint64_t waiting;  /* of these */
    int64_t oldest_ms; /* how long the first has been ready; 0: none is */
    uint64_t pushed, delivered, acked, nacked, lost, died, dropped, purged;
} dibs__queue_stats;

typedef struct dibs__item_view {
    uint64_t id;
    dibs__item_place place;
    int32_t priority;
    uint32_t attempts, lost;
    int64_t due_ms;        /* LATER */
    uint64_t lane;         /* OUT */
    uint64_t fence;        /* OUT */
    int64_t ended_wall_us; /* DEAD, DONE: since when */
    char to[DIBS__WORKER_MAX];
    char dedup[DIBS__DEDUP_MAX + 1];
    char reason[DIBS__REASON_MAX]; /* DEAD; of the others: of the last nack */
    const void *data; /* of DONE: the result; borrowed for the call */
    size_t len;
} dibs__item_view;

/* Return false to stop. The store is not locked while this runs. */
typedef bool dibs__item_fn(const dibs__item_view *item, void *arg);

/* As dibs__item_fn. */
typedef bool dibs__queue_fn(const char *queue, void *arg);

typedef struct dibs__queue_admin_ops {
    /* Changes the settings of `fields` (DIBS__SET_*); makes the queue. */
    dibs_status (*set)(struct dibs__store *st, const char *queue,
                       uint32_t fields, const dibs__queue_conf *conf,
                       dibsx_nsec deadline, dibs_error *err);

    /* DIBS_NOTFOUND: there is no such queue: no item, no lane, no setting. */
    dibs_status (*stats)(struct dibs__store *st, const char *queue,
                         dibsx_nsec deadline, dibs__queue_stats *out,
                         dibs_error *err);

    /* Up to `max` items of one place beyond the first `skip`: READY in the order of
     * delivery, addressed ones last; LATER as they become due; OUT by fence; DEAD
     * the oldest first; DONE the last one first. Changes nothing. */
    dibs_status (*peek)(struct dibs__store *st, const char *queue,
                        dibs__item_place place, size_t skip, size_t max,
                        dibsx_nsec deadline, dibs__item_fn *each, void *arg,
                        dibs_error *err);

    /* Drops up to `max` items of the places; fewer: no more were there. The tokens of
     * what was out are stale then. */
    dibs_status (*purge)(struct dibs__store *st, const char *queue,
                         uint32_t places, size_t max, dibsx_nsec deadline,
                         size_t *purged, dibs_error *err);

    /* Makes up to `max` dead letters, the oldest first, new items at the end, or the
     * one with that id. They have no dedup id any more. DIBS_FULL: none. */
    dibs_status (*redrive)(struct dibs__store *st, const char *queue,
                           uint64_t id, size_t max, dibsx_nsec deadline,
                           size_t *redriven, dibs_error *err);

    /* Forgets a queue with its settings, counters and records of done items. DIBS_BUSY: it has items, dead
     * letters or lanes. DIBS_NOTFOUND: there is none. */
    dibs_status (*remove)(struct dibs__store *st, const char *queue,
                          dibsx_nsec deadline, dibs_error *err);

    /* Up to `max` names of queues, as stats knows them, that begin with `begins` and
     * come behind `after` ("": from the first), in the order of their bytes. Fewer
     * than `max`, or than DIBS__QUEUE_LIST_MAX: there are no more. */
    dibs_status (*list)(struct dibs__store *st, const char *begins,
                        const char *after, size_t max, dibsx_nsec deadline,
                        dibs__queue_fn *each, void *arg, dibs_error *err);
} dibs__queue_admin_ops;

/* As DIBS__LEASE_STEPS(); the list of queues has a name of its own there. */
#define DIBS__QUEUE_ADMIN_STEPS(X)                                             \
    X(set, SET)                                                                \
    X(stats, STATS)                                                            \
    X(peek, PEEK)                                                              \
    X(purge, PURGE)                                                            \
    X(redrive, REDRIVE)                                                        \
    X(remove, REMOVE)                                                          \
    X(list, QUEUES)

#endif
