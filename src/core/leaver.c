/* leaver.c - the thread that gives up sticky leases which somebody else wants.
 *
 * A thread of its own, so that a release without an answer, or many of them in a
 * row, delay no renewal. It holds a reference on every lock in its list. */
/* SPDX-License-Identifier: MIT */
#include "base/thread.h"
#include "core/handle.h"
#include "core/keeper.h"
#include "core/release.h"

/* Takes one out of the list, with its reference. Locks: cl->mutex. */
static dibs_lock *pop(dibs__keeper *kp)
{
    dibs_lock *lock = kp->leaving;

    if (lock) {
        kp->leaving = lock->next_leaving;
        lock->leaving = false;
    }
    return lock;
}

/* Thread: the leaver. */
static void *leaver_main(void *arg)
{
    dibs_client *cl = arg;
    dibs__keeper *kp = &cl->keeper;
    dibs_lock *lock;

    pthread_mutex_lock(&cl->mutex);
    while (!kp->stopping) {
        lock = pop(kp);
        if (!lock) {
            pthread_cond_wait(&kp->leaving_cond, &cl->mutex);
            continue;
        }
        /* It may have been taken up or given up meanwhile. */
        if (lock->resting)
            dibs__lock_let_go(lock);
        dibs__lock_unref(lock);
    }
    while ((lock = pop(kp)) != NULL)
        dibs__lock_unref(lock);
    pthread_mutex_unlock(&cl->mutex);
    return NULL;
}

/* Starts the thread if it does not run. Locks: cl->mutex. */
static bool ready(dibs_client *cl)
{
    dibs__keeper *kp = &cl->keeper;

    if (!kp->leaver_runs && !kp->stopping)
        kp->leaver_runs = dibsx_thread_start(&kp->leaver, leaver_main, cl) == 0;
    return kp->leaver_runs && !kp->stopping;
}

/* Has a lease that rests given up, unless it is taken up before. Locks:
 * cl->mutex. */
static void add(dibs_client *cl, dibs_lock *lock)
{
    dibs__keeper *kp = &cl->keeper;

    /* Without the thread it is tried again with the next news that it is wanted:
     * each answer to a renewal brings some. */
    if (lock->leaving || !ready(cl))
        return;
    lock->refs++;
    lock->leaving = true;
    lock->next_leaving = kp->leaving;
    kp->leaving = lock;
    pthread_cond_signal(&kp->leaving_cond);
}

void dibs__leaver_wanted(dibs_lock *lock)
{
    if (!(lock->opts.flags & DIBS_LOCK_STICKY))
        return;
    lock->wanted = true;
    if (lock->resting)
        add(lock->cl, lock);
}
