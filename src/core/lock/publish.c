/* publish.c - what a handle shows, and when its keeper is to look at it. Any
 * thread. */
/* SPDX-License-Identifier: MIT */
#include "core/lock/publish.h"

#include <sys/timerfd.h>

/* The loss descriptor fires by the kernel's clock, even if no thread of the
 * process runs. It does not fire for a lease that was released. */
static void
set_lost_fd(dibs_lock *lock, dibs_lock_state state, dibsx_nsec valid_until)
{
    struct itimerspec at = {0};

    if (lock->shown.lost_fd < 0)
        return;
    if (state == DIBS_LOCK_LOST) {
        at.it_value.tv_nsec = 1;
    } else if (state == DIBS_LOCK_HELD || state == DIBS_LOCK_SUSPECT) {
        at.it_value.tv_sec = valid_until / DIBSX_SEC;
        at.it_value.tv_nsec = valid_until % DIBSX_SEC;
    }
    timerfd_settime(lock->shown.lost_fd, TFD_TIMER_ABSTIME, &at, NULL);
}

static dibs_lock_state shown_state(const dibs_lock *lock)
{
    if (lock->sticky.idle)
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
static void
show_state(dibs_lock *lock, dibs_lock_state state, const dibs__lease *ls)
{
    bool held = state == DIBS_LOCK_HELD || state == DIBS_LOCK_SUSPECT;

    if (!held || atomic_load(&lock->shown.fence) != ls->fence)
        atomic_store(&lock->shown.valid_until, 0);
    atomic_store(&lock->shown.fence, ls->fence);
    atomic_store(&lock->shown.state, (int)state);
    if (held)
        atomic_store(&lock->shown.valid_until, ls->valid_until);
    set_lost_fd(lock, state, ls->valid_until);
}

void dibs__keeper_publish(dibs_lock *lock)
{
    const dibs_lock *at = lock->entry.via ? lock->entry.via : lock;
    dibs_lock_state state = shown_state(at);

    show_state(lock, state, &at->lease);
    for (dibs_lock *guest = lock->entry.guests; guest;
         guest = guest->entry.next_guest)
        show_state(guest, state, &at->lease);
}

void dibs__keeper_watch(dibs_client *cl, dibs_lock *lock)
{
    dibs__keeper_publish(lock);
    dibs__timer_set(cl, &lock->due.deadline, dibs__lease_next(&lock->lease));
}
