/* lock.c - the lock handle: making, freeing, giving back, looking at.
 *
 * Any thread. Taking the lease is in wait.c. */
/* SPDX-License-Identifier: MIT */
#include "core/lock.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/uncancel.h"
#include "core/async.h"
#include "core/fork.h"
#include "core/hold.h"
#include "core/lock_opts.h"
#include "core/log.h"
#include "core/names.h"
#include "core/publish.h"
#include "core/record.h"
#include "core/rest.h"
#include "core/spare.h"
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

/* A release whose answer was lost is sent again this often. */
enum { RELEASE_TRIES = 3 };

static dibs_status init_cond(pthread_cond_t *cond, dibs_error *err)
{
    pthread_condattr_t attr;
    int failed = pthread_condattr_init(&attr);

    if (!failed) {
        failed = pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
        if (!failed)
            failed = pthread_cond_init(cond, &attr);
        pthread_condattr_destroy(&attr);
    }
    if (failed)
        return dibsx_fail_at(err, DIBS_NOMEM, dibsx_errno_name(failed),
                             "no condition variable");
    return DIBS_OK;
}

dibs_status
dibs_lock_new(dibs_client *cl, const char *name, const dibs_lock_opts *opts,
              dibs_lock **out, dibs_error *err)
{
    dibs_lock *lock = NULL;
    dibs_status rc;

    *out = NULL;
    rc = dibs__client_usable(cl, err);
    if (rc != DIBS_OK)
        return rc;
    lock = dibsx_zalloc(sizeof(*lock));
    if (!lock)
        return dibsx_nomem(err, "a lock");
    lock->cl = cl;
    lock->st = cl->st;
    lock->refs = 1;
    lock->lost_fd = -1;
    rc = dibs__opts_read(lock, opts, err);
    if (rc == DIBS_OK)
        rc = dibs__name_full(cl, name, lock->name, err);
    if (rc == DIBS_OK)
        rc = init_cond(&lock->cond, err);
    if (rc != DIBS_OK) {
        dibs__opts_fini(lock);
        dibsx_free(lock);
        return rc;
    }
    lock->mode = lock->opts.mode;
    pthread_mutex_lock(&cl->mutex);
    cl->lock_count++;
    pthread_mutex_unlock(&cl->mutex);
    *out = lock;
    return DIBS_OK;
}

void dibs__lock_unref(dibs_lock *lock)
{
    if (--lock->refs > 0)
        return;
    lock->cl->lock_count--;
    if (lock->lost_fd >= 0)
        close(lock->lost_fd);
    pthread_cond_destroy(&lock->cond);
    dibs__opts_fini(lock);
    dibsx_free(lock);
}

/* Locks: cl->mutex, let go while waiting. */
static void wait_for_callback(dibs_lock *lock)
{
    if (pthread_equal(pthread_self(), lock->cl->keeper.thread))
        return;
    while (lock->announcing)
        pthread_cond_wait(&lock->cond, &lock->cl->mutex);
}

/* The program is done with the handle. A lease that others have entered through
 * it goes on until they leave. Locks: cl->mutex, let go meanwhile. */
static void abandon(dibs_lock *lock)
{
    dibs_lock *holder = NULL;
    bool last = false;

    lock->freed = true;
    while (lock->depth > 0 && !last) {
        last = dibs__hold_leave(lock, &holder);
        if (last && holder != lock)
            dibs__lock_let_go(holder);
        dibs__lock_unref(holder);
    }
    if (!lock->guests && lock->lease.state != DIBS__LEASE_FREE)
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
    dibs__async_drop(lock);
    if (!atomic_load(&cl->closed))
        abandon(lock);
    if (cl->keeper.running)
        wait_for_callback(lock);
    dibs__lock_unref(lock);
    last = cl->ended && cl->lock_count == 0;
    pthread_mutex_unlock(&cl->mutex);
    if (last)
        dibs__client_free(cl);
}

dibs_status dibs__lock_enter(dibs_lock *lock, dibs_error *err)
{
    dibs_status rc;

    if (!lock)
        return dibsx_fail(err, DIBS_INVALID, "the lock is NULL");
    rc = dibs__client_usable(lock->cl, err);
    if (rc != DIBS_OK)
        return rc;
    pthread_mutex_lock(&lock->cl->mutex);
    if (lock->busy) {
        pthread_mutex_unlock(&lock->cl->mutex);
        return dibsx_fail(err, DIBS_INVALID,
                          "another call is under way on this handle");
    }
    lock->busy = true;
    return DIBS_OK;
}

void dibs__lock_exit(dibs_lock *lock)
{
    lock->busy = false;
    pthread_mutex_unlock(&lock->cl->mutex);
}

static dibs_lock **bucket_of(dibs_client *cl, const char *owner)
{
    /* Owners are random: two of their digits pick a bucket evenly. */
    unsigned a = (unsigned char)owner[0];
    unsigned b = (unsigned char)owner[1];

    return &cl->by_owner[(a * 31 + b * 17) % DIBS__OWNER_BUCKETS];
}

void dibs__lock_list(dibs_lock *lock)
{
    dibs_lock **bucket = bucket_of(lock->cl, lock->lease.owner);

    lock->next_owner = *bucket;
    if (*bucket)
        (*bucket)->at_owner = &lock->next_owner;
    lock->at_owner = bucket;
    *bucket = lock;
}

void dibs__lock_unlist(dibs_lock *lock)
{
    if (!lock->at_owner)
        return;
    *lock->at_owner = lock->next_owner;
    if (lock->next_owner)
        lock->next_owner->at_owner = lock->at_owner;
    lock->at_owner = NULL;
}

dibs_lock *dibs__lock_by_owner(dibs_client *cl, const char *owner)
{
    dibs_lock *lock = *bucket_of(cl, owner);

    while (lock && strcmp(lock->lease.owner, owner) != 0)
        lock = lock->next_owner;
    return lock;
}

void dibs__lock_begin(dibs_lock *lock, const char *owner)
{
    const dibs_lock_opts *opts = &lock->opts;
    const dibs__terms terms = {
        .ttl_ms = opts->ttl_ms,
        .hold_max_ms = opts->hold_max_ms,
        .delay_ms = opts->lock_delay_ms,
        .progress_ms = opts->progress_ms,
        .manual = (opts->flags & DIBS_LOCK_NO_RENEW) != 0,
        .confirm = dibs__spare_replicas(lock) > 0,
    };

    dibs__lease_begin(&lock->lease, owner, &terms);
    lock->mode = opts->mode;
    lock->doubt = DIBS__SURE;
    lock->acked = 0;
    lock->wanted = false;
    lock->due = false;
    dibs__lock_list(lock);
}

void dibs__lock_use_store(dibs_lock *lock)
{
    lock->st = lock->cl->st;
    lock->kept = DIBS_KEPT_BY_STORE;
}

dibs_status
dibs__owner_new(dibs_client *cl, char out[DIBS_OWNER_SIZE], dibs_error *err)
{
    unsigned char *bits;

    if (cl->owner_bits_left == 0) {
        if (!dibsx_random(cl->owner_bits, sizeof(cl->owner_bits)))
            return dibsx_fail(err, DIBS_UNAVAIL,
                              "the kernel gives no randomness");
        cl->owner_bits_left = DIBS__OWNERS_AHEAD;
    }
    bits = cl->owner_bits[--cl->owner_bits_left];
    dibsx_hex(bits, sizeof(cl->owner_bits[0]), out);
    return DIBS_OK;
}

/* Sends the release, again when its answer was lost; "nothing there" after a
 * lost answer means that it had been done. Locks: none held. */
static dibs_status send_release(dibs__store *st, const dibs__leave *leave,
                                dibsx_nsec deadline, dibs_error *err)
{
    bool sent_before = false;
    dibs_status rc = DIBS_UNAVAIL;

    for (int i = 0; i < RELEASE_TRIES; i++) {
        rc = st->ops->lease->release(st, leave, deadline, err);
        if (rc == DIBS_LOST && sent_before)
            rc = DIBS_OK;
        if (rc != DIBS_UNKNOWN)
            break;
        sent_before = true;
    }
    return rc;
}

/* How much longer others must be kept out, for hold_min_ms. */
static int64_t keep_ms(const dibs_lock *lock, dibsx_nsec now)
{
    dibsx_nsec until =
        dibsx_after_ms(lock->lease.held_at, lock->opts.hold_min_ms);

    return lock->opts.hold_min_ms > 0 ? dibsx_wait_ms(until, now) : 0;
}

/* The end of a lease on this side: nobody relies on it any more. True when a
 * request of its owner may still be under way. */
static bool end_belief(dibs_lock *lock, bool valid)
{
    bool unanswered;

    dibs__lock_unlist(lock);
    dibs__record_use_ended(lock, valid);
    if (!lock->via) /* A guest is in the lease of another, which goes on. */
        dibs__hold_end(lock);
    lock->resting = false;
    unanswered = dibs__lease_leave(&lock->lease);
    dibs__keeper_watch(lock->cl, lock);
    return unanswered;
}

void dibs__lock_forget(dibs_lock *lock)
{
    (void)end_belief(lock, dibs__lease_valid(&lock->lease, dibsx_now()));
}

/* Ends belief. DIBS_OK: the store is to be told what is in `part`, which then has
 * a reference on the lock. */
static dibs_status
part_from(dibs_lock *lock, dibs__parting *part, dibs_error *err)
{
    dibsx_nsec now = dibsx_now();
    bool valid = dibs__lease_valid(&lock->lease, now);
    bool was_held = lock->lease.fence != 0;

    *part = (dibs__parting){.st = lock->st};
    memcpy(part->owner, lock->lease.owner, sizeof(part->owner));
    part->leave = (dibs__leave){.name = dibs__spare_name(lock, part->owner),
                                .owner = part->owner,
                                .alone = was_held && lock->lease.alone};
    if (valid)
        part->leave.keep_ms = keep_ms(lock, now);
    part->leave.unanswered = end_belief(lock, valid);
    /* What was held and ran out here is running out there as well: the news is
     * not worth a wait on a store that may be away. */
    if (was_held && !valid)
        return dibsx_fail(err, DIBS_LOST, "the lease on %s had ended",
                          lock->name);
    part->holder = lock;
    lock->refs++;
    return DIBS_OK;
}

dibs_status
dibs__lock_send(dibs__parting *part, int64_t limit_ms, dibs_error *err)
{
    dibs_client *cl = part->holder->cl;
    dibsx_nsec now = dibsx_now();
    dibsx_nsec deadline = dibs__client_deadline(cl, now);
    dibs_status rc;

    if (limit_ms > 0 && limit_ms < cl->timeout_ms)
        deadline = dibsx_after_ms(now, limit_ms);
    pthread_mutex_unlock(&cl->mutex);
    rc = send_release(part->st, &part->leave, deadline, err);
    dibs__log(cl, DIBS_LOG_TRACE, "released", "%s by %s: %s", part->leave.name,
              part->owner, dibs_status_name(rc));
    pthread_mutex_lock(&cl->mutex);
    dibs__lock_unref(part->holder);
    part->holder = NULL;
    return rc;
}

dibs_status
dibs__lock_give_up(dibs_lock *lock, int64_t limit_ms, dibs_error *err)
{
    dibs__parting part;
    dibs_status rc = part_from(lock, &part, err);

    return part.holder ? dibs__lock_send(&part, limit_ms, err) : rc;
}

void dibs__lock_let_go(dibs_lock *lock)
{
    dibs_client *cl = lock->cl;
    dibs_error err = {0};
    dibs_status rc = dibs__lock_give_up(lock, 0, &err);

    if (rc == DIBS_OK || rc == DIBS_LOST)
        return;
    pthread_mutex_unlock(&cl->mutex);
    dibs__log(cl, DIBS_LOG_WARN, "release", "%s: %s", lock->name, err.message);
    pthread_mutex_lock(&cl->mutex);
}

dibs_status
dibs__lock_part(dibs_lock *lock, dibs__parting *part, dibs_error *err)
{
    dibs_lock *holder;
    bool last = dibs__hold_leave(lock, &holder);
    dibsx_nsec now = dibsx_now();
    dibs_status rc = DIBS_OK;

    part->holder = NULL;
    if (!holder)
        return dibsx_fail(err, DIBS_LOST, "%s is not held", lock->name);
    if (last && !dibs__rest_begin(holder, now))
        rc = part_from(holder, part, err);
    else if (!last && !dibs__lease_valid(&holder->lease, now))
        rc =
            dibsx_fail(err, DIBS_LOST, "the lease on %s had ended", lock->name);
    dibs__lock_unref(holder);
    return rc;
}

dibs_status dibs_lock_release(dibs_lock *lock, dibs_error *err)
{
    DIBSX_UNCANCEL;
    dibs__parting part;
    dibs_status rc = dibs__lock_enter(lock, err);

    if (rc != DIBS_OK)
        return rc;
    rc = dibs__lock_part(lock, &part, err);
    if (part.holder)
        rc = dibs__lock_send(&part, 0, err);
    dibs__lock_exit(lock);
    return rc;
}

void dibs_lock_leave(dibs_lock *lock)
{
    DIBSX_UNCANCEL;

    if (dibs__lock_enter(lock, NULL) != DIBS_OK)
        return;
    if (!lock->via)
        dibs__lock_forget(lock);
    dibs__lock_exit(lock);
}

void dibs_lock_tick(dibs_lock *lock)
{
    DIBSX_UNCANCEL;
    dibs_lock *at;

    if (!lock || dibs__client_usable(lock->cl, NULL) != DIBS_OK)
        return;
    pthread_mutex_lock(&lock->cl->mutex);
    at = lock->via ? lock->via : lock;
    dibs__lease_ticked(&at->lease, dibsx_now());
    if (at->lease.state != DIBS__LEASE_FREE)
        dibs__keeper_watch(lock->cl, at);
    pthread_mutex_unlock(&lock->cl->mutex);
}

dibs_lock_state dibs_lock_state_get(const dibs_lock *lock)
{
    dibs_lock_state state = (dibs_lock_state)atomic_load(&lock->state);
    bool held = state == DIBS_LOCK_HELD || state == DIBS_LOCK_SUSPECT;

    if (dibs__forked(lock->cl->fork_number))
        return DIBS_LOCK_FREE;
    if (held && dibsx_now() >= atomic_load(&lock->valid_until))
        return DIBS_LOCK_LOST;
    return state;
}

dibs_status dibs_lock_check(const dibs_lock *lock)
{
    if (dibs__forked(lock->cl->fork_number) ||
        dibsx_now() >= atomic_load(&lock->valid_until))
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
    depth = lock->depth;
    pthread_mutex_unlock(mutex);
    return depth;
}

int64_t dibs_lock_valid_ms(const dibs_lock *lock)
{
    if (dibs__forked(lock->cl->fork_number))
        return 0;
    return dibsx_valid_ms(atomic_load(&lock->valid_until), dibsx_now());
}

uint64_t dibs_lock_fence(const dibs_lock *lock)
{
    if (dibs__forked(lock->cl->fork_number) ||
        dibsx_now() >= atomic_load(&lock->valid_until))
        return 0;
    return atomic_load(&lock->fence);
}

void dibs_lock_owner(const dibs_lock *lock, char owner[DIBS_OWNER_SIZE])
{
    /* The mutex is not part of the value that the caller must not change. */
    pthread_mutex_t *mutex = &lock->cl->mutex;

    owner[0] = '\0';
    if (dibs__forked(lock->cl->fork_number))
        return;
    pthread_mutex_lock(mutex);
    memcpy(owner, lock->via ? lock->via->lease.owner : lock->lease.owner,
           DIBS_OWNER_SIZE);
    pthread_mutex_unlock(mutex);
}

uint32_t dibs_lock_acked(const dibs_lock *lock)
{
    pthread_mutex_t *mutex = &lock->cl->mutex;
    uint32_t acked;

    if (dibs__forked(lock->cl->fork_number))
        return 0;
    pthread_mutex_lock(mutex);
    acked = lock->via ? lock->via->acked : lock->acked;
    pthread_mutex_unlock(mutex);
    return acked;
}

int dibs_lock_lost_fd(dibs_lock *lock)
{
    DIBSX_UNCANCEL;
    dibs_client *cl = lock->cl;
    int fd;

    if (dibs__forked(cl->fork_number))
        return -1;
    pthread_mutex_lock(&cl->mutex);
    if (lock->lost_fd < 0) {
        lock->lost_fd =
            timerfd_create(CLOCK_BOOTTIME, TFD_NONBLOCK | TFD_CLOEXEC);
        dibs__keeper_publish(lock->via ? lock->via : lock);
    }
    fd = lock->lost_fd;
    pthread_mutex_unlock(&cl->mutex);
    return fd;
}
