/* keeper.c - the thread that watches deadlines and the doorbell.
 *
 * Owns the timer, the wake-up and the heaps of moments, in which publish.c enters
 * what is to be watched. It never calls the store but for the doorbell, which does
 * not block. Deadlines are kept by a timer on CLOCK_BOOTTIME, so that a suspended
 * machine wakes up to the truth. */
/* SPDX-License-Identifier: MIT */
#include "core/threads/keeper.h"

#include "base/event.h"
#include "base/fail.h"
#include "core/lock/acquire.h"
#include "core/lock/handle.h"
#include "core/lock/publish.h"
#include "core/lock/release.h"
#include "core/lock/sticky.h"
#include "core/log.h"
#include "core/stats/record.h"
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

enum { RINGS_AT_ONCE = 64 };

typedef enum message { LOST, YIELD } message;

/* One call of the program, without the mutex. Locks: cl->mutex, held again at the
 * end. */
static void call_back(dibs_lock *lock, message about)
{
    dibs_client *cl = lock->cl;

    if (lock->freed || !lock->to_be_told)
        return;
    lock->to_be_told = false;
    lock->refs++;
    lock->announcing = true;
    pthread_mutex_unlock(&cl->mutex);
    if (about == YIELD)
        dibs__log(cl, DIBS_LOG_TRACE, "yield", "%s is asked for", lock->name);
    if (about == LOST && lock->opts.on_lost)
        lock->opts.on_lost(lock, lock->opts.on_lost_arg);
    if (about == YIELD && lock->opts.on_yield)
        lock->opts.on_yield(lock, lock->opts.on_yield_arg);
    pthread_mutex_lock(&cl->mutex);
    lock->announcing = false;
    pthread_cond_broadcast(&lock->cond);
    dibs__lock_unref(lock);
}

static dibs_lock *guest_to_tell(const dibs_lock *lock)
{
    dibs_lock *guest = lock->entry.guests;

    while (guest && !guest->to_be_told)
        guest = guest->entry.next_guest;
    return guest;
}

/* All who are in the lease. Those who leave it before they are told need not be.
 * Locks: cl->mutex. */
static void mark(dibs_lock *lock)
{
    lock->to_be_told = true;
    for (dibs_lock *guest = lock->entry.guests; guest;
         guest = guest->entry.next_guest)
        guest->to_be_told = true;
}

/* Tells those who are marked. Locks: cl->mutex, let go meanwhile. */
static void tell(dibs_lock *lock, message about)
{
    dibs_lock *guest;

    lock->refs++;
    call_back(lock, about);
    while ((guest = guest_to_tell(lock)) != NULL)
        call_back(guest, about);
    dibs__lock_unref(lock);
}

/* A lease that the program has not been given yet is the business of the acquire
 * that waits for it, and one that rests nobody's. The others are told when no
 * timer is due any more: their callbacks may take their time. Locks: cl->mutex. */
static void note_loss(dibs_client *cl, dibs_lock *lock)
{
    if (lock->acquire.running) {
        dibs__lock_acquire_wake(lock);
        return;
    }
    if (lock->sticky.resting) {
        dibs__lock_forget(lock);
        return;
    }
    dibs__count(&cl->stats.lost);
    dibs__uncount(&cl->stats.held);
    dibs__record_ended(lock, true, dibsx_now() - lock->lease.held_at);
    mark(lock);
    if (lock->due.in_lost)
        return;
    lock->refs++;
    lock->due.in_lost = true;
    lock->due.next_lost = NULL;
    *cl->keeper.lost_end = lock;
    cl->keeper.lost_end = &lock->due.next_lost;
}

/* The first of those, with its reference; NULL: there is none. Locks: cl->mutex. */
static dibs_lock *pop_lost(dibs__keeper *kp)
{
    dibs_lock *lock = kp->lost;

    if (!lock)
        return NULL;
    kp->lost = lock->due.next_lost;
    if (!kp->lost)
        kp->lost_end = &kp->lost;
    lock->due.in_lost = false;
    return lock;
}

/* The callback comes before the log, whose sink may be slow, and timers that became
 * due meanwhile before the next callback. Locks: cl->mutex, let go meanwhile. */
static void tell_losses(dibs_client *cl)
{
    dibs_lock *lock;

    while ((lock = pop_lost(&cl->keeper)) != NULL) {
        tell(lock, LOST);
        pthread_mutex_unlock(&cl->mutex);
        dibs__log(cl, DIBS_LOG_WARN, "lost", "the lease on %s was lost",
                  lock->name);
        pthread_mutex_lock(&cl->mutex);
        dibs__lock_unref(lock);
        dibs__timer_run(cl);
    }
}

/* The deadline of a lease. Locks: cl->mutex. */
static void look_at_lease(dibs_client *cl, dibs__timer *timer, dibsx_nsec now)
{
    dibs_lock *lock = (dibs_lock *)(void *)((char *)timer -
                                            offsetof(dibs_lock, due.deadline));
    dibs__lease_todo todo = dibs__lease_due(&lock->lease, now);

    if (todo == DIBS__LEASE_RENEW)
        dibs__renewer_add(cl, lock);
    dibs__keeper_watch(cl, lock);
    if (todo == DIBS__LEASE_TELL_LOST)
        note_loss(cl, lock);
}

/* Whoever waits asks again. Locks: cl->mutex. */
static void nudge_all(dibs_client *cl)
{
    for (size_t i = 0; i < DIBS__OWNER_BUCKETS; i++)
        for (dibs_lock *lock = cl->by_owner[i]; lock; lock = lock->next_owner)
            if (lock->lease.state == DIBS__LEASE_QUEUED) {
                lock->acquire.take.nudged = true;
                dibs__lock_acquire_wake(lock);
            }
}

/* News about a lease that is ours. Locks: cl->mutex, let go for a callback. */
static void
about_a_lease(dibs_lock *lock, dibs__notice_kind kind, dibsx_nsec now)
{
    switch (kind) {
    case DIBS__NOTICE_BROKEN:
        dibs__lease_doubt(&lock->lease, now);
        dibs__keeper_watch(lock->cl, lock);
        break;
    case DIBS__NOTICE_WANTED:
        dibs__sticky_wanted(lock);
        break;
    case DIBS__NOTICE_YIELD:
        dibs__sticky_wanted(lock);
        if (!lock->sticky.resting && !lock->acquire.running) {
            mark(lock);
            tell(lock, YIELD);
        }
        break;
    case DIBS__NOTICE_GRANTED:
    case DIBS__NOTICE_MISSED:
        break;
    }
}

/* Locks: cl->mutex, let go for a callback. */
static void heard(dibs_client *cl, const dibs__notice *ring)
{
    dibs_lock *lock = dibs__lock_by_owner(cl, ring->owner);
    dibsx_nsec now = dibsx_now();

    if (!lock)
        return;
    if (ring->kind == DIBS__NOTICE_GRANTED) {
        if (dibs__lease_rung(&lock->lease, ring->fence, now)) {
            dibs__count(&cl->stats.rings);
            dibs__lock_acquire_wake(lock);
        }
        dibs__keeper_watch(cl, lock);
    } else if (lock->lease.fence == ring->fence) {
        about_a_lease(lock, ring->kind, now);
    }
}

/* Locks: cl->mutex, let go while the doorbell is read. */
static void hear_bell(dibs_client *cl, dibs__store *st)
{
    dibs__notice rings[RINGS_AT_ONCE];
    size_t count;

    do {
        pthread_mutex_unlock(&cl->mutex);
        count = st->ops->bell_hear(st, rings, RINGS_AT_ONCE);
        pthread_mutex_lock(&cl->mutex);
        for (size_t i = 0; i < count; i++)
            if (rings[i].kind == DIBS__NOTICE_MISSED)
                nudge_all(cl);
            else
                heard(cl, &rings[i]);
    } while (count == RINGS_AT_ONCE);
}

static void drain(const struct pollfd *pfd)
{
    if (pfd->revents)
        dibsx_event_clear(pfd->fd);
}

/* Thread: the keeper. */
static void *keeper_main(void *arg)
{
    dibs_client *cl = arg;
    dibs__keeper *kp = &cl->keeper;

    pthread_mutex_lock(&cl->mutex);
    while (!kp->stopping) {
        struct pollfd fds[] = {{.fd = kp->timer_fd, .events = POLLIN},
                               {.fd = kp->wake_fd, .events = POLLIN},
                               {.fd = kp->bell_fds[0], .events = POLLIN},
                               {.fd = kp->bell_fds[1], .events = POLLIN}};
        pthread_mutex_unlock(&cl->mutex);
        (void)poll(fds, 4, -1);
        drain(&fds[0]);
        drain(&fds[1]);
        pthread_mutex_lock(&cl->mutex);
        for (size_t i = 0; i < 2; i++)
            if (kp->bells[i])
                hear_bell(cl, kp->bells[i]);
        dibs__timer_run(cl);
        tell_losses(cl);
    }
    pthread_mutex_unlock(&cl->mutex);
    return NULL;
}

dibs_status dibs__keeper_init(dibs_client *cl, dibs_error *err)
{
    dibs__keeper *kp = &cl->keeper;

    pthread_cond_init(&kp->due_cond, NULL);
    kp->body = keeper_main;
    kp->lease_due = look_at_lease;
    kp->lost_end = &kp->lost;
    kp->armed_at = DIBSX_NEVER;
    kp->bell_fds[0] = kp->bell_fds[1] = -1;
    kp->timer_fd = timerfd_create(CLOCK_BOOTTIME, TFD_NONBLOCK | TFD_CLOEXEC);
    kp->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (kp->timer_fd < 0 || kp->wake_fd < 0)
        return dibsx_fail_at(err, DIBS_UNAVAIL, dibsx_errno_name(errno),
                             "no file descriptor for the client's timer: %s",
                             strerror(errno));
    return DIBS_OK;
}

void dibs__keeper_stop(dibs_client *cl)
{
    dibs__keeper *kp = &cl->keeper;

    pthread_mutex_lock(&cl->mutex);
    kp->stopping = true;
    pthread_cond_broadcast(&kp->due_cond);
    pthread_mutex_unlock(&cl->mutex);
    if (kp->running) {
        dibsx_event_set(kp->wake_fd);
        pthread_join(kp->thread, NULL);
    }
    if (kp->renewing)
        pthread_join(kp->renewer, NULL);
    pthread_mutex_lock(&cl->mutex);
    kp->running = false;
    kp->renewing = false;
    pthread_mutex_unlock(&cl->mutex);
}

void dibs__keeper_fini(dibs_client *cl)
{
    dibs__keeper *kp = &cl->keeper;

    if (kp->timer_fd >= 0)
        close(kp->timer_fd);
    if (kp->wake_fd >= 0)
        close(kp->wake_fd);
    dibsx_heap_fini(&kp->timers);
    pthread_cond_destroy(&kp->due_cond);
}
