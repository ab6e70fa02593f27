/* wait.c - taking a lease: asking, waiting for the ring, asking again.
 *
 * The calling thread does the asking; the keeper hears the ring and wakes it. A
 * ring that is lost costs at most a second, for then the thread asks anyway. */
/* SPDX-License-Identifier: MIT */
#include "base/fail.h"
#include "core/keeper.h"
#include "core/lock.h"
#include "core/spare.h"
#include <assert.h>
#include <string.h>

/* A waiter asks again at least this often. It also keeps its place alive, so it
 * must stay well below DIBS__PLACE_MS. */
enum { POLL_MS = 1000 };

/* Waiters that are further back ask a little later when a holder is due to end,
 * so that the first of them finds the store quiet. */
enum { STAGGER_MS = 10, STAGGER_MAX = 20 };

/* Pause before asking again after the store failed, doubled up to the cap. */
enum { BACKOFF_MS = 10, BACKOFF_CAP_MS = 500 };

/* Even the last ask before the end of a wait gets this long. */
enum { CHANCE_MS = 50 };

/* How long the store is told that a wait has ended. A place or a grant that it
 * does not hear of ends by itself. */
enum { GIVE_UP_MS = 250 };

typedef struct attempt {
    dibs_lock *lock;
    bool once;        /* do not wait */
    dibsx_nsec until; /* give up then */
    int64_t backoff_ms;
    dibs__answer ans; /* the latest */
} attempt;

/* Sleeps until a moment on the boot clock, a ring, or a cancel. The condition
 * variable counts on the monotonic clock; whoever wakes late looks again.
 * Locks: cl->mutex, let go while sleeping. */
static void sleep_until(dibs_lock *lock, dibsx_nsec until)
{
    int64_t span_ms = dibsx_wait_ms(until, dibsx_now());
    struct timespec at;

    clock_gettime(CLOCK_MONOTONIC, &at);
    if (span_ms < 0 || span_ms > POLL_MS)
        span_ms = POLL_MS;
    at.tv_sec += span_ms / 1000;
    at.tv_nsec += (long)(span_ms % 1000) * 1000000;
    if (at.tv_nsec >= 1000000000) {
        at.tv_nsec -= 1000000000;
        at.tv_sec++;
    }
    pthread_cond_timedwait(&lock->cond, &lock->cl->mutex, &at);
}

/* When an ask must have ended: with the wait, but given a fair chance. */
static dibsx_nsec ask_until(const attempt *at, dibsx_nsec now)
{
    dibsx_nsec until = dibs__client_deadline(at->lock->cl, now);
    dibsx_nsec chance = dibsx_after_ms(now, CHANCE_MS);

    if (!at->once && at->until < until)
        until = at->until > chance ? at->until : chance;
    return until;
}

/* One ask. Locks: cl->mutex, let go for the step. */
static dibs_status ask(attempt *at, dibs_error *err)
{
    dibs_lock *lock = at->lock;
    dibs_client *cl = lock->cl;
    dibsx_nsec now = dibsx_now();
    char owner[DIBS_OWNER_SIZE];
    dibs__ask question = {.name = dibs__spare_name(lock, owner),
                          .owner = owner,
                          .mode = DIBS__EXCLUSIVE,
                          .permits = 1,
                          .flags = at->once ? 0 : DIBS__ASK_QUEUE,
                          .priority = lock->opts.priority,
                          .ttl_ms = lock->lease.ttl_ms,
                          .who = lock->who};
    dibs_status rc;

    if (lock->opts.flags & DIBS_LOCK_BARGE)
        question.flags |= DIBS__ASK_BARGE;
    memcpy(owner, lock->lease.owner, sizeof(owner));
    lock->nudged = false;
    dibs__lease_asked(&lock->lease, now);
    dibs__keeper_watch(cl, lock);
    pthread_mutex_unlock(&cl->mutex);
    at->ans = (dibs__answer){0};
    rc = lock->st->ops->lease->acquire(lock->st, &question, ask_until(at, now),
                                       &at->ans, err);
    pthread_mutex_lock(&cl->mutex);
    if (lock->st == cl->st && rc != DIBS_UNAVAIL && rc != DIBS_UNKNOWN)
        dibs__spare_store_answered(cl);
    dibs__lease_answered(&lock->lease, rc, &at->ans, dibsx_now());
    /* Queued, and held all the same: the ring was faster than this answer. */
    if (rc == DIBS_BUSY && lock->lease.state == DIBS__LEASE_HELD)
        dibs__count(&cl->stats.rings);
    dibs__keeper_watch(cl, lock);
    return rc;
}

/* When to ask again if no ring comes. */
static dibsx_nsec poll_at(const attempt *at, dibsx_nsec now)
{
    uint32_t ahead = at->ans.ahead < STAGGER_MAX ? at->ans.ahead : STAGGER_MAX;
    int64_t span_ms = at->ans.left_ms + 1 + (int64_t)ahead * STAGGER_MS;

    return dibsx_after_ms(now, span_ms < POLL_MS ? span_ms : POLL_MS);
}

/* Waits in the queue until there is a reason to act. Locks: cl->mutex, let go
 * while sleeping. */
static void wait_for_ring(attempt *at)
{
    dibs_lock *lock = at->lock;
    const dibs__lease *ls = &lock->lease;
    dibsx_nsec again_at = poll_at(at, dibsx_now());

    if (again_at > at->until)
        again_at = at->until;
    while (ls->state == DIBS__LEASE_QUEUED && !lock->cancelled &&
           !lock->nudged && ls->rung_fence <= ls->watermark) {
        if (dibsx_now() >= again_at) {
            dibs__count(&lock->cl->stats.polls);
            break;
        }
        sleep_until(lock, again_at);
    }
}

/* Waits a little, longer each time, after the store has failed. Locks:
 * cl->mutex, let go while sleeping. */
static void back_off(attempt *at)
{
    dibs_lock *lock = at->lock;
    uint64_t span_ms = (uint64_t)at->backoff_ms;
    dibsx_nsec again_at;

    span_ms = span_ms / 2 + dibsx_prng_below(&lock->cl->jitter, span_ms);
    again_at = dibsx_after_ms(dibsx_now(), (int64_t)span_ms);
    if (again_at > at->until)
        again_at = at->until;
    while (!lock->cancelled && dibsx_now() < again_at)
        sleep_until(lock, again_at);
    if (at->backoff_ms < BACKOFF_CAP_MS)
        at->backoff_ms *= 2;
}

/* Gives up the place, and a grant that may have come meanwhile. */
static dibs_status give_up(attempt *at, dibs_status rc, dibs_error *err)
{
    dibs_lock *lock = at->lock;
    dibs_error ignored;
    const char *name = lock->name;

    /* The answer does not matter: what stands in the store ends by itself. */
    (void)dibs__lock_give_up(lock, GIVE_UP_MS, &ignored);
    if (rc == DIBS_CANCELLED)
        return dibsx_fail(err, rc, "the wait for %s was cancelled", name);
    if (rc == DIBS_TIMEOUT)
        return dibsx_fail(err, rc, "%s was not granted in time", name);
    return rc;
}

/* What the state of the lease means for the caller: DIBS_OK held, DIBS_BUSY go
 * on, else the end. `rc` is the answer to the latest ask. */
static dibs_status judge(attempt *at, dibs_status rc, dibs_error *err)
{
    dibs_lock *lock = at->lock;
    dibs__lease_state state = lock->lease.state;
    dibsx_nsec now = dibsx_now();

    if (dibs__lease_valid(&lock->lease, now))
        return DIBS_OK;
    if (lock->cancelled)
        return give_up(at, DIBS_CANCELLED, err);
    if (state == DIBS__LEASE_ASKING && rc != DIBS_OK &&
        (at->once || dibs__spare_wanted(lock, rc)))
        return give_up(at, rc, err);
    if (now < at->until)
        return DIBS_BUSY;
    if (state == DIBS__LEASE_ASKING && rc != DIBS_OK)
        return give_up(at, rc, err);
    return give_up(at, DIBS_TIMEOUT, err);
}

/* The store has refused. There is nothing to give up, unless an earlier ask had
 * no answer and might yet be granted. */
static dibs_status refused(dibs_lock *lock, dibs_status rc, dibs_error *err)
{
    if (lock->lease.unanswered)
        (void)dibs__lock_give_up(lock, GIVE_UP_MS, NULL);
    dibs__lock_unlist(lock);
    /* The store says who holds it, if it can. */
    if (rc != DIBS_BUSY || (err && err->status == rc && err->message[0]))
        return rc;
    return dibsx_fail(err, rc, "%s is held by another owner", lock->name);
}

/* A new owner for a new try. What an earlier owner had is void by then. */
static dibs_status begin(dibs_lock *lock, dibs_error *err)
{
    const dibs_lock_opts *opts = &lock->opts;
    char owner[DIBS_OWNER_SIZE];
    dibs_status rc = dibs__owner_new(owner, err);

    if (rc != DIBS_OK)
        return rc;
    if (lock->lease.state != DIBS__LEASE_FREE)
        (void)dibs__lock_give_up(lock, GIVE_UP_MS, NULL);
    dibs__lease_begin(&lock->lease, owner, opts->ttl_ms, opts->hold_max_ms,
                      (opts->flags & DIBS_LOCK_NO_RENEW) != 0);
    dibs__lock_list(lock);
    return DIBS_OK;
}

/* One round: ask, and wait in the queue if that is the answer. DIBS_BUSY with
 * *over unset: another round. Locks: cl->mutex, let go meanwhile. */
static dibs_status ask_and_wait(attempt *at, bool *over, dibs_error *err)
{
    dibs__lease *ls = &at->lock->lease;
    dibs_status rc = ask(at, err);
    dibs_status end;

    *over = true;
    if (ls->state == DIBS__LEASE_FREE)
        return refused(at->lock, rc, err);
    end = judge(at, rc, err);
    if (end != DIBS_BUSY)
        return end;
    if (ls->state == DIBS__LEASE_QUEUED) {
        at->backoff_ms = BACKOFF_MS;
        wait_for_ring(at);
    } else if (rc != DIBS_OK) {
        back_off(at);
    }
    end = judge(at, rc, err);
    *over = end != DIBS_BUSY;
    return end;
}

/* Takes the lease with one owner, or with the next one when a lease was granted
 * and ran out before this thread could return with it. Locks: cl->mutex, let go
 * while asking and waiting. */
static dibs_status
try_lease(dibs_lock *lock, bool once, dibsx_nsec until, dibs_error *err)
{
    attempt at = {.lock = lock, .once = once, .until = until};
    dibs_status rc = DIBS_OK;
    bool over = false;

    at.backoff_ms = BACKOFF_MS;
    if (dibs__lease_valid(&lock->lease, dibsx_now()))
        return dibsx_fail(err, DIBS_INVALID, "this handle holds %s already",
                          lock->name);
    while (!over) {
        if (lock->lease.state != DIBS__LEASE_ASKING &&
            lock->lease.state != DIBS__LEASE_QUEUED)
            rc = begin(lock, err);
        if (rc != DIBS_OK)
            return rc;
        rc = ask_and_wait(&at, &over, err);
        if (!over)
            rc = DIBS_OK;
    }
    return rc;
}

/* The pause between two tries. Locks: cl->mutex, let go while sleeping. */
static dibs_status pause_between(dibs_lock *lock, dibs_error *err)
{
    uint64_t delay_ms = (uint64_t)lock->opts.retry_delay_ms;
    dibsx_nsec until;

    delay_ms = delay_ms / 2 + dibsx_prng_below(&lock->cl->jitter, delay_ms + 1);
    until = dibsx_after_ms(dibsx_now(), (int64_t)delay_ms);
    while (!lock->cancelled && dibsx_now() < until)
        sleep_until(lock, until);
    if (lock->cancelled)
        return dibsx_fail(err, DIBS_CANCELLED, "cancelled between tries");
    return DIBS_OK;
}

static void count_outcome(dibs_client *cl, dibs_status rc)
{
    if (rc == DIBS_OK) {
        dibs__count(&cl->stats.acquired);
        dibs__count(&cl->stats.held);
    } else if (rc == DIBS_BUSY || rc == DIBS_TIMEOUT || rc == DIBS_CANCELLED) {
        dibs__count(&cl->stats.busy);
    } else {
        dibs__count(&cl->stats.failed);
    }
}

/* One try: on the store, and on what stands in for it if that is to be. Locks:
 * cl->mutex, let go meanwhile. */
static dibs_status try_stores(dibs_lock *lock, int64_t wait_ms, dibs_error *err)
{
    dibsx_nsec until = dibsx_after_ms(dibsx_now(), wait_ms);
    dibs_error why = {0};
    dibs_status rc;

    if (lock->lease.state == DIBS__LEASE_FREE)
        dibs__lock_use_store(lock);
    rc = try_lease(lock, wait_ms == 0, until, &why);
    if (dibs__spare_wanted(lock, rc)) {
        rc = dibs__spare_use(lock, &why, &why);
        if (rc == DIBS_OK)
            rc = try_lease(lock, wait_ms == 0, until, &why);
    }
    if (rc != DIBS_OK && err)
        *err = why;
    return rc;
}

static dibs_status
acquire(dibs_lock *lock, int64_t wait_ms, uint32_t retries, dibs_error *err)
{
    dibs_client *cl;
    dibs_status rc;

    if (lock && wait_ms != 0 && dibs__client_usable(lock->cl, NULL) == DIBS_OK)
        dibs__keeper_listen(lock->cl, lock->cl->st,
                            dibsx_after_ms(dibsx_now(), wait_ms));
    rc = dibs__lock_enter(lock, err);
    if (rc != DIBS_OK)
        return rc;
    assert(lock);
    cl = lock->cl;
    rc = dibs__keeper_ready(cl, err);
    lock->cancelled = false;
    lock->taking = true;
    dibs__count(&cl->stats.attempts);
    dibs__count(&cl->stats.waiting);
    for (uint32_t i = 0; rc == DIBS_OK; i++) {
        rc = try_stores(lock, wait_ms, err);
        if ((rc != DIBS_BUSY && rc != DIBS_TIMEOUT) || i >= retries)
            break;
        rc = pause_between(lock, err);
    }
    lock->taking = false;
    dibs__uncount(&cl->stats.waiting);
    count_outcome(cl, rc);
    dibs__lock_exit(lock);
    return rc;
}

dibs_status dibs_lock_acquire(dibs_lock *lock, dibs_error *err)
{
    return acquire(lock, lock ? lock->opts.wait_ms : 0,
                   lock ? lock->opts.retries : 0, err);
}

dibs_status dibs_lock_try(dibs_lock *lock, dibs_error *err)
{
    return acquire(lock, 0, 0, err);
}

void dibs_lock_cancel(dibs_lock *lock)
{
    if (!lock || dibs__client_usable(lock->cl, NULL) != DIBS_OK)
        return;
    pthread_mutex_lock(&lock->cl->mutex);
    lock->cancelled = true;
    pthread_cond_broadcast(&lock->cond);
    pthread_mutex_unlock(&lock->cl->mutex);
}
