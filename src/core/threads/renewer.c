/* renewer.c - the thread that sends renewals, many in one step: those that are due, and
 * with them those that are due soon.
 *
 * Owns nothing but its batch. It holds a reference on every lock in the batch,
 * so that a handle freed meanwhile stays in memory until the answer is in. */
/* SPDX-License-Identifier: MIT */
#include "base/thread.h"
#include "core/lock/fallback.h"
#include "core/lock/handle.h"
#include "core/lock/publish.h"
#include "core/lock/sticky.h"
#include "core/log.h"
#include "core/stats/slack.h"
#include "core/threads/keeper.h"
#include <stdio.h>
#include <string.h>

/* As many as a store can renew in one step without making others wait. */
enum { BATCH = 128 };

/* Timers that are looked at for renewals to take along. Others are among them. */
enum { LOOKED_AT = 2 * BATCH };

/* Leases of a batch whose renewals began to fail, or succeed again. The log has a
 * line for all of them, and none for the retries between. */
typedef struct change {
    char first[DIBS_NAME_MAX + 1];
    size_t count;
    dibs_status rc;    /* of the first */
    uint32_t failures; /* the most that one had */
    int64_t left_ms;   /* the least that one has */
} change;

typedef struct batch {
    dibs__store *st; /* all of a batch are leases of one store */
    dibs__renewal items[BATCH];
    dibs_lock *locks[BATCH];
    char owners[BATCH][DIBS_OWNER_SIZE];
    size_t count;
    dibsx_nsec sent_at;
    change failing;
    change mended;
} batch;

/* Removes the first lock from the list, with its reference. Locks:
 * cl->mutex. */
static dibs_lock *pop_due(dibs_client *cl)
{
    dibs_lock *lock = cl->keeper.due;

    if (lock) {
        cl->keeper.due = lock->due.next;
        lock->due.listed = false;
    }
    return lock;
}

/* The next lock of the list that still holds the lease for which it was listed,
 * in this store. The others are dropped: nothing is renewed after a release,
 * nor while a lease is converted. Locks: cl->mutex. */
static dibs_lock *next_due(dibs_client *cl, const dibs__store *st)
{
    dibs_lock *lock;

    while (cl->keeper.due && cl->keeper.due->st == st) {
        lock = pop_due(cl);
        if (lock->due.current && dibs__lease_valid(&lock->lease, dibsx_now())) {
            lock->due.current = false;
            return lock;
        }
        dibs__lock_unref(lock);
    }
    return NULL;
}

/* Takes a lock with its reference. Locks: cl->mutex. */
static void add_item(batch *bt, dibs_lock *lock)
{
    const dibs__lease *ls = &lock->lease;
    size_t i = bt->count++;

    bt->locks[i] = lock;
    memcpy(bt->owners[i], ls->owner, DIBS_OWNER_SIZE);
    bt->items[i] = (dibs__renewal){
        .name = dibs__fallback_name(lock, bt->owners[i]),
        .owner = bt->owners[i],
        .fence = ls->fence,
        .ttl_ms = dibs__lease_renew_ms(ls, bt->sent_at),
        .replicas = dibs__lock_replicas(lock),
    };
}

/* The lock whose deadline this is; NULL: it is the timer of something else. */
static dibs_lock *lock_of(const dibs_client *cl, dibsx_heap_node *node)
{
    const dibs__timer *timer = (dibs__timer *)(void *)node;

    if (timer->fire != cl->keeper.lease_due)
        return NULL;
    return (dibs_lock *)(void *)((char *)node -
                                 offsetof(dibs_lock, due.deadline.node));
}

/* Locks whose renewal is due soon, `most` of them at most, among so many timers: their
 * number. Locks: cl->mutex. */
static size_t find_soon(const dibs_client *cl, const batch *bt, size_t among,
                        dibs_lock **out, size_t most)
{
    dibsx_heap_node *nodes[LOOKED_AT];
    size_t looked =
        dibs__timer_until(cl, bt->sent_at + DIBS__LEASE_SOON, nodes, among);
    size_t count = 0;

    for (size_t i = 0; i < looked && count < most; i++) {
        dibs_lock *lock = lock_of(cl, nodes[i]);

        if (lock && lock->st == bt->st &&
            dibs__lease_due_soon(&lock->lease, bt->sent_at))
            out[count++] = lock;
    }
    return count;
}

/* The lock whose timer is the earliest, if its renewal is due soon; else NULL. Locks:
 * cl->mutex. */
static dibs_lock *first_soon(const dibs_client *cl, const batch *bt)
{
    dibs_lock *lock = NULL;

    return find_soon(cl, bt, 1, &lock, 1) == 1 ? lock : NULL;
}

/* Its timer is set to the end of the lease, until there is an answer. Locks:
 * cl->mutex. */
static void take_early(dibs_client *cl, batch *bt, dibs_lock *lock)
{
    dibs__lease_renewing(&lock->lease);
    dibs__timer_set(cl, &lock->due.deadline, dibs__lease_next(&lock->lease));
    lock->refs++;
    add_item(bt, lock);
}

/* Renewals that are due soon go along in the room that is left: many leases then take
 * few steps, and stay together from now on. The earliest go first, then others whose
 * timers are behind those of something else. Where none is due, only a whole batch is
 * worth a step. Locks: cl->mutex. */
static void take_along(dibs_client *cl, batch *bt)
{
    dibs_lock *soon[BATCH], *lock;
    size_t count;

    if (bt->count == 0 && find_soon(cl, bt, LOOKED_AT, soon, BATCH) < BATCH)
        return;
    while (bt->count < BATCH && (lock = first_soon(cl, bt)) != NULL)
        take_early(cl, bt, lock);
    count = find_soon(cl, bt, LOOKED_AT, soon, BATCH - bt->count);
    for (size_t i = 0; i < count; i++)
        take_early(cl, bt, soon[i]);
}

/* Fills a batch with renewals that are due, and some that are due soon: with these
 * alone if there is no other, in the store of the batch before. Locks: cl->mutex. */
static void fill_batch(dibs_client *cl, batch *bt)
{
    dibs_lock *lock;

    bt->count = 0;
    bt->failing.count = bt->mended.count = 0;
    bt->sent_at = dibsx_now();
    if (cl->keeper.due)
        bt->st = cl->keeper.due->st;
    while (bt->count < BATCH && (lock = next_due(cl, bt->st)) != NULL)
        add_item(bt, lock);
    take_along(cl, bt);
}

/* Locks: cl->mutex. */
static void note_change(change *ch, const dibs_lock *lock, dibs_status rc,
                        uint32_t failures)
{
    int64_t left_ms = dibsx_valid_ms(lock->lease.valid_until, dibsx_now());

    if (ch->count++ == 0) {
        snprintf(ch->first, sizeof(ch->first), "%s", lock->name);
        ch->rc = rc;
        ch->failures = failures;
        ch->left_ms = left_ms;
    }
    if (failures > ch->failures)
        ch->failures = failures;
    if (left_ms < ch->left_ms)
        ch->left_ms = left_ms;
}

/* Locks: none held. */
static void log_change(const dibs_client *cl, const change *ch, const char *why)
{
    char left[32], more[48] = " is";

    if (ch->count == 0)
        return;
    dibsx_duration_text(ch->left_ms, left, sizeof(left));
    if (ch->count > 1)
        snprintf(more, sizeof(more), " and %zu more are", ch->count - 1);
    if (ch->rc != DIBS_OK)
        dibs__log(cl, DIBS_LOG_WARN, "renew",
                  "%s%s not renewed: %s; the client retries, %s left",
                  ch->first, more, why && *why ? why : dibs_status_text(ch->rc),
                  left);
    else
        dibs__log(cl, DIBS_LOG_WARN, "renew",
                  "%s%s renewed again after %u failures; %s left", ch->first,
                  more, (unsigned)ch->failures, left);
}

/* Applies one answer if the lock still has that lease; then drops the lock.
 * Locks: cl->mutex. */
static void apply_answer(dibs_client *cl, batch *bt, size_t i, dibs_status rc)
{
    dibs_lock *lock = bt->locks[i];
    const dibs__renewal *item = &bt->items[i];
    dibs_status own = rc == DIBS_OK ? item->rc : rc;
    uint32_t failures = lock->lease.failures;

    if (memcmp(lock->lease.owner, bt->owners[i], DIBS_OWNER_SIZE) == 0) {
        if (own == DIBS_OK)
            dibs__slack_count(&cl->stats, &lock->lease, dibsx_now());
        dibs__lease_renewed(&lock->lease, bt->sent_at, own, item->left_ms,
                            dibsx_now());
        if (failures == 0 && lock->lease.failures > 0)
            note_change(&bt->failing, lock, own, lock->lease.failures);
        else if (failures > 0 && lock->lease.failures == 0)
            note_change(&bt->mended, lock, own, failures);
        dibs__keeper_watch(cl, lock);
        if (own == DIBS_OK && item->wanted)
            dibs__sticky_wanted(lock);
        pthread_cond_broadcast(&cl->over);
    }
    dibs__count(own == DIBS_OK ? &cl->stats.renewed
                               : &cl->stats.renewals_failed);
    dibs__lock_unref(lock);
}

/* False: there was nothing to send, or the store has failed. */
static bool send_batch(dibs_client *cl, batch *bt)
{
    dibs_error err = {0};
    dibs_status rc;

    if (bt->count == 0)
        return false;
    rc =
        bt->st->ops->lease->renew(bt->st, bt->items, bt->count,
                                  dibs__client_deadline(cl, bt->sent_at), &err);
    dibs__log_alarm(cl, bt->st);
    if (rc == DIBS_OK)
        dibs__log(cl, DIBS_LOG_TRACE, "renewed", "%s%s", bt->items[0].name,
                  bt->count > 1 ? " and others" : "");
    pthread_mutex_lock(&cl->mutex);
    for (size_t i = 0; i < bt->count; i++)
        apply_answer(cl, bt, i, rc);
    pthread_mutex_unlock(&cl->mutex);
    log_change(cl, &bt->failing, err.message);
    log_change(cl, &bt->mended, NULL);
    return rc == DIBS_OK;
}

/* Drops the renewals that are left when the thread ends. Locks: cl->mutex. */
static void let_all_go(dibs_client *cl)
{
    dibs_lock *lock;

    while ((lock = pop_due(cl)) != NULL)
        dibs__lock_unref(lock);
}

/* After a whole batch there may be another one that is due soon: it is sent without
 * waiting until the keeper has woken up for each of its leases. Thread: the renewer. */
static void *renewer_main(void *arg)
{
    dibs_client *cl = arg;
    batch bt;
    bool more = false;

    for (;;) {
        pthread_mutex_lock(&cl->mutex);
        while (!cl->keeper.due && !cl->keeper.stopping && !more)
            pthread_cond_wait(&cl->keeper.due_cond, &cl->mutex);
        if (cl->keeper.stopping)
            break;
        fill_batch(cl, &bt);
        pthread_mutex_unlock(&cl->mutex);
        more = send_batch(cl, &bt) && bt.count == BATCH;
    }
    let_all_go(cl);
    pthread_mutex_unlock(&cl->mutex);
    return NULL;
}

/* Starts the thread if it does not run; false when the system has none to give.
 * Locks: cl->mutex. */
static bool have_renewer(dibs_client *cl)
{
    dibs__keeper *kp = &cl->keeper;

    if (!kp->renewing && !kp->stopping)
        kp->renewing = dibsx_thread_start(&kp->renewer, renewer_main, cl) == 0;
    return kp->renewing;
}

void dibs__renewer_add(dibs_client *cl, dibs_lock *lock)
{
    dibs__keeper *kp = &cl->keeper;

    dibs__lease_renewing(&lock->lease);
    if (!have_renewer(cl)) {
        /* Counts as a failed renewal: it is tried again before long. */
        dibs__lease_renewed(&lock->lease, 0, DIBS_UNAVAIL, 0, dibsx_now());
        return;
    }
    lock->due.current = true;
    /* A lock that was listed for an earlier lease serves the new one. */
    if (lock->due.listed)
        return;
    lock->refs++;
    lock->due.listed = true;
    lock->due.next = NULL;
    if (kp->due)
        kp->due_last->due.next = lock;
    else
        kp->due = lock;
    kp->due_last = lock;
    pthread_cond_signal(&kp->due_cond);
}
