/* lock.c - the lock handle: making, freeing, giving back, looking at.
 *
 * Any thread. Acquiring is in acquire_wait.c. */
/* SPDX-License-Identifier: MIT */
#include "core/lock/lock.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/uncancel.h"
#include "core/async.h"
#include "core/fork.h"
#include "core/lock/handle.h"
#include "core/lock/lock_opts.h"
#include "core/lock/parting.h"
#include "core/lock/publish.h"
#include "core/lock/reentry.h"
#include "core/lock/release.h"
#include "core/names.h"
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

static dibs_status join_client(dibs_lock *lock, dibs_error *err)
{
    dibs_client *cl = lock->cl;
    bool has_room;

    lock->due.deadline.fire = cl->keeper.lease_due;
    pthread_mutex_lock(&cl->mutex);
    has_room = dibs__timer_reserve(cl, DIBS__LOCK_TIMERS);
    if (has_room)
        cl->handle_count++;
    pthread_mutex_unlock(&cl->mutex);
    if (has_room)
        return DIBS_OK;
    return dibsx_nomem(err, "the deadlines of a lock");
}

dibs_status
dibs_lock_new(dibs_client *cl, const char *name, const dibs_lock_opts *opts,
              dibs_lock **out, dibs_error *err)
{
    char full[DIBS_NAME_MAX + 1];
    dibs_lock *lock = NULL;
    dibs_status rc;

    *out = NULL;
    rc = dibs__client_usable(cl, err);
    if (rc == DIBS_OK)
        rc = dibs__name_full(cl, name, full, err);
    if (rc != DIBS_OK)
        return rc;
    lock = dibsx_zalloc(sizeof(*lock) + strlen(full) + 1);
    if (!lock)
        return dibsx_nomem(err, "a lock");
    memcpy(lock->name, full, strlen(full) + 1);
    lock->cl = cl;
    lock->refs = 1;
    lock->shown.lost_fd = -1;
    rc = dibs__opts_read(lock, opts, err);
    if (rc == DIBS_OK)
        rc = join_client(lock, err);
    if (rc != DIBS_OK) {
        pthread_mutex_lock(&cl->mutex);
        dibs__opts_fini(lock);
        pthread_mutex_unlock(&cl->mutex);
        dibsx_free(lock);
        return rc;
    }
    lock->mode = lock->traits->opts.mode;
    dibs__lock_use_store(lock, cl->st, DIBS_FALLBACK_NONE);
    *out = lock;
    return DIBS_OK;
}

/* Locks: cl->mutex, let go while waiting. */
static void wait_for_callback(dibs_lock *lock)
{
    if (pthread_equal(pthread_self(), lock->cl->keeper.thread))
        return;
    while (lock->announcing)
        pthread_cond_wait(&lock->cl->over, &lock->cl->mutex);
}

/* The program is done with the handle. A lease that others have entered through
 * it goes on until they leave. Locks: cl->mutex, let go meanwhile. */
static void abandon_lock(dibs_lock *lock)
{
    dibs_lock *holder = NULL;
    bool last = false;

    lock->freed = true;
    while (lock->entry.depth > 0 && !last) {
        last = dibs__reentry_leave(lock, &holder);
        if (last && holder != lock)
            dibs__lock_let_go(holder);
        dibs__lock_unref(holder);
    }
    if (!lock->entry.guests && lock->lease.state != DIBS__LEASE_FREE)
        dibs__lock_let_go(lock);
}

void dibs_lock_free(dibs_lock *lock)
{
    DIBSX_UNCANCEL;
    dibs_client *cl;
    bool last;

    if (!lock || dibs__forked(lock->cl->fork_number))
        return;
    cl = lock->cl;
    pthread_mutex_lock(&cl->mutex);
    cl->calls++;
    dibs__async_drop(lock);
    dibs__parting_settle(lock, NULL, dibs__client_deadline(cl, dibsx_now()));
    if (!atomic_load(&cl->closed))
        abandon_lock(lock);
    if (cl->keeper.running)
        wait_for_callback(lock);
    dibs__lock_unref(lock);
    dibs__client_leave(cl);
    last = cl->ended && cl->handle_count == 0;
    pthread_mutex_unlock(&cl->mutex);
    if (last)
        dibs__client_free(cl);
}

dibs_status dibs_lock_release(dibs_lock *lock, dibs_error *err)
{
    DIBSX_UNCANCEL;
    dibs__pending_release pending;
    dibs_status rc = dibs__lock_enter(lock, err);

    if (rc != DIBS_OK)
        return rc;
    rc = dibs__release_begin(lock, &pending, err);
    if (pending.holder)
        rc = dibs__release_send(&pending, 0, err);
    dibs__lock_exit(lock);
    return rc;
}

void dibs_lock_leave(dibs_lock *lock)
{
    DIBSX_UNCANCEL;

    if (dibs__lock_enter(lock, NULL) != DIBS_OK)
        return;
    if (!lock->entry.via)
        dibs__lock_forget(lock);
    dibs__lock_exit(lock);
}

void dibs_lock_tick(dibs_lock *lock)
{
    DIBSX_UNCANCEL;
    dibsx_nsec due_at;
    dibs_lock *at;

    if (!lock || dibs__client_usable(lock->cl, NULL) != DIBS_OK)
        return;
    pthread_mutex_lock(&lock->cl->mutex);
    at = lock->entry.via ? lock->entry.via : lock;
    due_at = dibs__lease_next(&at->lease);
    dibs__lease_ticked(&at->lease, dibsx_now());
    /* Mostly the renewal comes first, and the keeper has that moment. */
    if (at->lease.state != DIBS__LEASE_FREE &&
        dibs__lease_next(&at->lease) != due_at)
        dibs__keeper_watch(lock->cl, at);
    pthread_mutex_unlock(&lock->cl->mutex);
}

dibs_lock_state dibs_lock_state_get(const dibs_lock *lock)
{
    dibs_lock_state state = (dibs_lock_state)atomic_load(&lock->shown.state);
    bool held = state == DIBS_LOCK_HELD || state == DIBS_LOCK_SUSPECT;

    if (dibs__forked(lock->cl->fork_number))
        return DIBS_LOCK_FREE;
    if (held && dibsx_now() >= atomic_load(&lock->shown.valid_until))
        return DIBS_LOCK_LOST;
    return state;
}

dibs_status dibs_lock_check(const dibs_lock *lock)
{
    if (dibs__forked(lock->cl->fork_number) ||
        dibsx_now() >= atomic_load(&lock->shown.valid_until))
        return DIBS_LOST;
    return DIBS_OK;
}

uint32_t dibs_lock_depth(const dibs_lock *lock)
{
    pthread_mutex_t *mutex = &lock->cl->mutex;
    uint32_t depth;

    if (dibs__forked(lock->cl->fork_number))
        return 0;
    pthread_mutex_lock(mutex);
    depth = lock->entry.depth;
    pthread_mutex_unlock(mutex);
    return depth;
}

int64_t dibs_lock_valid_ms(const dibs_lock *lock)
{
    if (dibs__forked(lock->cl->fork_number))
        return 0;
    return dibsx_valid_ms(atomic_load(&lock->shown.valid_until), dibsx_now());
}

uint64_t dibs_lock_fence(const dibs_lock *lock)
{
    if (dibs__forked(lock->cl->fork_number) ||
        dibsx_now() >= atomic_load(&lock->shown.valid_until))
        return 0;
    return atomic_load(&lock->shown.fence);
}

void dibs_lock_owner(const dibs_lock *lock, char owner[DIBS_OWNER_SIZE])
{
    /* The mutex is not part of the value that the caller must not change. */
    pthread_mutex_t *mutex = &lock->cl->mutex;

    owner[0] = '\0';
    if (dibs__forked(lock->cl->fork_number))
        return;
    pthread_mutex_lock(mutex);
    memcpy(owner,
           lock->entry.via ? lock->entry.via->lease.owner : lock->lease.owner,
           DIBS_OWNER_SIZE);
    pthread_mutex_unlock(mutex);
}

uint32_t dibs_lock_replicas_acked(const dibs_lock *lock)
{
    pthread_mutex_t *mutex = &lock->cl->mutex;
    uint32_t acked;

    if (dibs__forked(lock->cl->fork_number))
        return 0;
    pthread_mutex_lock(mutex);
    acked = lock->entry.via ? lock->entry.via->acked : lock->acked;
    pthread_mutex_unlock(mutex);
    return acked;
}

uint32_t dibs_lock_place(const dibs_lock *lock)
{
    pthread_mutex_t *mutex = &lock->cl->mutex;
    uint32_t place;

    if (dibs__forked(lock->cl->fork_number))
        return 0;
    pthread_mutex_lock(mutex);
    place = lock->acquire ? lock->acquire->machine.place : 0;
    pthread_mutex_unlock(mutex);
    return place;
}

int dibs_lock_lost_fd(dibs_lock *lock)
{
    DIBSX_UNCANCEL;
    dibs_client *cl = lock->cl;
    int fd;

    if (dibs__forked(cl->fork_number))
        return -1;
    pthread_mutex_lock(&cl->mutex);
    if (lock->shown.lost_fd < 0) {
        lock->shown.lost_fd =
            timerfd_create(CLOCK_BOOTTIME, TFD_NONBLOCK | TFD_CLOEXEC);
        dibs__keeper_publish(lock->entry.via ? lock->entry.via : lock);
    }
    fd = lock->shown.lost_fd;
    pthread_mutex_unlock(&cl->mutex);
    return fd;
}
