/* reentry.c - which names this client holds, and through which handles.
 *
 * Any thread. The table has the handles that hold a lease of their own; guests
 * hang on theirs. */
/* SPDX-License-Identifier: MIT */
#include "core/lock/reentry.h"

#include "base/hash.h"
#include "core/lock/publish.h"
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static dibs_lock *lock_of(dibsx_table_node *node)
{
    return (dibs_lock *)(void *)((char *)node -
                                 offsetof(dibs_lock, entry.by_name));
}

bool dibs__reentry_in_use(const dibs_lock *lock)
{
    return lock->entry.depth > 0 || lock->entry.guests;
}

/* The kernel is asked once for each thread, and again in a child process. */
static pid_t this_thread(const dibs_client *cl)
{
    static _Thread_local uint64_t fork_number;
    static _Thread_local pid_t thread;

    if (fork_number != cl->fork_number) {
        thread = (pid_t)syscall(SYS_gettid);
        fork_number = cl->fork_number;
    }
    return thread;
}

void dibs__reentry_rename(dibs_lock *lock)
{
    lock->thread = lock->traits->identity ? 0 : this_thread(lock->cl);
}

bool dibs__reentry_is_owner(const dibs_lock *lock)
{
    return lock->traits->identity || lock->thread == this_thread(lock->cl);
}

static bool have_one_owner(const dibs_lock *one, const dibs_lock *other)
{
    if (one->traits->identity && other->traits->identity)
        return strcmp(one->traits->identity, other->traits->identity) == 0;
    return !one->traits->identity && !other->traits->identity &&
           one->thread == other->thread;
}

void dibs__reentry_name(dibs_lock *lock)
{
    if (!dibs__reentry_in_use(lock))
        dibs__reentry_rename(lock);
}

dibs_lock *dibs__reentry_elsewhere(const dibs_lock *lock, dibsx_nsec now)
{
    dibsx_table_node *node =
        dibsx_table_find(&lock->cl->by_name, dibsx_hash_text(lock->name));

    for (; node; node = node->next) {
        dibs_lock *other = lock_of(node);

        if (other != lock && strcmp(other->name, lock->name) == 0 &&
            have_one_owner(other, lock) &&
            dibs__lease_valid(&other->lease, now))
            return other;
    }
    return NULL;
}

void dibs__reentry_join(dibs_lock *lock, dibs_lock *host)
{
    lock->entry.via = host;
    lock->entry.next_guest = host->entry.guests;
    host->entry.guests = lock;
    host->refs++;
    lock->entry.depth = 1;
    dibs__keeper_publish(host);
}

void dibs__reentry_quit(dibs_lock *lock)
{
    dibs_lock **at = &lock->entry.via->entry.guests;

    while (*at != lock)
        at = &(*at)->entry.next_guest;
    *at = lock->entry.next_guest;
    lock->entry.via = NULL;
    lock->entry.depth = 0;
    lock->callback_due = false;
}

void dibs__reentry_acquired(dibs_lock *lock)
{
    lock->entry.depth = 1;
    dibsx_table_add(&lock->cl->by_name, &lock->entry.by_name,
                    dibsx_hash_text(lock->name));
}

bool dibs__reentry_leave(dibs_lock *lock, dibs_lock **holder)
{
    dibs_lock *at = lock->entry.via ? lock->entry.via : lock;

    *holder = NULL;
    if (lock->entry.depth == 0)
        return false;
    *holder = at;
    at->refs++;
    if (--lock->entry.depth == 0 && lock->entry.via) {
        dibs__reentry_quit(lock);
        dibs__keeper_publish(lock);
        at->refs--;
    }
    if (dibs__reentry_in_use(at))
        return false;
    dibsx_table_remove(&at->cl->by_name, &at->entry.by_name);
    return true;
}

void dibs__reentry_end(dibs_lock *lock)
{
    dibsx_table_remove(&lock->cl->by_name, &lock->entry.by_name);
    lock->entry.depth = 0;
    lock->callback_due = false;
    while (lock->entry.guests) {
        dibs_lock *guest = lock->entry.guests;

        dibs__reentry_quit(guest);
        dibs__keeper_publish(guest);
        lock->refs--;
    }
}
