/* queue_async.h - the calls of dibs/queue.h for one item without blocking, for programs with
 * an event loop.
 *
 * Callbacks run as those of dibs/async.h do: on a thread of the client, or inside
 * dibs_async_process() once the program has called dibs_async_fd(). A wait for items needs
 * no thread. All that is wanted from a queue at the same time goes to the store in one
 * request, also of these calls.
 *
 * Threads: any thread may make these calls; none of them blocks.
 */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_QUEUE_ASYNC_H
#define DIBS_QUEUE_ASYNC_H

#include <dibs/async.h>
#include <dibs/queue.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Each callback is called once with the status that the blocking call would have returned,
 * never inside the call that started it. `err` is valid during the call only. A callback
 * may use, settle and free items and may free the queue; it must not close the client. On
 * a thread of the client it must return quickly, and callbacks of one queue may run at the
 * same time there.
 *
 * dibs_queue_free() drops the calls that have not ended; no callback runs after it has
 * returned, except the one that it is called from. Their pushes and settlements may have
 * been done. dibs_close() ends all calls and runs their callbacks first.
 *
 * The functions that start a call:
 *   DIBS_OK       started
 *   DIBS_INVALID  `done` is NULL, an argument is malformed, the item is settled or the
 *                 queue freed
 *   DIBS_LOST     the delivery is not this consumer's any more
 *   DIBS_CANCELLED  the client is being closed
 *   DIBS_NOMEM    no memory, or no thread
 * After any status but DIBS_OK nothing was started, and `done` is not called. */

/* The item is the program's: it settles and frees it. NULL unless the status is DIBS_OK. */
typedef void
dibs_reserved_fn(dibs_queue *queue, dibs_item *item, dibs_status status,
                 const dibs_error *err, void *arg);

/* Starts a wait for one item; see dibs_queue_reserve(). dibs_queue_cancel() ends it. */
DIBS_API DIBS_MUST_CHECK dibs_status
dibs_queue_reserve_async(dibs_queue *queue, int64_t wait_ms,
                         dibs_reserved_fn *done, void *arg, dibs_error *err);

/* The item can be read until the program frees it. After DIBS_UNAVAIL it is still in
 * hand. */
typedef void dibs_settled_fn(dibs_item *item, dibs_status status,
                             const dibs_error *err, void *arg);

/* Start to settle an item; see dibs_item_ack(), dibs_item_ack_result(), dibs_item_nack() and
 * dibs_item_dead(). While the store does not answer, the client goes on asking for as long
 * as the delivery is valid. An adopted item cannot be settled so: DIBS_INVALID. */
DIBS_API DIBS_MUST_CHECK dibs_status dibs_item_ack_async(dibs_item *item,
                                                         dibs_settled_fn *done,
                                                         void *arg,
                                                         dibs_error *err);
DIBS_API DIBS_MUST_CHECK dibs_status
dibs_item_ack_result_async(dibs_item *item, const char *result,
                           dibs_settled_fn *done, void *arg, dibs_error *err);
DIBS_API DIBS_MUST_CHECK dibs_status
dibs_item_nack_async(dibs_item *item, int64_t delay_ms, const char *reason,
                     dibs_settled_fn *done, void *arg, dibs_error *err);
DIBS_API DIBS_MUST_CHECK dibs_status dibs_item_dead_async(dibs_item *item,
                                                          const char *reason,
                                                          dibs_settled_fn *done,
                                                          void *arg,
                                                          dibs_error *err);

/* Starts to set how long a delivery may take; see dibs_item_extend(). The item stays in hand.
 * Until the callback it can be settled only by a call that blocks. An adopted item cannot
 * be extended so: DIBS_INVALID. */
DIBS_API DIBS_MUST_CHECK dibs_status
dibs_item_extend_async(dibs_item *item, int64_t limit_ms, dibs_settled_fn *done,
                       void *arg, dibs_error *err);

/* `pushed` is valid during the call only. */
typedef void
dibs_pushed_fn(dibs_queue *queue, const dibs_pushed *pushed, dibs_status status,
               const dibs_error *err, void *arg);

/* Starts a push of one item, whose data it copies; see dibs_queue_push(). It does not wait
 * while the queue is full: wait_ms of the options must be 0. */
DIBS_API DIBS_MUST_CHECK dibs_status dibs_queue_push_async(
    dibs_queue *queue, const void *data, size_t len, const dibs_push_opts *opts,
    dibs_pushed_fn *done, void *arg, dibs_error *err);

#ifdef __cplusplus
}
#endif
#endif
