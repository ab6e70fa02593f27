/* async.h - acquire and release without blocking.
 *
 * By default the callback runs on a thread of the client. A program with an
 * event loop calls dibs_async_fd() first. From then on these callbacks run only
 * inside dibs_async_process(), on the thread that calls it.
 *
 *     fd = dibs_async_fd(client);
 *     ... when poll(), libevent or libuv reports fd as readable:
 *     dibs_async_process(client);
 *
 * The callbacks on_lost and on_yield are not among them. They run on the keeper's
 * thread, also with an event loop: a busy loop must not delay the news of a loss.
 * A loop that wants the news on its own thread polls dibs_lock_lost_fd().
 *
 * Threads: any thread may make these calls; none of them blocks. A wait needs no
 * thread of its own: up to four threads of the client talk to the store. One Redis
 * server gets requests that are ready together as one.
 * Acquires of one name join its queue in the order in which they were started.
 */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_ASYNC_H
#define DIBS_ASYNC_H

#include <dibs/lock.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Called once with the status that the blocking call would have returned. `err`
 * is valid during the call only; its status is DIBS_OK after a success. DIBS_OK
 * of an acquire means that the lease is valid now: if it expired before the
 * callback could run, the client acquires again first.
 *
 * The callback may use the lock in any way and may free it. It must not close
 * the client. On a thread of the client it must return quickly, because it
 * delays other asynchronous calls. It never runs inside the call that started
 * it. Two of them never run at once for one lock; on_lost and on_yield may run
 * beside it. */
typedef void dibs_async_fn(dibs_lock *lock, dibs_status status,
                           const dibs_error *err, void *arg);

/* Starts an acquire with the options of the handle. dibs_lock_cancel() ends it
 * early. dibs_lock_free() cancels it; no callback runs after it has returned.
 * dibs_close() cancels all calls and runs their callbacks before it returns.
 *   DIBS_OK       started; `done` runs once, or never if the lock is freed first
 *   DIBS_INVALID  another call runs on this handle, `done` is NULL, or the client
 *                 is being closed
 *   DIBS_NOMEM    no memory, or no thread
 * After any status but DIBS_OK nothing was started, and `done` is not called. */
DIBS_API DIBS_MUST_CHECK dibs_status dibs_lock_acquire_async(
    dibs_lock *lock, dibs_async_fn *done, void *arg, dibs_error *err);

/* Starts a release. After DIBS_OK the acquire is undone, and `done` receives the
 * status of dibs_lock_release(). Other statuses as above.
 *
 * If `done` is NULL, nobody waits for the release, and the handle is free at once: it
 * may be acquired again, or freed. An acquire of this handle comes after the release.
 * The client logs a release that fails; the lease then ends by its ttl. */
DIBS_API DIBS_MUST_CHECK dibs_status dibs_lock_release_async(
    dibs_lock *lock, dibs_async_fn *done, void *arg, dibs_error *err);

/* A file descriptor that is readable while callbacks are pending. Poll it; do
 * not read or close it, the client owns it. -1: the process has no descriptor
 * left, or the client is not usable. */
DIBS_API int dibs_async_fd(dibs_client *client);

/* A timeout for poll(), in ms: 0 while callbacks are pending, otherwise -1,
 * because the client has its own timers. */
DIBS_API int dibs_async_timeout_ms(dibs_client *client);

/* Runs the pending callbacks on the calling thread and returns their number. 0
 * before the first dibs_async_fd(). */
DIBS_API size_t dibs_async_process(dibs_client *client);

#ifdef __cplusplus
}
#endif
#endif
