/* term.c - what an election needs of a lock; see term.h. */
/* SPDX-License-Identifier: MIT */
#include "core/lock/term.h"

#include "core/lock/publish.h"

dibsx_nsec dibs__lock_valid_until(const dibs_lock *lock)
{
    return atomic_load(&lock->shown.valid_until);
}

void dibs__lock_renew_no_more(dibs_lock *lock)
{
    pthread_mutex_lock(&lock->cl->mutex);
    dibs__lease_renew_no_more(&lock->lease, dibsx_now());
    dibs__keeper_watch(lock->cl, lock);
    pthread_mutex_unlock(&lock->cl->mutex);
}

void dibs__lock_set_priority(dibs_lock *lock, int32_t priority)
{
    pthread_mutex_lock(&lock->cl->mutex);
    lock->priority = priority;
    pthread_mutex_unlock(&lock->cl->mutex);
}
