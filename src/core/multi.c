/* multi.c - several names at once: all of them or none.
 *
 * Owns the lock handles of a set, in the order of their full names. The calling
 * thread acquires them: in one step if they are all free, else one after the other
 * in that order, which cannot deadlock. Losses are announced on the keeper thread. A
 * loss during the wait for the other locks ends that wait, as the set is not whole
 * any more.
 *
 * Locks: cl->mutex for everything that is not immutable. */
/* SPDX-License-Identifier: MIT */
#include <dibs/multi.h>

#include "base/alloc.h"
#include "base/cond.h"
#include "base/fail.h"
#include "base/opts.h"
#include "base/uncancel.h"
#include "core/away.h"
#include "core/fork.h"
#include "core/lock/acquire.h"
#include "core/lock/acquire_all.h"
#include "core/lock/handle.h"
#include "core/lock/lock_opts.h"
#include "core/lock/parting.h"
#include "core/lock/publish.h"
#include "core/lock/release.h"
#include "core/log.h"
#include "core/names.h"
#include <string.h>

/* Limit of the release of each lease that is not wanted after all. */
enum { GIVE_UP_MS = 250 };

struct dibs_multi {
    /* Immutable. */
    dibs_client *cl;
    dibs_lock_opts opts; /* whole; the callbacks are the program's */
    size_t count;
    dibs_lock *locks[DIBS_MULTI_MAX]; /* by full name */

    bool busy;      /* a call is under way */
    bool acquiring; /* ... an acquire */
    bool cancelled; /* it is to end */
    bool torn;      /* a lock that it has acquired so far is lost */
    bool doubtful;  /* the store may have an entry of it all the same */
    bool held;      /* the program has the set */
    uint32_t tries; /* of the acquire that is under way, or was last */
};

/* Ends the wait for whichever lock, also for one that has not begun. Locks:
 * cl->mutex. */
static void stop_waiting(dibs_multi *multi)
{
    pthread_cond_broadcast(&multi->cl->over);
    for (size_t i = 0; i < multi->count; i++) {
        multi->locks[i]->stopped = true;
        dibs__lock_acquire_cancel(multi->locks[i]);
    }
}

/* By now the set may have been acquired anew, which a loss before that does not
 * concern. Thread: the keeper. */
static void lost_one(dibs_lock *lock, void *arg)
{
    dibs_multi *multi = arg;
    bool lost, held;

    pthread_mutex_lock(&lock->cl->mutex);
    lost = lock->lease.announced;
    held = lost && multi->held;
    if (lost && !held && multi->acquiring) {
        multi->torn = true;
        stop_waiting(multi);
    }
    pthread_mutex_unlock(&lock->cl->mutex);
    if (held && multi->opts.on_lost)
        multi->opts.on_lost(lock, multi->opts.on_lost_arg);
}

/* Thread: the keeper. The program does not hold a set that is not whole yet. */
static void asked_for_one(dibs_lock *lock, void *arg)
{
    const dibs_multi *multi = arg;
    bool held;

    pthread_mutex_lock(&lock->cl->mutex);
    held = multi->held;
    pthread_mutex_unlock(&lock->cl->mutex);
    if (held)
        multi->opts.on_yield(lock, multi->opts.on_yield_arg);
}

/* Puts a new lock where its name belongs. */
static void insert_sorted(dibs_multi *multi, dibs_lock *lock)
{
    size_t i = multi->count++;

    for (; i > 0 && strcmp(multi->locks[i - 1]->name, lock->name) > 0; i--)
        multi->locks[i] = multi->locks[i - 1];
    multi->locks[i] = lock;
}

static bool has_name(const dibs_multi *multi, const char *full)
{
    for (size_t i = 0; i < multi->count; i++)
        if (strcmp(multi->locks[i]->name, full) == 0)
            return true;
    return false;
}

static dibs_status add_name(dibs_multi *multi, const char *name,
                            const dibs_lock_opts *opts, dibs_error *err)
{
    char full[DIBS_NAME_MAX + 1];
    dibs_lock *lock = NULL;
    dibs_status rc = dibs__name_full(multi->cl, name, full, err);

    if (rc != DIBS_OK || has_name(multi, full))
        return rc;
    if (multi->count == DIBS_MULTI_MAX)
        return dibsx_fail(err, DIBS_INVALID, "a set has at most %d names",
                          DIBS_MULTI_MAX);
    rc = dibs_lock_new(multi->cl, name, opts, &lock, err);
    if (rc != DIBS_OK)
        return rc;
    insert_sorted(multi, lock);
    return DIBS_OK;
}

/* Makes a lock for each name, which calls the set back. */
static dibs_status
add_names(dibs_multi *multi, const char *const *names, size_t count,
          const dibs_lock_opts *opts, dibs_error *err)
{
    dibs_lock_opts given, own;
    dibs_status rc =
        dibsx_opts_copy(&given, sizeof(given), opts, "DIBS_LOCK_OPTS()", err);

    if (rc != DIBS_OK)
        return rc;
    own = given;
    own.size = sizeof(own);
    own.on_lost = lost_one;
    own.on_yield = given.on_yield ? asked_for_one : NULL;
    own.on_lost_arg = own.on_yield_arg = multi;
    for (size_t i = 0; i < count && rc == DIBS_OK; i++)
        rc = add_name(multi, names[i], &own, err);
    if (rc != DIBS_OK)
        return rc;
    multi->opts = multi->locks[0]->traits->opts;
    multi->opts.on_lost = given.on_lost;
    multi->opts.on_lost_arg = given.on_lost_arg;
    multi->opts.on_yield = given.on_yield;
    multi->opts.on_yield_arg = given.on_yield_arg;
    return DIBS_OK;
}

static dibs_status check_opts(const dibs_lock_opts *opts, dibs_error *err)
{
    if (opts->mode == DIBS_PERMITS)
        return dibsx_fail(err, DIBS_INVALID,
                          "a set is exclusive or shared; permits are not for "
                          "sets");
    if (opts->flags & (DIBS_LOCK_REENTRANT | DIBS_LOCK_STICKY))
        return dibsx_fail(err, DIBS_INVALID,
                          "a set is neither reentrant nor sticky");
    if (opts->progress_ms > 0)
        return dibsx_fail(err, DIBS_INVALID, "progress_ms is not for sets");
    return DIBS_OK;
}

dibs_status
dibs_multi_new(dibs_client *cl, const char *const *names, size_t count,
               const dibs_lock_opts *opts, dibs_multi **out, dibs_error *err)
{
    DIBSX_UNCANCEL;
    dibs_multi *multi = NULL;
    dibs_status rc = dibs__client_usable(cl, err);

    *out = NULL;
    if (rc != DIBS_OK)
        return rc;
    if (!names || count == 0)
        return dibsx_fail(err, DIBS_INVALID, "the set has no names");
    multi = dibsx_zalloc(sizeof(*multi));
    if (!multi)
        return dibsx_nomem(err, "a set of locks");
    multi->cl = cl;
    rc = add_names(multi, names, count, opts, err);
    if (rc == DIBS_OK)
        rc = check_opts(&multi->opts, err);
    if (rc == DIBS_OK)
        *out = multi;
    else
        dibs_multi_free(multi);
    return rc;
}

void dibs_multi_free(dibs_multi *multi)
{
    DIBSX_UNCANCEL;
    dibs_client *cl;

    if (!multi || dibs__forked(multi->cl->fork_number))
        return;
    cl = multi->cl;
    pthread_mutex_lock(&cl->mutex);
    multi->held = false;
    pthread_mutex_unlock(&cl->mutex);
    for (size_t i = multi->count; i-- > 0;)
        dibs_lock_free(multi->locks[i]);
    dibsx_free(multi);
}

/* One call at a time on a handle. On DIBS_OK the mutex is held. */
static dibs_status enter_set(dibs_multi *multi, dibs_error *err)
{
    dibs_status rc;

    if (!multi)
        return dibsx_fail(err, DIBS_INVALID, "the set is NULL");
    rc = dibs__client_usable(multi->cl, err);
    if (rc != DIBS_OK)
        return rc;
    pthread_mutex_lock(&multi->cl->mutex);
    /* It may have been closed since. */
    rc = dibs__client_usable(multi->cl, err);
    if (rc == DIBS_OK && multi->busy)
        rc = dibsx_fail(err, DIBS_INVALID,
                        "another thread is using this set of locks");
    if (rc != DIBS_OK) {
        pthread_mutex_unlock(&multi->cl->mutex);
        return rc;
    }
    multi->busy = true;
    multi->cl->calls++;
    return DIBS_OK;
}

/* Locks: cl->mutex, released. */
static void exit_set(dibs_multi *multi)
{
    multi->busy = false;
    dibs__client_leave(multi->cl);
    pthread_mutex_unlock(&multi->cl->mutex);
}

/* Locks: cl->mutex. */
static bool all_valid(const dibs_multi *multi)
{
    dibsx_nsec now = dibsx_now();

    for (size_t i = 0; i < multi->count; i++)
        if (!dibs__lease_valid(&multi->locks[i]->lease, now))
            return false;
    return true;
}

/* Releases every lock that was acquired. If the store does not answer, its
 * entry expires. Locks: cl->mutex, let go meanwhile. */
static void give_all_back(dibs_multi *multi)
{
    multi->held = false;
    for (size_t i = multi->count; i-- > 0;) {
        dibs_status rc = DIBS_OK;

        if (multi->locks[i]->lease.state != DIBS__LEASE_FREE)
            rc = dibs__lock_give_up(multi->locks[i], GIVE_UP_MS, NULL);
        if (rc != DIBS_OK && rc != DIBS_LOST)
            multi->doubtful = true;
    }
}

/* By the program, or because its client is being closed. Locks: cl->mutex. */
static bool is_cancelled(const dibs_multi *multi)
{
    return multi->cancelled || multi->cl->closing;
}

/* Sleeps until a moment on the boot clock, or until the acquire is cancelled.
 * Locks: cl->mutex, let go while sleeping. */
static void sleep_until(dibs_multi *multi, dibsx_nsec until)
{
    while (!is_cancelled(multi) && dibsx_now() < until)
        dibsx_cond_wait(&multi->cl->over, &multi->cl->mutex, until);
}

static dibs_status fail_cancelled(dibs_error *err)
{
    return dibsx_fail(err, DIBS_CANCELLED,
                      "the wait for a set of locks was cancelled");
}

/* The pause between two tries. Locks: cl->mutex, let go while sleeping. */
static dibs_status
pause_between(dibs_multi *multi, dibsx_nsec until, dibs_error *err)
{
    uint64_t delay_ms = (uint64_t)multi->opts.retry_delay_ms;
    dibsx_nsec again_at;

    delay_ms =
        delay_ms / 2 + dibsx_prng_below(&multi->cl->jitter, delay_ms + 1);
    again_at = dibsx_after_ms(dibsx_now(), (int64_t)delay_ms);
    sleep_until(multi, again_at < until ? again_at : until);
    return is_cancelled(multi) ? fail_cancelled(err) : DIBS_OK;
}

/* Begins a try without any lock. Locks: cl->mutex. */
static void clear_marks(dibs_multi *multi)
{
    multi->torn = false;
    for (size_t i = 0; i < multi->count; i++)
        multi->locks[i]->stopped = multi->cancelled;
}

/* One lock with what is left of the time. DIBS_LOST: one of those before it has
 * ended meanwhile. Locks: cl->mutex, let go meanwhile. */
static dibs_status acquire_one(dibs_multi *multi, dibs_lock *lock, bool once,
                               dibsx_nsec until, dibs_error *err)
{
    dibs_status rc;
    int64_t wait_ms = once ? 0 : dibsx_wait_ms(until, dibsx_now());

    if (is_cancelled(multi))
        return fail_cancelled(err);
    pthread_mutex_unlock(&multi->cl->mutex);
    rc = dibs__lock_acquire_block(lock, wait_ms, 0, err);
    pthread_mutex_lock(&multi->cl->mutex);
    if (rc == DIBS_CANCELLED && multi->torn && !multi->cancelled)
        return DIBS_LOST;
    /* The time was up before this one was asked for. */
    if (rc == DIBS_BUSY && !once)
        return dibs__acquire_late(lock->name, err);
    return rc;
}

/* One after the other. Locks: cl->mutex, let go meanwhile. */
static dibs_status acquire_in_order(dibs_multi *multi, bool once,
                                    dibsx_nsec until, dibs_error *err)
{
    dibs_status rc = DIBS_OK;

    for (size_t i = 0; i < multi->count && rc == DIBS_OK; i++)
        rc = acquire_one(multi, multi->locks[i], once, until, err);
    if (rc == DIBS_OK && !all_valid(multi))
        rc = DIBS_LOST;
    return rc;
}

/* Whether the answer to the one step is final. If a name is held, or the store
 * is away, the locks are acquired in order: each then has its place in the
 * queue, and its own fallback. */
static bool is_final(const dibs_multi *multi, dibs_status rc, bool once)
{
    switch (rc) {
    case DIBS_BUSY:
    case DIBS_TIMEOUT:
        return once;
    case DIBS_UNAVAIL:
    case DIBS_UNKNOWN:
        return once && multi->cl->on_unavailable == DIBS_AWAY_FAIL;
    case DIBS_UNSUPPORTED:
    case DIBS_LOST:
        return false;
    default:
        return true;
    }
}

/* Names the lock that was held, if the message of the store does not. */
static dibs_status say_busy(const dibs_multi *multi, size_t i, dibs_error *err)
{
    const char *name = multi->locks[i]->name;

    if (err && err->status == DIBS_BUSY && strstr(err->message, name))
        return DIBS_BUSY;
    return dibsx_fail(err, DIBS_BUSY, "%s is held by another owner", name);
}

/* Whether a release of one of the names is under way. Locks: cl->mutex. */
static bool has_parting(const dibs_multi *multi)
{
    for (size_t i = 0; i < multi->count; i++)
        if (dibs__parting_exists(multi->locks[i]))
            return true;
    return false;
}

/* In one step, if the set and the store allow it. An ask for one name comes after the
 * partings with it, which that step would not. Locks: cl->mutex, let go meanwhile. */
static dibs_status
acquire_at_once(dibs_multi *multi, bool once, dibsx_nsec until, dibs_error *err)
{
    dibsx_nsec began_at = dibsx_now();
    size_t blocked = 0;
    dibs_status rc;

    if (multi->opts.mode != DIBS_EXCLUSIVE || has_parting(multi) ||
        (multi->cl->away && multi->cl->on_unavailable != DIBS_AWAY_FAIL))
        return DIBS_UNSUPPORTED;
    rc = dibs__acquire_all_try(multi->locks, multi->count,
                               once ? DIBSX_NEVER : until, &blocked, err);
    if (rc == DIBS_OK || !is_final(multi, rc, once))
        return rc;
    dibs__acquire_all_count(multi->locks[blocked], rc, dibsx_now() - began_at);
    return rc == DIBS_BUSY ? say_busy(multi, blocked, err) : rc;
}

/* All of them, one way or the other; on failure none. DIBS_LOST: begin again.
 * Locks: cl->mutex, let go meanwhile. */
static dibs_status
acquire_set(dibs_multi *multi, bool once, dibsx_nsec until, dibs_error *err)
{
    dibs_status rc;

    if (is_cancelled(multi))
        return fail_cancelled(err);
    clear_marks(multi);
    rc = acquire_at_once(multi, once, until, err);
    if (rc == DIBS_UNKNOWN)
        multi->doubtful = true;
    if (!is_final(multi, rc, once))
        rc = acquire_in_order(multi, once, until, err);
    multi->held = rc == DIBS_OK;
    if (rc != DIBS_OK)
        give_all_back(multi);
    return rc;
}

/* One try, with one deadline. If a lock is lost before all are acquired, the
 * try begins again while there is time. Locks: cl->mutex, let go meanwhile. */
static dibs_status try_set(dibs_multi *multi, int64_t wait_ms, dibs_error *err)
{
    dibsx_nsec until = dibsx_after_ms(dibsx_now(), wait_ms);
    dibs_status rc = acquire_set(multi, wait_ms == 0, until, err);

    while (rc == DIBS_LOST) {
        if (dibsx_now() >= until)
            return dibsx_fail(err, DIBS_TIMEOUT,
                              "a lock of the set was lost while the others "
                              "were waited for");
        rc = pause_between(multi, until, err);
        if (rc == DIBS_OK)
            rc = acquire_set(multi, wait_ms == 0, until, err);
    }
    return rc;
}

static bool may_retry(dibs_status rc)
{
    return rc == DIBS_BUSY || rc == DIBS_TIMEOUT || rc == DIBS_UNAVAIL ||
           rc == DIBS_UNKNOWN;
}

/* Locks: cl->mutex, let go meanwhile. */
static dibs_status acquire_entered(dibs_multi *multi, int64_t wait_ms,
                                   uint32_t retries, dibs_error *err)
{
    dibs_error why = {0};
    dibs_status rc = DIBS_OK;

    if (multi->held && all_valid(multi))
        return dibsx_fail(err, DIBS_INVALID,
                          "this handle holds the set already");
    give_all_back(multi);
    multi->doubtful = false;
    multi->cancelled = false;
    multi->acquiring = true;
    for (uint32_t i = 0; rc == DIBS_OK; i++) {
        dibsx_nsec began_at = dibsx_now();

        multi->tries = i + 1;
        rc = try_set(multi, wait_ms, &why);
        if (!may_retry(rc) || i >= retries)
            break;
        if (rc == DIBS_UNAVAIL || rc == DIBS_UNKNOWN)
            dibs__away_failed(multi->cl, began_at, &why);
        rc = pause_between(multi, DIBSX_NEVER, &why);
    }
    multi->acquiring = false;
    if (rc != DIBS_OK && err)
        *err = why;
    if (rc == DIBS_UNAVAIL && multi->doubtful)
        rc = dibsx_unanswered(err);
    return rc;
}

/* Locks: cl->mutex, let go meanwhile. */
static void log_tries(const dibs_multi *multi)
{
    char attempt[DIBS__ATTEMPT_SIZE];

    pthread_mutex_unlock(&multi->cl->mutex);
    dibs__attempt_text(multi->tries, attempt);
    dibs__log(multi->cl, DIBS_LOG_INFO, "granted", "%s and %zu more%s",
              multi->locks[0]->name, multi->count - 1, attempt);
    pthread_mutex_lock(&multi->cl->mutex);
}

/* Hears from the holder of a name, where the options want that. Locks: cl->mutex, let
 * go meanwhile. */
static void open_bell(const dibs_multi *multi)
{
    dibs_client *cl = multi->cl;

    if (!dibs__opts_hear(&multi->opts))
        return;
    pthread_mutex_unlock(&cl->mutex);
    dibs__notices_listen(cl, cl->st, dibs__client_deadline(cl, dibsx_now()));
    pthread_mutex_lock(&cl->mutex);
}

static dibs_status acquire_call(dibs_multi *multi, int64_t wait_ms,
                                uint32_t retries, dibs_error *err)
{
    dibs_status rc = enter_set(multi, err);

    if (rc != DIBS_OK)
        return rc;
    open_bell(multi);
    rc = acquire_entered(multi, wait_ms, retries, err);
    if (rc == DIBS_OK && multi->tries > 1)
        log_tries(multi);
    exit_set(multi);
    return rc;
}

dibs_status dibs_multi_acquire(dibs_multi *multi, dibs_error *err)
{
    DIBSX_UNCANCEL;

    return acquire_call(multi, multi ? multi->opts.wait_ms : 0,
                        multi ? multi->opts.retries : 0, err);
}

dibs_status dibs_multi_try(dibs_multi *multi, dibs_error *err)
{
    DIBSX_UNCANCEL;

    return acquire_call(multi, 0, 0, err);
}

void dibs_multi_cancel(dibs_multi *multi)
{
    DIBSX_UNCANCEL;

    if (!multi || dibs__client_usable(multi->cl, NULL) != DIBS_OK)
        return;
    pthread_mutex_lock(&multi->cl->mutex);
    if (multi->acquiring) {
        multi->cancelled = true;
        stop_waiting(multi);
    }
    pthread_mutex_unlock(&multi->cl->mutex);
}

/* Gives back one and keeps what matters most to the caller: a loss, else the
 * first failure. Locks: cl->mutex, let go meanwhile. */
static dibs_status release_one(dibs_lock *lock, dibs_status rc, dibs_error *err)
{
    dibs_error why = {0};
    dibs_status own;

    pthread_mutex_unlock(&lock->cl->mutex);
    own = dibs_lock_release(lock, &why);
    pthread_mutex_lock(&lock->cl->mutex);
    if (own == DIBS_OK || rc == DIBS_LOST ||
        (rc != DIBS_OK && own != DIBS_LOST))
        return rc;
    if (err)
        *err = why;
    return own;
}

dibs_status dibs_multi_release(dibs_multi *multi, dibs_error *err)
{
    DIBSX_UNCANCEL;
    dibs_status rc = enter_set(multi, err);
    bool held;

    if (rc != DIBS_OK)
        return rc;
    /* From here on a loss is not announced to the program. */
    held = multi->held;
    multi->held = false;
    for (size_t i = multi->count; i-- > 0 && held;)
        rc = release_one(multi->locks[i], rc, err);
    if (!held)
        rc = dibsx_fail(err, DIBS_LOST, "the set is not held");
    exit_set(multi);
    return rc;
}

dibs_status dibs_multi_check(const dibs_multi *multi)
{
    for (size_t i = 0; i < multi->count; i++)
        if (dibs_lock_check(multi->locks[i]) != DIBS_OK)
            return DIBS_LOST;
    return DIBS_OK;
}

int64_t dibs_multi_valid_ms(const dibs_multi *multi)
{
    int64_t least_ms = INT64_MAX;

    for (size_t i = 0; i < multi->count; i++) {
        int64_t valid_ms = dibs_lock_valid_ms(multi->locks[i]);

        if (valid_ms < least_ms)
            least_ms = valid_ms;
    }
    return least_ms;
}

size_t dibs_multi_count(const dibs_multi *multi)
{
    return multi->count;
}

dibs_lock *dibs_multi_lock(const dibs_multi *multi, size_t i)
{
    return i < multi->count ? multi->locks[i] : NULL;
}

const char *dibs_multi_name(const dibs_multi *multi, size_t i)
{
    if (i >= multi->count)
        return NULL;
    return dibs__name_short(multi->cl, multi->locks[i]->name);
}
