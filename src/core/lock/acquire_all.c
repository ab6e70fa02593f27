/* acquire_all.c - several leases acquired in one step of the store.
 *
 * Owns the question while it is under way. The calling thread asks; it never
 * waits in a queue. */
/* SPDX-License-Identifier: MIT */
#include "core/lock/acquire_all.h"

#include "base/fail.h"
#include "core/away.h"
#include "core/lock/acquire.h"
#include "core/lock/enter.h"
#include "core/lock/handle.h"
#include "core/lock/publish.h"
#include "core/lock/reentry.h"
#include "core/lock/release.h"
#include "core/reach.h"
#include "core/stats/record.h"
#include "core/stats/shared_events.h"
#include "core/who.h"

/* Even when the wait is over, the step gets this long. */
enum { CHANCE_MS = 50 };

/* Limit of the release of each lease that is not wanted after all. */
enum { GIVE_UP_MS = 250 };

/* A step whose answer was lost is sent again: it is idempotent by owner. */
enum { TRIES = 2 };

typedef struct step {
    dibs_client *cl;
    dibs_lock *const *locks;
    size_t count;
    size_t blocked;
    char who[DIBS__WHO_MAX]; /* the same for all */
    char owners[DIBS__ALL_MAX][DIBS_OWNER_SIZE];
    dibs__ask asks[DIBS__ALL_MAX];
    dibs__answer answers[DIBS__ALL_MAX];
    dibs__lock_acquire rooms[DIBS__ALL_MAX];
} step;

/* Begins a lease by a new owner for each lock. The lease of an earlier owner is
 * void by then. Locks: cl->mutex, let go to give it up. */
static dibs_status begin_leases(step *sp, dibs_error *err)
{
    dibs_status rc = DIBS_OK;
    bool done = false;

    for (size_t i = 0; i < sp->count && rc == DIBS_OK && !done; i++) {
        dibs__reentry_name(sp->locks[i]);
        rc = dibs__reentry_enter(sp->locks[i], false, &done, err);
        if (rc == DIBS_OK)
            rc = dibs__owner_new(sp->cl, sp->owners[i], err);
    }
    if (rc == DIBS_OK && done)
        rc = dibsx_fail(err, DIBS_INTERNAL, "a lock of a set was entered");
    for (size_t i = 0; i < sp->count && rc == DIBS_OK; i++) {
        dibs_lock *lock = sp->locks[i];

        if (lock->lease.state != DIBS__LEASE_FREE)
            (void)dibs__lock_give_up(lock, GIVE_UP_MS, NULL);
        dibs__lock_use_store(lock, sp->cl->st, DIBS_FALLBACK_NONE);
        dibs__lock_begin(lock, sp->owners[i]);
    }
    return rc;
}

/* Locks: cl->mutex. */
static void put_question(step *sp)
{
    dibs__who_text(sp->locks[0], sp->who);
    for (size_t i = 0; i < sp->count; i++) {
        dibs__lock_ask(sp->locks[i], &sp->asks[i]);
        sp->asks[i].flags &= DIBS__ASK_TELL;
        sp->asks[i].who = sp->who;
    }
}

/* One ask, and its answer for every lock. Locks: cl->mutex, let go for the
 * step. */
static dibs_status ask_store(step *sp, dibsx_nsec until, dibs_error *err)
{
    dibs__store *st = sp->cl->st;
    dibsx_nsec now = dibsx_now();
    dibsx_nsec deadline = dibs__client_deadline(sp->cl, now);
    dibsx_nsec chance = dibsx_after_ms(now, CHANCE_MS);
    dibs_status rc;

    if (until < deadline)
        deadline = until > chance ? until : chance;
    for (size_t i = 0; i < sp->count; i++) {
        dibs__lease_asked(&sp->locks[i]->lease, now);
        dibs__keeper_watch(sp->cl, sp->locks[i]);
        sp->answers[i] = (dibs__answer){0};
    }
    pthread_mutex_unlock(&sp->cl->mutex);
    rc = dibs__reach_store(sp->cl, deadline, err);
    if (rc == DIBS_OK)
        rc = st->ops->lease->acquire_all(st, sp->asks, sp->count, deadline,
                                         sp->answers, &sp->blocked, err);
    pthread_mutex_lock(&sp->cl->mutex);
    if (rc != DIBS_UNAVAIL && rc != DIBS_UNKNOWN)
        dibs__away_ended(sp->cl);
    now = dibsx_now();
    for (size_t i = 0; i < sp->count; i++) {
        dibs__lease_answered(&sp->locks[i]->lease, rc, &sp->answers[i], now);
        dibs__keeper_watch(sp->cl, sp->locks[i]);
    }
    return rc;
}

/* Locks: cl->mutex. */
static bool all_valid(const step *sp)
{
    dibsx_nsec now = dibsx_now();

    for (size_t i = 0; i < sp->count; i++)
        if (!dibs__lease_valid(&sp->locks[i]->lease, now))
            return false;
    return true;
}

void dibs__acquire_all_count(dibs_lock *lock, dibs_status rc, dibsx_nsec waited)
{
    dibs__stats *stats = &lock->cl->stats;

    dibs__count(&stats->attempts);
    dibs__count_outcome(stats, rc);
    if (rc == DIBS_OK) {
        dibs__count(&stats->held);
        if (lock->cl->share_events)
            dibs__shared_events_add(lock, DIBS_LEASE_ACQUIRED,
                                    lock->lease.fence, dibsx_now() - waited);
    }
    dibs__record_acquired(lock, rc, waited, rc == DIBS_BUSY);
}

/* The program has them. Locks: cl->mutex. */
static void note_acquired(step *sp)
{
    for (size_t i = 0; i < sp->count; i++) {
        dibs_lock *lock = sp->locks[i];

        dibs__reentry_acquired(lock);
        dibs__acquire_all_count(lock, DIBS_OK,
                                dibsx_now() - lock->lease.sent_at);
    }
}

/* The program has none of them. False: an entry that may be in the store could
 * not be released. Locks: cl->mutex, let go meanwhile. */
static bool give_back(step *sp)
{
    bool all = true;

    for (size_t i = sp->count; i-- > 0;) {
        dibs_lock *lock = sp->locks[i];
        dibs_status rc = DIBS_OK;

        /* After a refusal the store has no entry. After an ask without an
         * answer it may yet grant one. */
        if (lock->lease.state != DIBS__LEASE_FREE || lock->lease.unanswered)
            rc = dibs__lock_give_up(lock, GIVE_UP_MS, NULL);
        dibs__lock_unlist(lock);
        if (lock->lease.unanswered && rc != DIBS_OK && rc != DIBS_LOST)
            all = false;
    }
    return all;
}

/* As every acquire, they are busy, and a client that is being closed waits for
 * them. Locks: cl->mutex. */
static void enter_locks(step *sp)
{
    for (size_t i = 0; i < sp->count; i++) {
        sp->locks[i]->busy = true;
        dibs__lock_acquire_enlist(sp->locks[i], &sp->rooms[i]);
    }
}

/* Locks: cl->mutex. */
static void exit_locks(const step *sp)
{
    for (size_t i = 0; i < sp->count; i++) {
        dibs__lock_acquire_delist(sp->locks[i]);
        sp->locks[i]->busy = false;
    }
}

dibs_status
dibs__acquire_all_try(dibs_lock *const *locks, size_t count, dibsx_nsec until,
                      size_t *blocked, dibs_error *err)
{
    step sp = {.cl = locks[0]->cl, .locks = locks, .count = count};
    dibs_status rc;

    *blocked = 0;
    if (!sp.cl->st->ops->lease->acquire_all || count > DIBS__ALL_MAX ||
        locks[0]->traits->replicas > 0)
        return dibsx_fail(err, DIBS_UNSUPPORTED,
                          "this store takes one name at a time");
    rc = dibs__timer_ready(sp.cl, err);
    if (rc != DIBS_OK)
        return rc;
    enter_locks(&sp);
    rc = begin_leases(&sp, err);
    if (rc == DIBS_OK) {
        put_question(&sp);
        rc = DIBS_UNKNOWN;
        for (int i = 0; i < TRIES && rc == DIBS_UNKNOWN; i++)
            rc = ask_store(&sp, until, err);
        if (rc == DIBS_OK && !all_valid(&sp))
            rc = dibsx_fail(err, DIBS_TIMEOUT,
                            "the leases ran out before all were granted");
        if (rc == DIBS_OK)
            note_acquired(&sp);
        else if (!give_back(&sp) && rc == DIBS_UNAVAIL)
            rc = dibsx_unanswered(err);
    }
    exit_locks(&sp);
    *blocked = sp.blocked < count ? sp.blocked : 0;
    return rc;
}
