/* publish.c - what a handle shows, and what its keeper is to look at.
 *
 * Owns the setting of the timer. Any thread; the keeper sleeps until the timer or
 * a wake-up says that there is something to do. */
/* SPDX-License-Identifier: MIT */
#include "core/publish.h"

#include "base/event.h"
#include "base/fail.h"
#include "base/thread.h"
#include "core/log.h"
#include <sys/timerfd.h>

void dibs__keeper_arm(dibs_client *cl)
{
    dibs__keeper *kp = &cl->keeper;
    dibsx_heap_node *first = dibsx_heap_first(&kp->deadlines);
    dibsx_heap_node *alarm = dibsx_heap_first(&kp->alarms);
    struct itimerspec at = {0};

    if (!first || (alarm && alarm->at < first->at))
        first = alarm;
    if (!first || first->at >= kp->armed_at)
        return;
    kp->armed_at = first->at;
    at.it_value.tv_sec = first->at / DIBSX_SEC;
    at.it_value.tv_nsec = first->at % DIBSX_SEC;
    if (first->at <= 0)
        at.it_value.tv_nsec = 1; /* all zero would switch it off */
    timerfd_settime(kp->timer_fd, TFD_TIMER_ABSTIME, &at, NULL);
}

/* The loss descriptor goes off by the kernel's clock, whatever our threads do;
 * it keeps quiet about a lease that was given back. */
static void
set_lost_fd(dibs_lock *lock, dibs_lock_state state, dibsx_nsec valid_until)
{
    struct itimerspec at = {0};

    if (lock->lost_fd < 0)
        return;
    if (state == DIBS_LOCK_LOST) {
        at.it_value.tv_nsec = 1;
    } else if (state == DIBS_LOCK_HELD || state == DIBS_LOCK_SUSPECT) {
        at.it_value.tv_sec = valid_until / DIBSX_SEC;
        at.it_value.tv_nsec = valid_until % DIBSX_SEC;
    }
    timerfd_settime(lock->lost_fd, TFD_TIMER_ABSTIME, &at, NULL);
}

static dibs_lock_state shown_state(const dibs_lock *lock)
{
    if (lock->resting)
        return DIBS_LOCK_FREE;
    switch (lock->lease.state) {
    case DIBS__LEASE_ASKING:
    case DIBS__LEASE_QUEUED:
        return DIBS_LOCK_WAITING;
    case DIBS__LEASE_HELD:
        return DIBS_LOCK_HELD;
    case DIBS__LEASE_SUSPECT:
        return DIBS_LOCK_SUSPECT;
    case DIBS__LEASE_LOST:
        return DIBS_LOCK_LOST;
    case DIBS__LEASE_FREE:
        break;
    }
    return DIBS_LOCK_FREE;
}

/* Validity is withdrawn first and given last, so that no reader sees the old
 * moment with a new fence. */
static void show(dibs_lock *lock, dibs_lock_state state, const dibs__lease *ls)
{
    bool held = state == DIBS_LOCK_HELD || state == DIBS_LOCK_SUSPECT;

    if (!held || atomic_load(&lock->fence) != ls->fence)
        atomic_store(&lock->valid_until, 0);
    atomic_store(&lock->fence, ls->fence);
    atomic_store(&lock->state, (int)state);
    if (held)
        atomic_store(&lock->valid_until, ls->valid_until);
    set_lost_fd(lock, state, ls->valid_until);
}

void dibs__keeper_publish(dibs_lock *lock)
{
    const dibs_lock *at = lock->via ? lock->via : lock;
    dibs_lock_state state = shown_state(at);

    show(lock, state, &at->lease);
    for (dibs_lock *guest = lock->guests; guest; guest = guest->next_guest)
        show(guest, state, &at->lease);
}

void dibs__keeper_watch(dibs_client *cl, dibs_lock *lock)
{
    dibsx_nsec next = dibs__lease_next(&lock->lease);

    dibs__keeper_publish(lock);
    if (next == DIBSX_NEVER)
        dibsx_heap_remove(&cl->keeper.deadlines, &lock->deadline);
    else
        dibsx_heap_set(&cl->keeper.deadlines, &lock->deadline, next);
    dibs__keeper_arm(cl);
}

void dibs__keeper_alarm(dibs_client *cl, dibs_lock *lock, dibsx_nsec at)
{
    dibsx_heap *alarms = &cl->keeper.alarms;

    if (at == DIBSX_NEVER)
        dibsx_heap_remove(alarms, &lock->call.alarm);
    else
        dibsx_heap_set(alarms, &lock->call.alarm, at);
    dibs__keeper_arm(cl);
}

dibs_status dibs__keeper_ready(dibs_client *cl, dibs_error *err)
{
    dibs__keeper *kp = &cl->keeper;
    int failed;

    if (!dibsx_heap_reserve(&kp->deadlines, cl->lock_count) ||
        !dibsx_heap_reserve(&kp->alarms, cl->lock_count))
        return dibsx_nomem(err, "a deadline");
    if (kp->running)
        return DIBS_OK;
    failed = dibsx_thread_start(&kp->thread, kp->body, cl);
    if (failed)
        return dibsx_fail_at(err, DIBS_NOMEM, dibsx_errno_name(failed),
                             "cannot start the keeper thread");
    kp->running = true;
    return DIBS_OK;
}

void dibs__keeper_listen(dibs_client *cl, dibs__store *st, dibsx_nsec deadline)
{
    dibs__keeper *kp = &cl->keeper;
    size_t i = st == cl->st ? 0 : 1;
    dibs_error err;
    int fd = -1;
    dibs_status rc = st->ops->bell_open(st, deadline, &fd, &err);
    bool news;

    pthread_mutex_lock(&cl->mutex);
    news = rc != DIBS_OK && !kp->deaf;
    kp->deaf = rc != DIBS_OK;
    if (fd >= 0 && kp->bell_fds[i] != fd) {
        kp->bells[i] = st;
        kp->bell_fds[i] = fd;
        dibsx_event_set(kp->wake_fd);
    }
    pthread_mutex_unlock(&cl->mutex);
    if (news)
        dibs__log(cl, DIBS_LOG_WARN, "bell",
                  "no doorbell, waits are slower: %s", err.message);
}
