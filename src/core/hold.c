/* hold.c - which names this client holds, and through which handles.
 *
 * Any thread. The table has the handles that hold a lease of their own; guests
 * hang on theirs. */
/* SPDX-License-Identifier: MIT */
#include "core/hold.h"

#include "base/fail.h"
#include "core/publish.h"
#include "core/record.h"
#include "core/rest.h"
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static dibs_lock **bucket_of(dibs_client *cl, const char *name)
{
    uint32_t hash = 2166136261u;

    for (; *name; name++)
        hash = (hash ^ (unsigned char)*name) * 16777619u;
    return &cl->by_name[hash % DIBS__OWNER_BUCKETS];
}

static void enlist(dibs_lock *lock)
{
    dibs_lock **bucket = bucket_of(lock->cl, lock->name);

    lock->next_name = *bucket;
    *bucket = lock;
    lock->named = true;
}

static void delist(dibs_lock *lock)
{
    dibs_lock **at;

    if (!lock->named)
        return;
    for (at = bucket_of(lock->cl, lock->name); *at != lock;)
        at = &(*at)->next_name;
    *at = lock->next_name;
    lock->named = false;
}

/* Acquires through this handle, or of those that entered by it, have had no
 * release yet. */
static bool is_in_use(const dibs_lock *lock)
{
    return lock->depth > 0 || lock->guests;
}

/* The kernel is asked once for each thread, and again in a child process. */
static long this_thread(const dibs_client *cl)
{
    static _Thread_local uint64_t fork_number;
    static _Thread_local long thread;

    if (fork_number != cl->fork_number) {
        thread = syscall(SYS_gettid);
        fork_number = cl->fork_number;
    }
    return thread;
}

static void caller(const dibs_lock *lock, char out[DIBS__IDENTITY_MAX])
{
    if (lock->identity)
        snprintf(out, DIBS__IDENTITY_MAX, "%s", lock->identity);
    else
        snprintf(out, DIBS__IDENTITY_MAX, "#%ld", this_thread(lock->cl));
}

/* Most acquires of a handle come from one thread, whose name need not be written
 * anew. */
static void rename_holder(dibs_lock *lock)
{
    long thread = lock->identity ? 0 : this_thread(lock->cl);

    if (lock->holder[0] && lock->thread == thread)
        return;
    lock->thread = thread;
    lock->who[0] = '\0';
    caller(lock, lock->holder);
}

void dibs__hold_name(dibs_lock *lock)
{
    if (!is_in_use(lock))
        rename_holder(lock);
}

static bool is_reentrant(const dibs_lock *lock)
{
    return (lock->opts.flags & DIBS_LOCK_REENTRANT) != 0;
}

/* A writer's lease also lets its owner read. */
static bool has_right(const dibs_lock *lock, const dibs_lock *at)
{
    return at->mode == lock->opts.mode || at->mode == DIBS_EXCLUSIVE;
}

/* One more acquire of a handle that is in use. */
static dibs_status again(dibs_lock *lock, dibs_error *err)
{
    char asker[DIBS__IDENTITY_MAX];

    caller(lock, asker);
    if (strcmp(asker, lock->holder) != 0)
        return dibsx_fail(err, DIBS_INVALID,
                          "this handle holds %s for another owner; give each "
                          "its own handle",
                          lock->name);
    if (!is_reentrant(lock))
        return dibsx_fail(err, DIBS_INVALID,
                          "this handle holds %s already; DIBS_LOCK_REENTRANT "
                          "would let its owner in again",
                          lock->name);
    if (!has_right(lock, lock->via ? lock->via : lock))
        return dibsx_fail(err, DIBS_INVALID,
                          "%s is held as a reader, as far as is known, and "
                          "this handle asks for a writer; upgrade it first",
                          lock->name);
    if (lock->depth == UINT32_MAX)
        return dibsx_fail(err, DIBS_INVALID, "%s was entered too often",
                          lock->name);
    lock->depth++;
    return DIBS_OK;
}

/* Of its own lease at most one is left that rests and is wanted: it goes back by
 * itself, and this stays a guest. */
static void become_guest(dibs_lock *lock, dibs_lock *host, dibsx_nsec now)
{
    if (lock->lease.state != DIBS__LEASE_FREE &&
        !dibs__lease_valid(&lock->lease, now))
        dibs__lock_forget(lock);
    lock->via = host;
    lock->next_guest = host->guests;
    host->guests = lock;
    host->refs++;
    lock->depth = 1;
    dibs__keeper_publish(host);
}

/* The reference on the host stays for the caller to drop. */
static void stop_being_guest(dibs_lock *lock)
{
    dibs_lock **at = &lock->via->guests;

    while (*at != lock)
        at = &(*at)->next_guest;
    *at = lock->next_guest;
    lock->via = NULL;
    lock->depth = 0;
    lock->to_be_told = false;
}

/* The other handle through which this owner holds the name; NULL: none. */
static dibs_lock *held_elsewhere(const dibs_lock *lock, dibsx_nsec now)
{
    dibs_lock *other = *bucket_of(lock->cl, lock->name);

    for (; other; other = other->next_name)
        if (other != lock && strcmp(other->name, lock->name) == 0 &&
            strcmp(other->holder, lock->holder) == 0 &&
            dibs__lease_valid(&other->lease, now))
            break;
    return other;
}

static bool may_enter(const dibs_lock *lock, const dibs_lock *other)
{
    return is_reentrant(lock) && is_reentrant(other) && has_right(lock, other);
}

static bool conflict(const dibs_lock *lock, const dibs_lock *other)
{
    return other->mode == DIBS_EXCLUSIVE || lock->opts.mode == DIBS_EXCLUSIVE;
}

/* An acquire replaces a lease that is lost. That one is counted here unless the
 * keeper did so before, and is not announced any more: what is told now would be
 * taken for news of the lease that comes next. */
static void replace(dibs_lock *lock, dibsx_nsec now)
{
    if (!lock->via) {
        dibs__record_use_ended(lock, false);
        (void)dibs__lease_due(&lock->lease, now);
    }
    dibs__hold_end(lock);
    rename_holder(lock);
}

dibs_status
dibs__hold_enter(dibs_lock *lock, bool waits, bool *done, dibs_error *err)
{
    const dibs_lock *at = lock->via ? lock->via : lock;
    dibsx_nsec now = dibsx_now();
    dibs_lock *other;

    *done = true;
    if (is_in_use(lock) && dibs__lease_valid(&at->lease, now))
        return again(lock, err);
    if (is_in_use(lock))
        replace(lock, now);
    if (dibs__rest_take_up(lock, now)) {
        dibs__hold_taken(lock);
        return DIBS_OK;
    }
    other = held_elsewhere(lock, now);
    if (other && may_enter(lock, other)) {
        become_guest(lock, other, now);
        return DIBS_OK;
    }
    if (other && waits && conflict(lock, other))
        return dibsx_fail(err, DIBS_INVALID,
                          "this owner holds %s through another handle and "
                          "would wait for itself",
                          lock->name);
    *done = false;
    return DIBS_OK;
}

void dibs__hold_taken(dibs_lock *lock)
{
    lock->depth = 1;
    enlist(lock);
}

bool dibs__hold_leave(dibs_lock *lock, dibs_lock **holder)
{
    dibs_lock *at = lock->via ? lock->via : lock;

    *holder = NULL;
    if (lock->depth == 0)
        return false;
    *holder = at;
    at->refs++;
    if (--lock->depth == 0 && lock->via) {
        stop_being_guest(lock);
        dibs__keeper_publish(lock);
        at->refs--;
    }
    if (is_in_use(at))
        return false;
    delist(at);
    return true;
}

void dibs__hold_end(dibs_lock *lock)
{
    if (lock->via) {
        dibs_lock *host = lock->via;

        stop_being_guest(lock);
        if (!is_in_use(host))
            dibs__lock_forget(host);
        dibs__lock_unref(host);
        return;
    }
    delist(lock);
    lock->depth = 0;
    lock->to_be_told = false;
    while (lock->guests) {
        dibs_lock *guest = lock->guests;

        stop_being_guest(guest);
        dibs__keeper_publish(guest);
        lock->refs--;
    }
}
