/* queue.h - queues: each item is done by one consumer.
 *
 * A consumer reserves items, works on them and settles each: ack (it is done), nack
 * (again, later) or dead (never again). If the consumer dies, its items come back within
 * its ttl_ms. An item is delivered at least once until it is acked or dead. The store
 * accepts an ack of one delivery alone. The work itself may be done more often: give
 * dibs_item_fence() to the resource that it changes.
 *
 * All that a handle has reserved is one lease at the store, which the client renews. The
 * store delivers by priority, then in the order of pushes. An item that comes back without
 * a delay has its old place.
 *
 * Threads: any thread may make these calls. All that the threads of a handle ask for at
 * the same time goes to the store in one request.
 */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_QUEUE_H
#define DIBS_QUEUE_H

#include <dibs/client.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dibs_queue dibs_queue; /* this client's part in one queue */
typedef struct dibs_item dibs_item;   /* one delivery, until it is freed */

#define DIBS_ITEM_MAX         (256 << 10) /* bytes of an item's data */
#define DIBS_ITEM_HEADERS_MAX (16 << 10)  /* bytes of its headers */
#define DIBS_QUEUE_BATCH      128         /* items of one call */
#define DIBS_ITEM_RESULT_MAX  1023        /* bytes of a result */
#define DIBS_ITEM_TOKEN_SIZE  128         /* with its NUL */

/* The delivery is not this consumer's any more, or will not be in a moment: stop the
 * work. Called once for a delivery, on a thread of the client. It may call
 * dibs_item_check() and the functions that read an item. It must not settle or free
 * items, nor free the queue. */
typedef void dibs_item_lost_fn(dibs_item *item, void *arg);

/* Zero or NULL in any field but size selects the default, given last here. */
typedef struct dibs_queue_opts {
    size_t size;    /* sizeof(dibs_queue_opts); the macro sets it */
    const char *as; /* a worker's name, to 127 bytes: its items come first, with
                          those of nobody, then one of the worker that has most;
                          none */
    uint32_t prefetch; /* items to reserve ahead, to 64; 0 */
    int64_t ttl_ms;    /* how long after this client's death its items come
                          back, 1 s to 24 h; the client's */
    int64_t limit_ms;  /* how long one delivery may take, to 24 h; none */
    dibs_item_lost_fn *on_lost;
    void *arg;              /* borrowed until dibs_queue_free() returns */
    const char *durability; /* of pushes and acks, on Redis: "async", or
                               "wait:K": K replicas have them; the client's */
} dibs_queue_opts;

typedef struct dibs_push_opts {
    size_t size;          /* sizeof(dibs_push_opts); the macro sets it */
    int64_t delay_ms;     /* not before; 0 */
    int32_t priority;     /* higher ones first; 0 */
    uint32_t tries;       /* attempts until it is dead; the queue's */
    const char *dedup_id; /* one living item for each, to 64 bytes; none */
    int64_t dedup_ms;     /* nor a second one so soon after the push; 0 */
    const char *to;       /* the worker that should have it; none */
    const char *const *headers; /* "key=value" texts; NULL ends; none */
    int64_t wait_ms; /* while the queue is full; negative: without limit; 0 */
} dibs_push_opts;

#define DIBS_QUEUE_OPTS(...)                                                   \
    (&(dibs_queue_opts){.size = sizeof(dibs_queue_opts), __VA_ARGS__})
#define DIBS_PUSH_OPTS(...)                                                    \
    (&(dibs_push_opts){.size = sizeof(dibs_push_opts), __VA_ARGS__})

typedef struct dibs_push_item {
    const void *data;
    size_t len;
    const dibs_push_opts *opts; /* wait_ms is not looked at; NULL: the call's */
} dibs_push_item;

typedef struct dibs_pushed {
    uint64_t id;    /* of a duplicate: of the item that has the dedup id */
    bool duplicate; /* no item was made */
} dibs_pushed;

/* Makes a handle, without a call to the store. The handle copies strings. On failure
 * *out is NULL. Free it with dibs_queue_free(), before dibs_close().
 *   DIBS_INVALID      the name or an option is malformed
 *   DIBS_UNSUPPORTED  a quorum, or "wait:K" without Redis; the message says why */
DIBS_API DIBS_MUST_CHECK dibs_status dibs_queue_new(dibs_client *client,
                                                    const char *name,
                                                    const dibs_queue_opts *opts,
                                                    dibs_queue **out,
                                                    dibs_error *err);

/* Gives back all that is in hand, uncounted, and frees the handle with its last item. No
 * other thread may use the queue any more; its items can only be freed. NULL is a
 * no-op. */
DIBS_API void dibs_queue_free(dibs_queue *queue);

/* Ends the reserves of this handle and dibs_queue_work(), which drains. Later ones end
 * at once. Items in hand can still be settled. Does not block. */
DIBS_API void dibs_queue_cancel(dibs_queue *queue);

/* Pushes an item. *out may be NULL. A push whose answer is lost is sent again and makes
 * one item.
 *   DIBS_OK       there is one item, or one with its dedup id
 *   DIBS_FULL     the queue has as many items as it may have; none was made
 *   DIBS_UNKNOWN  no answer in time; there is one item or none. With "wait:K": too few
 *                 replicas acknowledged it; the item is there, and a failover may lose it
 *   DIBS_INVALID  the data or an option is too long or malformed; or the call waits, and
 *                 has more items than the queue may have
 *   DIBS_CANCELLED  dibs_close() ended a wait while it was full */
DIBS_API DIBS_MUST_CHECK dibs_status
dibs_queue_push(dibs_queue *queue, const void *data, size_t len,
                const dibs_push_opts *opts, dibs_pushed *out, dibs_error *err);

/* The same for up to DIBS_QUEUE_BATCH items with 1 MiB in all: all of them or none. *out
 * is an array of `count`, or NULL. */
DIBS_API DIBS_MUST_CHECK dibs_status dibs_queue_push_many(
    dibs_queue *queue, const dibs_push_item *items, size_t count,
    const dibs_push_opts *opts, dibs_pushed *out, dibs_error *err);

/* Waits for an item, for wait_ms at most; negative: without limit. While the store is
 * out of reach, the call goes on trying. Free *out with dibs_item_free(). On failure it
 * is NULL.
 *   DIBS_BUSY       wait_ms is 0 and there is none
 *   DIBS_TIMEOUT    none came in time
 *   DIBS_CANCELLED  dibs_queue_cancel() or dibs_close() ended the wait
 *   DIBS_UNAVAIL, DIBS_UNKNOWN  the time is over and the store was out of reach */
DIBS_API DIBS_MUST_CHECK dibs_status dibs_queue_reserve(dibs_queue *queue,
                                                        int64_t wait_ms,
                                                        dibs_item **out,
                                                        dibs_error *err);

/* The same for up to `max` items, DIBS_QUEUE_BATCH at most. Returns as soon as there is
 * one. *count is how many of `out` were set; 0 on failure. */
DIBS_API DIBS_MUST_CHECK dibs_status
dibs_queue_reserve_many(dibs_queue *queue, int64_t wait_ms, dibs_item **out,
                        size_t max, size_t *count, dibs_error *err);

/* The data; a NUL byte follows it. Valid until the item is freed. */
DIBS_API const void *dibs_item_data(const dibs_item *item, size_t *len);

/* The value of a header; NULL: there is none. And the header at an index, "key=value";
 * NULL beyond the last. */
DIBS_API const char *dibs_item_header(const dibs_item *item, const char *key);
DIBS_API const char *dibs_item_header_at(const dibs_item *item, size_t index);

/* The number of the item, and that of the delivery, which is higher for each later
 * delivery of the item. */
DIBS_API uint64_t dibs_item_id(const dibs_item *item);
DIBS_API uint64_t dibs_item_fence(const dibs_item *item);

/* How often it was delivered, this time among them; and how many of these ended without a
 * word of the consumer. */
DIBS_API uint32_t dibs_item_attempt(const dibs_item *item);
DIBS_API uint32_t dibs_item_losses(const dibs_item *item);
DIBS_API int32_t dibs_item_priority(const dibs_item *item);

/* Call it before each side effect. It compares clocks: a process that was stopped gets
 * the truth. No system call, no mutex.
 *   DIBS_OK    the delivery is this consumer's
 *   DIBS_LOST  it is settled, or not its own any more */
DIBS_API DIBS_MUST_CHECK dibs_status dibs_item_check(const dibs_item *item);

/* For how long it will be valid without another answer of the store; 0: it is lost, or
 * adopted. */
DIBS_API int64_t dibs_item_valid_ms(const dibs_item *item);

/* Settles: the work is done, and the item is gone. A settled item can only be read and
 * freed. An ack whose answer is lost is sent again.
 *   DIBS_OK       the store has accepted the ack, of this delivery alone
 *   DIBS_LOST     the delivery was not this consumer's any more; another does the work
 *   DIBS_UNKNOWN  no answer in time; it is acked, or comes back
 *   DIBS_UNAVAIL  nothing was done, and the item is still in hand: settle it again
 *   DIBS_INVALID  it is settled already, or its queue is freed */
DIBS_API DIBS_MUST_CHECK dibs_status dibs_item_ack(dibs_item *item,
                                                   dibs_error *err);

/* The same, with a result for the record of the item. The store keeps the record if the
 * queue keeps some (`keep_done` of dibs_queue_set()); dibs_queue_peek() shows it. `result`
 * is text, cut to DIBS_ITEM_RESULT_MAX bytes; NULL: none. Statuses as dibs_item_ack(). */
DIBS_API DIBS_MUST_CHECK dibs_status dibs_item_ack_result(dibs_item *item,
                                                          const char *result,
                                                          dibs_error *err);

/* Acks *item and waits for the next one as dibs_queue_reserve(), in one request. Frees
 * *item unless the ack failed.
 *   DIBS_OK  acked; *item is the next one
 *   DIBS_BUSY, DIBS_TIMEOUT, DIBS_CANCELLED  acked; no next one, *item is NULL
 *   others   as dibs_item_ack(); *item is the same, and no next one was reserved
 * If the store is away after the ack, or the client is being closed, *item tells: NULL:
 * it was acked; the same: it was not. */
DIBS_API DIBS_MUST_CHECK dibs_status dibs_item_ack_next(dibs_item **item,
                                                        int64_t wait_ms,
                                                        dibs_error *err);

/* Settles: the work has failed, and the item comes back after delay_ms, or is dead after
 * its last try. Negative: after 2^attempt s, 10 min at most, with jitter. `reason` is for
 * people, cut to 255 bytes; it may be NULL. Statuses as dibs_item_ack(). */
DIBS_API DIBS_MUST_CHECK dibs_status dibs_item_nack(dibs_item *item,
                                                    int64_t delay_ms,
                                                    const char *reason,
                                                    dibs_error *err);

/* Settles: the item goes to the dead letters. Statuses as dibs_item_ack(). */
DIBS_API DIBS_MUST_CHECK dibs_status dibs_item_dead(dibs_item *item,
                                                    const char *reason,
                                                    dibs_error *err);

/* Sets how long this delivery may take from now on; 0: without limit. The item stays in
 * hand. An adopted item is kept by the store for so long from now on, 1 s to 24 h.
 * Statuses as dibs_item_ack(). */
DIBS_API DIBS_MUST_CHECK dibs_status dibs_item_extend(dibs_item *item,
                                                      int64_t limit_ms,
                                                      dibs_error *err);

/* Frees an item. One that is not settled comes back at once, uncounted. NULL is a
 * no-op. */
DIBS_API void dibs_item_free(dibs_item *item);

/* Takes a delivery out of this client's hands. The store keeps it for the ttl_ms of the
 * handle, without renewals. A process that has the token settles it: see
 * dibs_queue_adopt(). The item can only be read and freed then.
 *   DIBS_LOST     the delivery was not this consumer's any more
 *   DIBS_UNKNOWN  no answer in time; the item comes back
 *   DIBS_INVALID  other items of the handle are in hand, or this one is settled */
DIBS_API DIBS_MUST_CHECK dibs_status dibs_item_detach(
    dibs_item *item, char out[DIBS_ITEM_TOKEN_SIZE], dibs_error *err);

/* Makes an item of a token, without a call to the store. It has no data. It can be settled
 * and extended, once each process; DIBS_LOST says that the token is over. Nothing renews
 * it, and dibs_item_free() leaves it as it is. One process at a time uses a token: of two
 * that settle it in different ways one has DIBS_LOST.
 *   DIBS_INVALID  that is no token of dibs_item_detach() */
DIBS_API DIBS_MUST_CHECK dibs_status dibs_queue_adopt(dibs_queue *queue,
                                                      const char *token,
                                                      dibs_item **out,
                                                      dibs_error *err);

/* Does the work of one item, on a thread of dibs_queue_work(), and says how it ended:
 *   DIBS_OK       ack
 *   DIBS_INVALID  dead
 *   DIBS_LOST     nothing: the delivery is another's now
 *   others        nack with backoff
 * If it settles the item itself, the status is not looked at. It must not free it, nor
 * close the client. */
typedef dibs_status dibs_item_fn(dibs_item *item, void *arg);

/* Runs `work` on 1 to 1,024 threads, until dibs_queue_cancel() or dibs_close(). It goes on
 * over outages of the store. Returns when every thread has settled its item; dibs_close()
 * waits for that.
 *   DIBS_OK     it was cancelled and has drained
 *   DIBS_NOMEM  no memory, or no thread; no work was begun */
DIBS_API DIBS_MUST_CHECK dibs_status dibs_queue_work(dibs_queue *queue,
                                                     uint32_t threads,
                                                     dibs_item_fn *work,
                                                     void *arg,
                                                     dibs_error *err);

#ifdef __cplusplus
}
#endif
#endif
