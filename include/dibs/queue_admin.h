/* queue_admin.h - queues from an operator's side: counts, settings, a look at items,
 * purge and redrive.
 *
 * A queue is there while it has an item, a dead letter, a consumer or a setting. Each
 * item is in one place: ready, later (delayed), out (delivered, not settled) or dead.
 * A done item is gone; a queue with `keep_done` keeps records of the last ones.
 *
 * Threads: any thread may make these calls. They block for the store. Callbacks run on
 * the calling thread and may use the client. Every call on a queue of a quorum (redlock:)
 * answers DIBS_UNSUPPORTED. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_QUEUE_ADMIN_H
#define DIBS_QUEUE_ADMIN_H

#include <dibs/client.h>
#include <dibs/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum dibs_item_place {
    DIBS_ITEM_READY = 1 << 0,
    DIBS_ITEM_LATER = 1 << 1, /* delayed */
    DIBS_ITEM_OUT = 1 << 2,   /* delivered, and not settled */
    DIBS_ITEM_DEAD = 1 << 3,
    DIBS_ITEM_DONE = 1 << 4 /* the record of an item that was acked */
} dibs_item_place;

/* Which settings dibs_queue_set() changes. */
enum {
    DIBS_QUEUE_SET_PAUSED = 1 << 0,
    DIBS_QUEUE_SET_SERIAL = 1 << 1,
    DIBS_QUEUE_SET_CAP = 1 << 2,
    DIBS_QUEUE_SET_TRIES = 1 << 3,
    DIBS_QUEUE_SET_DEADS = 1 << 4,
    DIBS_QUEUE_SET_LOST_MAX = 1 << 5,
    DIBS_QUEUE_SET_KEEP_DONE = 1 << 6
};

#define DIBS_QUEUE_KEEP_MAX 100000 /* records of done items in one queue */

/* Zero of a number is the default, given last here. */
typedef struct dibs_queue_settings {
    size_t size;     /* sizeof(dibs_queue_settings); the macro sets it */
    uint32_t fields; /* DIBS_QUEUE_SET_*: the ones to change */
    bool paused;     /* nothing is delivered; pushes and settlements go on */
    bool serial;     /* one item is out at a time; a retry holds up the rest */
    uint32_t cap;    /* items that are ready, later or out; 1,000,000 */
    uint32_t tries;  /* attempts of an item until it is dead; 16 */
    uint32_t deads;  /* dead letters; the oldest are dropped; 10,000 */
    uint32_t lost_max; /* deliveries lost with their consumers until it is dead;
                          4 */
    uint32_t keep_done; /* records of the last items that were acked, to
                           DIBS_QUEUE_KEEP_MAX; 0 */
} dibs_queue_settings;

#define DIBS_QUEUE_SETTINGS(...)                                               \
    (&(dibs_queue_settings){.size = sizeof(dibs_queue_settings), __VA_ARGS__})

/* The settings in force, what is in the queue now, and totals since it was made. */
typedef struct dibs_queue_info {
    size_t size;
    dibs_queue_settings settings; /* with the defaults; fields is 0 */
    uint64_t ready, later, out, dead;
    uint64_t done;      /* records of done items */
    uint64_t consumers; /* that live */
    uint64_t waiting;   /* of these, for an item */
    int64_t oldest_ms;  /* how long the first item has been ready; 0: none is */
    uint64_t pushed, delivered, acked, nacked;
    uint64_t lost; /* deliveries that ended with their consumer */
    uint64_t died; /* items that became dead letters */
    uint64_t
        dropped; /* dead letters beyond `deads`; items that a server lost */
    uint64_t purged;
} dibs_queue_info;

/* The name is valid during the call only. Return false to end the listing. */
typedef bool dibs_queue_fn(const char *queue, void *arg);

/* Calls `each` for every queue whose name begins with `begins` (NULL or "": all), in the
 * order of their bytes. */
DIBS_API DIBS_MUST_CHECK dibs_status dibs_queue_list(dibs_client *client,
                                                     const char *begins,
                                                     dibs_queue_fn *each,
                                                     void *arg,
                                                     dibs_error *err);

/* Reads the settings and the counts. A caller sets info->size to
 * sizeof(dibs_queue_info).
 *   DIBS_NOTFOUND  there is no such queue */
DIBS_API DIBS_MUST_CHECK dibs_status dibs_queue_stats(dibs_client *client,
                                                      const char *queue,
                                                      dibs_queue_info *info,
                                                      dibs_error *err);

/* Changes the settings that `fields` names, and makes the queue. Dead letters beyond a
 * lower `deads` go as other items die; dibs_queue_purge() drops all. */
DIBS_API DIBS_MUST_CHECK dibs_status
dibs_queue_set(dibs_client *client, const char *queue,
               const dibs_queue_settings *settings, dibs_error *err);

/* Stops and restarts deliveries. A queue can be paused before its first item. */
DIBS_API DIBS_MUST_CHECK dibs_status dibs_queue_pause(dibs_client *client,
                                                      const char *queue,
                                                      dibs_error *err);
DIBS_API DIBS_MUST_CHECK dibs_status dibs_queue_resume(dibs_client *client,
                                                       const char *queue,
                                                       dibs_error *err);

/* One item. */
typedef struct dibs_item_info {
    uint64_t id;
    dibs_item_place place;
    int32_t priority;
    uint32_t attempts;
    uint32_t lost;        /* attempts that ended with their consumer */
    int64_t due_ms;       /* of a delayed one: until it is ready */
    uint64_t fence;       /* of one that is out */
    int64_t dead_wall_us; /* of a dead one: since when */
    int64_t done_wall_us; /* of a done one: since when */
    const char *to;       /* the worker that it is for; "": none */
    const char *dedup_id; /* "": none */
    const char *reason;   /* of the last nack, or of its death; "": none */
    const char *const *headers; /* "key=value" texts; NULL ends */
    const void *data;           /* of a done one: its result */
    size_t len;
} dibs_item_info;

/* Texts and data are valid during the call only. Return false to end the listing. */
typedef bool dibs_item_info_fn(const dibs_item_info *info, void *arg);

/* Calls `each` for up to `max` items of one place, beyond the first `skip`. Ready items
 * come in the order of delivery, with addressed ones last. Delayed ones come as they
 * become due, dead ones the oldest first, done ones the last first. Changes nothing. Items
 * that come and go meanwhile may be missed or seen twice. A Redis server shows 10,000 items
 * that are out, and ready ones up to the 10,000th that has a priority or came back.
 *   DIBS_NOTFOUND  there is no such queue */
DIBS_API DIBS_MUST_CHECK dibs_status dibs_queue_peek(
    dibs_client *client, const char *queue, dibs_item_place place, size_t skip,
    size_t max, dibs_item_info_fn *each, void *arg, dibs_error *err);

/* Drops the items that are in these places now (DIBS_ITEM_* together), in steps of 1,000.
 * An item that is out loses its delivery: its consumer is answered DIBS_LOST. *purged
 * (may be NULL) receives the number of items, also after a failure.
 *   DIBS_NOTFOUND  there is no such queue
 *   DIBS_UNKNOWN   no answer; some may have gone. Repeat the call */
DIBS_API DIBS_MUST_CHECK dibs_status dibs_queue_purge(dibs_client *client,
                                                      const char *queue,
                                                      uint32_t places,
                                                      uint64_t *purged,
                                                      dibs_error *err);

/* The same for `max` items at most: a caller with little time goes on later. */
DIBS_API DIBS_MUST_CHECK dibs_status
dibs_queue_purge_some(dibs_client *client, const char *queue, uint32_t places,
                      uint64_t max, uint64_t *purged, dibs_error *err);

/* Makes dead letters new items at the end of the queue. Takes the one with this id. If
 * id is 0, it takes all that are dead now, the oldest first, up to `max` (0: no bound).
 * They begin at attempt 1 again, and have no dedup id any more. *redriven (may be NULL)
 * receives their number, also after a failure.
 *   DIBS_NOTFOUND  there is no such queue, or no dead letter with this id
 *   DIBS_FULL      the queue has no room for more
 *   DIBS_UNKNOWN   no answer; some may be new items. Repeat the call */
DIBS_API DIBS_MUST_CHECK dibs_status
dibs_queue_redrive(dibs_client *client, const char *queue, uint64_t id,
                   uint64_t max, uint64_t *redriven, dibs_error *err);

/* Forgets an empty queue, with its settings, totals and records of done items. More than
 * 1,000 records go first, the oldest before the others, in pieces: other calls run between
 * them. A call that stops in the middle has dropped only such records; repeat it.
 *   DIBS_BUSY      it has items, dead letters or consumers; it keeps its settings
 *                  and totals, and its records if it had any of these at first
 *   DIBS_NOTFOUND  there is no such queue
 *   DIBS_UNKNOWN   no answer, or it stopped among the records */
DIBS_API DIBS_MUST_CHECK dibs_status dibs_queue_remove(dibs_client *client,
                                                       const char *queue,
                                                       dibs_error *err);

#ifdef __cplusplus
}
#endif
#endif
