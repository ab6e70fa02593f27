/* keeper.c - the thread that watches deadlines and the doorbell.
 *
 * Owns the kernel's timer, the wake-up and the heap of timers, in which publish.c
 * sets the deadlines of leases. It reads the doorbell, which does not block, and
 * dispatches the notices (notices.h); it makes no other call to the store. The timer
 * is on CLOCK_BOOTTIME, so that time in suspend counts. */
/* SPDX-License-Identifier: MIT */
#include "core/threads/keeper.h"

#include "base/event.h"
#include "base/fail.h"
#include "core/away.h"
#include "core/lock/acquire.h"
#include "core/lock/callback.h"
#include "core/lock/handle.h"
#include "core/lock/publish.h"
#include "core/lock/release.h"
#include "core/log.h"
#include "core/notices.h"
#include "core/stats/record.h"
#include "core/stats/shared_events.h"
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

enum { NOTICES_AT_ONCE = 64 };

/* The loss of a lease that the program has not got yet is handled by the
 * acquire that waits for it. An idle sticky lease ends silently. Other losses
 * are announced when no timer is due any more, as their callbacks may be slow.
 * Locks: cl->mutex. */
static void note_loss(dibs_client *cl, dibs_lock *lock)
{
    if (lock->acquire) {
        dibs__lock_acquire_wake(lock);
        return;
    }
    dibs__shared_events_note(lock, DIBS_LEASE_LOST, lock->lease.fence,
                             lock->lease.held_at);
    if (lock->sticky.idle) {
        dibs__lock_forget(lock);
        return;
    }
    dibs__count(&cl->stats.lost);
    dibs__uncount(&cl->stats.held);
    dibs__record_ended(lock, true, dibsx_now() - lock->lease.held_at);
    dibs__callback_mark(lock);
    if (lock->due.in_lost)
        return;
    lock->refs++;
    lock->due.in_lost = true;
    lock->due.next_lost = NULL;
    *cl->keeper.lost_end = lock;
    cl->keeper.lost_end = &lock->due.next_lost;
}

/* The first loss to announce, with its reference; NULL: there is none. Locks:
 * cl->mutex. */
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

/* Announces losses. The callback comes before the log, whose sink may be slow.
 * Timers that became due meanwhile come before the next callback. Locks:
 * cl->mutex, let go meanwhile. */
static void tell_losses(dibs_client *cl)
{
    dibs_lock *lock;

    while ((lock = pop_lost(&cl->keeper)) != NULL) {
        dibs__callback_run(lock, DIBS__CALLBACK_LOST);
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
    dibs__lock_acquire_overdue(lock, now);
    dibs__keeper_watch(cl, lock);
    if (todo == DIBS__LEASE_ANNOUNCE)
        note_loss(cl, lock);
}

/* True: there may be more, which waits for the timers. Locks: cl->mutex, let go while
 * the doorbell is read, and for callbacks. */
static bool hear_bell(dibs_client *cl, dibs__store *st)
{
    dibs__notice notices[NOTICES_AT_ONCE];
    size_t count;

    pthread_mutex_unlock(&cl->mutex);
    count = st->ops->doorbell_read(st, notices, NOTICES_AT_ONCE);
    pthread_mutex_lock(&cl->mutex);
    for (size_t i = 0; i < count; i++) {
        dibs__notices_dispatch(cl, &notices[i]);
        dibs__notice_drop(&notices[i]);
    }
    return count == NOTICES_AT_ONCE;
}

static void drain_event(const struct pollfd *pfd)
{
    if (pfd->revents)
        dibsx_event_clear(pfd->fd);
}

/* Thread: the keeper. */
static void *keeper_main(void *arg)
{
    dibs_client *cl = arg;
    dibs__keeper *kp = &cl->keeper;
    bool more = false;

    pthread_mutex_lock(&cl->mutex);
    while (!kp->stopping) {
        struct pollfd fds[] = {{.fd = kp->timer_fd, .events = POLLIN},
                               {.fd = kp->wake_fd, .events = POLLIN},
                               {.fd = kp->bell_fds[0], .events = POLLIN},
                               {.fd = kp->bell_fds[1], .events = POLLIN}};
        pthread_mutex_unlock(&cl->mutex);
        (void)poll(fds, 4, more ? 0 : -1);
        drain_event(&fds[0]);
        drain_event(&fds[1]);
        pthread_mutex_lock(&cl->mutex);
        more = false;
        for (size_t i = 0; i < 2; i++)
            if (kp->bells[i] && hear_bell(cl, kp->bells[i]))
                more = true;
        dibs__timer_run(cl);
        tell_losses(cl);
        dibs__away_silent(cl);
        dibsx_lag_answer(&kp->lag);
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
        return dibsx_fail_at(
            err, DIBS_UNAVAIL, dibsx_errno_name(errno),
            "cannot open a file descriptor for the client's timer: %s",
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
