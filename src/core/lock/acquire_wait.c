/* acquire_wait.c - acquires a lease with the calling thread: it asks, and sleeps
 * between.
 *
 * The thread that gets the notice wakes it up. A notice that is lost costs at most a
 * second, for then the thread asks anyway. */
/* SPDX-License-Identifier: MIT */
#include "base/uncancel.h"
#include "core/lock/acquire.h"
#include "core/lock/handle.h"
#include <assert.h>

/* Sleeps until a moment on the boot clock, a wake-up, or a cancel. The caller
 * looks again, as the sleep may end early or late. Wake-ups post with the mutex, so none
 * falls between. Locks: cl->mutex, let go while sleeping. */
static void sleep_until(dibs_lock *lock, dibsx_park *sleeper, dibsx_nsec until)
{
    dibsx_park_clear(sleeper);
    pthread_mutex_unlock(&lock->cl->mutex);
    (void)dibsx_park_wait(sleeper, until);
    pthread_mutex_lock(&lock->cl->mutex);
}

/* Locks: cl->mutex, let go while asking and sleeping. */
static dibs_status drive_acquire(dibs_lock *lock)
{
    dibs__lock_acquire *room = lock->acquire;
    dibs__acquire_step step;

    while ((step = dibs__lock_acquire_next(lock)) != DIBS__ACQUIRE_DONE)
        if (step == DIBS__ACQUIRE_SLEEP)
            sleep_until(lock, &room->sleeper, room->machine.wake_at);
        else
            dibs__lock_acquire_do(lock, step);
    return dibs__lock_acquire_end(lock);
}

/* The log is the program's until its client is closed, which waits for this call. Locks:
 * cl->mutex, let go meanwhile. */
static void
trace_acquire(dibs_lock *lock, dibs_status rc, const dibs__acquire *done)
{
    dibs_client *cl = lock->cl;

    if (!cl->log)
        return;
    pthread_mutex_unlock(&cl->mutex);
    dibs__lock_acquire_trace(lock, rc, done->started_at, done->tries);
    pthread_mutex_lock(&cl->mutex);
}

dibs_status dibs__lock_acquire_block(dibs_lock *lock, int64_t wait_ms,
                                     uint32_t retries, dibs_error *err)
{
    DIBSX_UNCANCEL;
    dibs__lock_acquire room = {.wake = NULL};
    dibs_error why;
    const dibs__acquire_caller way = {.wait_ms = wait_ms,
                                      .retries = retries,
                                      .blocks = true,
                                      .room = &room,
                                      .why = &why};
    dibs_status rc;
    bool over;

    rc = dibs__lock_enter(lock, err);
    if (rc != DIBS_OK)
        return rc;
    assert(lock);
    rc = dibs__lock_acquire_start(lock, &way, &over);
    if (!over) {
        rc = drive_acquire(lock);
        trace_acquire(lock, rc, &room.machine);
    }
    if (rc != DIBS_OK && err)
        *err = why;
    dibs__lock_exit(lock);
    return rc;
}

dibs_status dibs_lock_acquire(dibs_lock *lock, dibs_error *err)
{
    return dibs__lock_acquire_block(lock, lock ? lock->traits->opts.wait_ms : 0,
                                    lock ? lock->traits->opts.retries : 0, err);
}

dibs_status dibs_lock_try(dibs_lock *lock, dibs_error *err)
{
    return dibs__lock_acquire_block(lock, 0, 0, err);
}

void dibs_lock_cancel(dibs_lock *lock)
{
    DIBSX_UNCANCEL;

    if (!lock || dibs__client_usable(lock->cl, NULL) != DIBS_OK)
        return;
    pthread_mutex_lock(&lock->cl->mutex);
    dibs__lock_acquire_cancel(lock);
    pthread_mutex_unlock(&lock->cl->mutex);
}
