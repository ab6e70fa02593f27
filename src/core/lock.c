/* lock.c - the lock handle: making, freeing, giving back, looking at.
 *
 * Any thread. Taking the lease is in wait.c. */
/* SPDX-License-Identifier: MIT */
#include "core/lock.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "core/fork.h"
#include "core/keeper.h"
#include "core/names.h"
#include "core/spare.h"
#include "core/ttl.h"
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

/* A release whose answer was lost is sent again this often. */
enum { RELEASE_TRIES = 3 };

static dibs_status read_opts(dibs_client *cl, const dibs_lock_opts *opts,
                             dibs_lock_opts *out, dibs_error *err)
{
    *out = (dibs_lock_opts){.size = sizeof(*out)};
    if (opts) {
        if (opts->size < sizeof(opts->size) || opts->size > 4096)
            return dibsx_fail(err, DIBS_INVALID,
                              "dibs_lock_opts.size is not set");
        memcpy(out, opts,
               opts->size < sizeof(*out) ? opts->size : sizeof(*out));
    }
    if (out->ttl_ms == 0)
        out->ttl_ms = cl->ttl_ms;
    if (out->retry_delay_ms == 0)
        out->retry_delay_ms = 100;
    if (!dibs__ttl_ok(out->ttl_ms))
        return dibs__ttl_fail(err);
    if (out->mode != DIBS_EXCLUSIVE)
        return dibsx_fail(err, DIBS_INVALID, "unknown mode %d", (int)out->mode);
    if (out->flags & ~(uint32_t)(DIBS_LOCK_NO_RENEW | DIBS_LOCK_BARGE))
        return dibsx_fail(err, DIBS_INVALID, "unknown flags 0x%x",
                          (unsigned)out->flags);
    if (out->retry_delay_ms < 0 || out->hold_min_ms < 0 || out->hold_max_ms < 0)
        return dibsx_fail(err, DIBS_INVALID,
                          "retry_delay_ms, hold_min_ms or hold_max_ms is "
                          "negative");
    return DIBS_OK;
}

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
        return dibsx_fail(err, DIBS_NOMEM, "no memory for a lock");
    lock->cl = cl;
    lock->st = cl->st;
    lock->refs = 1;
    lock->lost_fd = -1;
    rc = read_opts(cl, opts, &lock->opts, err);
    if (rc == DIBS_OK)
        rc = dibs__name_full(cl, name, lock->name, err);
    if (rc == DIBS_OK)
        rc = init_cond(&lock->cond, err);
    if (rc != DIBS_OK) {
        dibsx_free(lock);
        return rc;
    }
    dibs__who_text(cl, lock->opts.label, lock->who);
    lock->opts.label = NULL;
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

void dibs_lock_free(dibs_lock *lock)
{
    dibs_client *cl;
    bool last;

    if (!lock || dibs__forked(lock->cl->fork_number))
        return;
    cl = lock->cl;
    pthread_mutex_lock(&cl->mutex);
    if (lock->lease.state != DIBS__LEASE_FREE && !cl->closed)
        dibs__lock_let_go(lock);
    if (cl->keeper.running)
        wait_for_callback(lock);
    dibs__lock_unref(lock);
    last = cl->closed && cl->lock_count == 0;
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
                          "another thread is using this lock handle");
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

void dibs__lock_use_store(dibs_lock *lock)
{
    lock->st = lock->cl->st;
    lock->kept = DIBS_KEPT_BY_STORE;
}

dibs_status dibs__owner_new(char out[DIBS_OWNER_SIZE], dibs_error *err)
{
    unsigned char bits[(DIBS_OWNER_SIZE - 1) / 2];

    if (!dibsx_random(bits, sizeof(bits)))
        return dibsx_fail(err, DIBS_UNAVAIL, "the kernel gives no randomness");
    dibsx_hex(bits, sizeof(bits), out);
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

/* Counts the end of a lease that was held until now. */
static void count_end(dibs_lock *lock, bool valid)
{
    dibs__stats *stats = &lock->cl->stats;

    if (lock->lease.fence == 0 || lock->lease.told || lock->taking)
        return;
    dibs__uncount(&stats->held);
    dibs__count(valid ? &stats->released : &stats->lost);
}

dibs_status
dibs__lock_give_up(dibs_lock *lock, int64_t limit_ms, dibs_error *err)
{
    dibs_client *cl = lock->cl;
    dibsx_nsec now = dibsx_now();
    bool valid = dibs__lease_valid(&lock->lease, now);
    bool was_held = lock->lease.fence != 0;
    char owner[DIBS_OWNER_SIZE];
    dibs__leave leave = {.name = dibs__spare_name(lock, owner), .owner = owner};
    dibs__store *st = lock->st;
    dibsx_nsec deadline = dibs__client_deadline(cl, now);
    dibs_status rc;

    memcpy(owner, lock->lease.owner, sizeof(owner));
    leave.alone = was_held && lock->lease.alone;
    if (limit_ms > 0 && limit_ms < cl->timeout_ms)
        deadline = dibsx_after_ms(now, limit_ms);
    if (valid)
        leave.keep_ms = keep_ms(lock, now);
    dibs__lock_unlist(lock);
    count_end(lock, valid);
    leave.unanswered = dibs__lease_leave(&lock->lease);
    dibs__keeper_watch(cl, lock);
    /* What was held and ran out here is running out there as well: the news is
     * not worth a wait on a store that may be away. */
    if (was_held && !valid)
        return dibsx_fail(err, DIBS_LOST, "the lease on %s had ended",
                          lock->name);
    pthread_mutex_unlock(&cl->mutex);
    rc = send_release(st, &leave, deadline, err);
    pthread_mutex_lock(&cl->mutex);
    return rc;
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

dibs_status dibs_lock_release(dibs_lock *lock, dibs_error *err)
{
    dibs_status rc = dibs__lock_enter(lock, err);

    if (rc != DIBS_OK)
        return rc;
    if (lock->lease.state == DIBS__LEASE_FREE)
        rc = dibsx_fail(err, DIBS_LOST, "%s is not held", lock->name);
    else
        rc = dibs__lock_give_up(lock, 0, err);
    dibs__lock_exit(lock);
    return rc;
}

void dibs_lock_leave(dibs_lock *lock)
{
    if (dibs__lock_enter(lock, NULL) != DIBS_OK)
        return;
    dibs__lock_unlist(lock);
    count_end(lock, dibs__lease_valid(&lock->lease, dibsx_now()));
    (void)dibs__lease_leave(&lock->lease);
    dibs__keeper_watch(lock->cl, lock);
    dibs__lock_exit(lock);
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
    memcpy(owner, lock->lease.owner, DIBS_OWNER_SIZE);
    pthread_mutex_unlock(mutex);
}

int dibs_lock_lost_fd(dibs_lock *lock)
{
    dibs_client *cl = lock->cl;
    int fd;

    if (dibs__forked(cl->fork_number))
        return -1;
    pthread_mutex_lock(&cl->mutex);
    if (lock->lost_fd < 0) {
        lock->lost_fd =
            timerfd_create(CLOCK_BOOTTIME, TFD_NONBLOCK | TFD_CLOEXEC);
        dibs__keeper_watch(cl, lock);
    }
    fd = lock->lost_fd;
    pthread_mutex_unlock(&cl->mutex);
    return fd;
}
