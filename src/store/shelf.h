/* shelf.h - how the rule of store/deliver.h reaches the lanes and items of one queue.
 *
 * A store implements the operations, in one transaction for each step. Every finder
 * answers DIBS_NOTFOUND when there is none; any other status than these two is a failure that ends
 * the step. Finders copy; nothing that they answer changes by itself. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_SHELF_H
#define DIBS_STORE_SHELF_H

#include "store/queue.h"

/* An address of a doorbell with its NUL; workers. */
enum { DIBS__SHELF_BELL_MAX = 40, DIBS__SHELF_GONE_MAX = 16 };

/* All that a store keeps of a queue beside its lanes and items. */
typedef struct dibs__queue_head {
    dibs__queue_conf conf; /* as set; 0 of a number: the default */
    uint64_t items;        /* ready, later or out */
    uint64_t dead, done;   /* of done items: records */
    uint64_t pushed, delivered, acked, nacked, lost, died, dropped, purged;
    bool changed; /* write it */
} dibs__queue_head;

typedef struct dibs__lane {
    uint64_t lane;
    uint64_t number; /* of the request done last, or DIBS__LANE_OVER */
    uint64_t stamp;  /* of its answer */
    int64_t until_us;
    int64_t waits_us; /* when it asked last; 0: it does not wait */
    uint32_t want;
    uint32_t hands;
    int64_t limit_ms;
    char as[DIBS__WORKER_MAX];
    char bell[DIBS__SHELF_BELL_MAX];
    char results[DIBS__QUEUE_BATCH + 1]; /* dibs__settle_mark() of each */
} dibs__lane;

/* An item that is not dead. It is out when it has a lane, later when it is due at a
 * moment, else ready. */
typedef struct dibs__item {
    uint64_t id;
    int32_t priority;
    uint64_t place;
    int64_t due_wall_us; /* 0: it is not delayed */
    uint64_t lane;       /* 0: it is not out */
    uint64_t fence;
    uint64_t told;    /* the number whose answer has it; 0: it is unheard */
    int64_t limit_us; /* 0: none */
    uint32_t attempts, lost, tries;
    size_t len;                 /* of its data */
    char to[DIBS__WORKER_MAX];  /* "" for everybody, as the next */
    char own[DIBS__WORKER_MAX]; /* for whom it is ready: `to`, if that lives */
    char dedup[DIBS__DEDUP_MAX + 1];
    char reason[DIBS__REASON_MAX]; /* of the last nack */
} dibs__item;

/* The last request of a lane that pushes. */
typedef struct dibs__pusher {
    uint64_t lane;
    uint64_t number; /* 0: not known */
    dibs_status rc;
    size_t count;
    uint64_t ids[DIBS__QUEUE_BATCH];
    bool duplicate[DIBS__QUEUE_BATCH];
} dibs__pusher;

typedef struct dibs__dedup {
    uint64_t id;           /* of its item */
    bool alive;            /* that is still there */
    int64_t until_wall_us; /* the end of its window */
} dibs__dedup;

typedef struct dibs__shelf {
    const struct dibs__shelf_ops *ops;
    dibs__queue_head head;
    int64_t now_us;      /* the clock of lanes and limits */
    int64_t now_wall_us; /* of delays and windows */
    uint64_t watermark;  /* raised by each number that is drawn */
    const char *bell;    /* the doorbell of the client that asks */
    dibs_error *err;
    /* For the rule alone. */
    size_t answered_bytes;
    bool robbing;
    char robbed[DIBS__WORKER_MAX];
    uint64_t steals_left;
    size_t freed, freed_bytes, gone_count;             /* by this step */
    char gone[DIBS__SHELF_GONE_MAX][DIBS__WORKER_MAX]; /* not all is freed */
} dibs__shelf;

typedef struct dibs__shelf_ops {
    dibs_status (*lane_find)(dibs__shelf *, uint64_t lane, dibs__lane *out);
    dibs_status (*lane_put)(dibs__shelf *, const dibs__lane *);
    dibs_status (*lane_drop)(dibs__shelf *, uint64_t lane);
    /* One whose time is up; of those that are over, one above `after`. */
    dibs_status (*lane_ended)(dibs__shelf *, uint64_t after, dibs__lane *out);
    /* The lane that asked last among those that wait and live; `as` not NULL: of that
     * worker. */
    dibs_status (*lane_waiting)(dibs__shelf *, const char *as, dibs__lane *out);
    dibs_status (*lanes_waiting)(dibs__shelf *, uint64_t *count);

    dibs_status (*worker_lives)(dibs__shelf *, const char *worker, bool *out);
    /* The worker for whom most items are ready. */
    dibs_status (*worker_richest)(dibs__shelf *, char out[DIBS__WORKER_MAX],
                                  uint64_t *count);

    dibs_status (*item_find)(dibs__shelf *, uint64_t id, dibs__item *out);
    dibs_status (*item_make)(dibs__shelf *, const dibs__item *,
                             const void *data);
    dibs_status (*item_put)(dibs__shelf *, const dibs__item *);
    dibs_status (*item_drop)(dibs__shelf *, uint64_t id);
    /* The first that is ready for that worker; "": for everybody. */
    dibs_status (*item_ready)(dibs__shelf *, const char *own, dibs__item *out);
    /* The first of a lane with a fence above `after`; all, or those of one answer. */
    dibs_status (*item_had)(dibs__shelf *, uint64_t lane, uint64_t after,
                            dibs__item *out);
    dibs_status (*item_told)(dibs__shelf *, uint64_t lane, uint64_t told,
                             uint64_t after, dibs__item *out);
    dibs_status (*item_later)(dibs__shelf *, uint64_t skip, dibs__item *out);
    dibs_status (*item_late)(dibs__shelf *, dibs__item *out); /* limit passed */
    dibs_status (*item_any)(dibs__shelf *, dibs__item_place, dibs__item *out);
    /* One is out, or was and is delayed: that holds up a serial queue. */
    dibs_status (*is_held_up)(dibs__shelf *, bool *out);

    dibs_status (*dedup_find)(dibs__shelf *, const char *id, dibs__dedup *out);
    dibs_status (*dedup_put)(dibs__shelf *, const char *id,
                             const dibs__dedup *);
    dibs_status (*dedup_drop)(dibs__shelf *, const char *id);

    /* Moves the item to the dead letters. */
    dibs_status (*dead_put)(dibs__shelf *, const dibs__item *,
                            const char *reason);
    /* Keeps a record of an item that is done. */
    dibs_status (*done_put)(dibs__shelf *, const dibs__item *,
                            const char *result, size_t len);
    dibs_status (*done_drop)(dibs__shelf *); /* the oldest */
    dibs_status (*dead_drop)(dibs__shelf *); /* the oldest */
    /* Moves the oldest, or that with the id, back: as item `as_id`, ready. */
    dibs_status (*dead_redrive)(dibs__shelf *, uint64_t id, uint64_t as_id,
                                dibs__item *out);

    dibs_status (*pusher_find)(dibs__shelf *, uint64_t lane, dibs__pusher *out);
    dibs_status (*pusher_put)(dibs__shelf *, const dibs__pusher *);

    /* Tells the lane to ask; the item that was handed over, or NULL. */
    void (*ring)(dibs__shelf *, const dibs__lane *, const dibs__item *);
    /* Adds the item to the answer, with its data. */
    dibs_status (*answer)(dibs__shelf *, const dibs__item *);
} dibs__shelf_ops;

#endif
