/* callback.c - calls the program back about a lease; see callback.h.
 *
 * Thread: the keeper. */
/* SPDX-License-Identifier: MIT */
#include "core/lock/callback.h"

#include "core/lock/handle.h"
#include "core/log.h"

/* One call of the program, without the mutex. Locks: cl->mutex, held again at the
 * end. */
static void call_program(dibs_lock *lock, dibs__callback about)
{
    static const dibs__lock_callbacks none;
    const dibs__lock_callbacks *with =
        lock->callbacks ? lock->callbacks : &none;
    dibs_client *cl = lock->cl;

    if (lock->freed || !lock->callback_due)
        return;
    lock->callback_due = false;
    lock->refs++;
    lock->announcing = true;
    pthread_mutex_unlock(&cl->mutex);
    if (about == DIBS__CALLBACK_YIELD)
        dibs__log(cl, DIBS_LOG_TRACE, "yield", "%s is asked for", lock->name);
    if (about == DIBS__CALLBACK_LOST && with->on_lost)
        with->on_lost(lock, with->on_lost_arg);
    if (about == DIBS__CALLBACK_YIELD && with->on_yield)
        with->on_yield(lock, with->on_yield_arg);
    pthread_mutex_lock(&cl->mutex);
    lock->announcing = false;
    pthread_cond_broadcast(&cl->over);
    dibs__lock_unref(lock);
}

static dibs_lock *find_marked_guest(const dibs_lock *lock)
{
    dibs_lock *guest = lock->entry.guests;

    while (guest && !guest->callback_due)
        guest = guest->entry.next_guest;
    return guest;
}

void dibs__callback_mark(dibs_lock *lock)
{
    lock->callback_due = true;
    for (dibs_lock *guest = lock->entry.guests; guest;
         guest = guest->entry.next_guest)
        guest->callback_due = true;
}

void dibs__callback_run(dibs_lock *lock, dibs__callback about)
{
    dibs_lock *guest;

    lock->refs++;
    call_program(lock, about);
    while ((guest = find_marked_guest(lock)) != NULL)
        call_program(guest, about);
    dibs__lock_unref(lock);
}
