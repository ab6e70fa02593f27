/* async.h - taking and giving back without blocking.
 *
 * Two ways to hear how it ended. By default the callback runs on a thread of the
 * client. A program with an event loop asks for dibs_async_fd() first: from then
 * on callbacks run only inside dibs_async_process(), on the thread that calls it.
 *
 *     fd = dibs_async_fd(client);
 *     ... when poll(), libevent or libuv says that fd is readable:
 *     dibs_async_process(client);
 *
 * Threads: as the rest. An asynchronous wait costs no thread of its own: what talks
 * to the store is done by up to four threads of the client, started when first
 * needed. Acquires of one name join its queue in the order in which they were
 * started.
 */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_ASYNC_H
#define DIBS_ASYNC_H

#include <dibs/lock.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How it ended: what the blocking call would have returned, and its detail, which
 * is borrowed for the call (`err->status` is DIBS_OK when all is well). DIBS_OK for
 * an acquire is told only while the lease is valid: one that lapsed before it could
 * be told is taken anew. The callback may use the lock in any way, free it
 * included; on a thread of the client it must not block for long. It never runs
 * inside the call that started it, nor beside another callback of the same lock.
 * It must not close the client. */
typedef void dibs_async_fn(dibs_lock *lock, dibs_status status,
                           const dibs_error *err, void *arg);

/* Starts an acquire as the handle's options say. DIBS_OK: it is under way, and
 * `done` will be called once, whatever happens; dibs_lock_cancel() ends it early.
 * Else `done` will not be called:
 *   DIBS_INVALID  another call is under way on this handle
 *   DIBS_NOMEM    nothing was started
 * dibs_lock_free() on a handle with an acquire under way cancels it, and `done`
 * is not called any more once it has returned. dibs_close() cancels what is under
 * way and has every `done` called before it returns. */
DIBS_API DIBS_MUST_CHECK dibs_status dibs_lock_acquire_async(
    dibs_lock *lock, dibs_async_fn *done, void *arg, dibs_error *err);

/* Starts a release. DIBS_OK: it is under way, and the lock is not held from here on,
 * whatever happens. Else nothing was started, as above. `done` may be NULL. */
DIBS_API DIBS_MUST_CHECK dibs_status dibs_lock_release_async(
    dibs_lock *lock, dibs_async_fn *done, void *arg, dibs_error *err);

/* A descriptor that is readable while callbacks wait to be run. Owned by the
 * client; do not read or close it. -1 when the system has none to give. */
DIBS_API int dibs_async_fd(dibs_client *client);

/* How long poll() may sleep, in ms: 0 when callbacks wait, else -1. The client
 * keeps its own timers. */
DIBS_API int dibs_async_timeout_ms(dibs_client *client);

/* Runs the callbacks that wait, without blocking; returns how many. */
DIBS_API size_t dibs_async_process(dibs_client *client);

#ifdef __cplusplus
}
#endif
#endif
