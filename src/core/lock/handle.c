/* handle.c - a lock handle from the inside: calls on it, its owner, its end.
 *
 * Owns the client's table of owners. Any thread. */
/* SPDX-License-Identifier: MIT */
#include "core/lock/handle.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/hash.h"
#include "base/rand.h"
#include "core/lock/fallback.h"
#include "core/lock/lock_opts.h"
#include <string.h>
#include <unistd.h>

dibs_status dibs__lock_enter(dibs_lock *lock, dibs_error *err)
{
    dibs_status rc;

    if (!lock)
        return dibsx_fail(err, DIBS_INVALID, "the lock is NULL");
    rc = dibs__client_usable(lock->cl, err);
    if (rc != DIBS_OK)
        return rc;
    pthread_mutex_lock(&lock->cl->mutex);
    /* It may have been closed since. */
    rc = dibs__client_usable(lock->cl, err);
    if (rc == DIBS_OK && lock->busy)
        rc = dibsx_fail(err, DIBS_INVALID,
                        "another call is under way on this handle");
    if (rc != DIBS_OK) {
        pthread_mutex_unlock(&lock->cl->mutex);
        return rc;
    }
    lock->busy = true;
    lock->cl->calls++;
    return DIBS_OK;
}

void dibs__client_leave(dibs_client *cl)
{
    if (--cl->calls == 0 && cl->closing)
        pthread_cond_broadcast(&cl->over);
}

void dibs__lock_exit(dibs_lock *lock)
{
    lock->busy = false;
    dibs__client_leave(lock->cl);
    pthread_mutex_unlock(&lock->cl->mutex);
}

void dibs__lock_list(dibs_lock *lock)
{
    dibsx_table_add(&lock->cl->by_owner, &lock->by_owner,
                    dibsx_hash_text(lock->lease.owner));
}

void dibs__lock_unlist(dibs_lock *lock)
{
    dibsx_table_remove(&lock->cl->by_owner, &lock->by_owner);
}

static dibs_lock *lock_of(dibsx_table_node *node)
{
    return (dibs_lock *)(void *)((char *)node - offsetof(dibs_lock, by_owner));
}

dibs_lock *dibs__lock_by_owner(dibs_client *cl, const char *owner)
{
    dibsx_table_node *node =
        dibsx_table_find(&cl->by_owner, dibsx_hash_text(owner));

    while (node && strcmp(lock_of(node)->lease.owner, owner) != 0)
        node = node->next;
    return node ? lock_of(node) : NULL;
}

dibs_lock *dibs__lock_any(dibs_client *cl, size_t *at)
{
    dibsx_table_node *node = dibsx_table_from(&cl->by_owner, at);

    if (!node) {
        *at = 0;
        node = dibsx_table_from(&cl->by_owner, at);
    }
    return node ? lock_of(node) : NULL;
}

void dibs__lock_begin(dibs_lock *lock, const char *owner)
{
    dibs__terms terms = lock->traits->terms;

    terms.confirm = dibs__lock_replicas(lock) > 0;
    dibs__lease_begin(&lock->lease, owner, &terms);
    lock->mode = lock->traits->opts.mode;
    lock->doubt = DIBS__SURE;
    lock->acked = 0;
    lock->sticky.wanted = false;
    lock->due.current = false;
    dibs__lock_list(lock);
}

void dibs__lock_use_store(dibs_lock *lock, dibs__store *st,
                          dibs_fallback fallback)
{
    lock->st = st;
    lock->shown.fallback = fallback;
}

void dibs__lock_ask(const dibs_lock *lock, dibs__ask *out)
{
    *out = lock->traits->ask;
    out->name = dibs__fallback_name(lock, lock->lease.owner);
    out->owner = lock->lease.owner;
    out->priority = lock->priority;
    out->ttl_ms = dibs__lease_ask_ms(&lock->lease);
    out->most_ms = dibs__lease_most_ms(&lock->lease);
    out->replicas = dibs__lock_replicas(lock);
}

dibs_status
dibs__owner_new(dibs_client *cl, char out[DIBS_OWNER_SIZE], dibs_error *err)
{
    unsigned char *bits;

    if (cl->owner_bits_left == 0) {
        if (!dibsx_random(cl->owner_bits, sizeof(cl->owner_bits)))
            return dibsx_fail(err, DIBS_UNAVAIL,
                              "the kernel gives no randomness");
        cl->owner_bits_left = DIBS__OWNERS_AHEAD;
    }
    bits = cl->owner_bits[--cl->owner_bits_left];
    dibsx_hex(bits, sizeof(cl->owner_bits[0]), out);
    return DIBS_OK;
}

void dibs__lock_unref(dibs_lock *lock)
{
    if (--lock->refs > 0)
        return;
    dibs__timer_unreserve(lock->cl, DIBS__LOCK_TIMERS);
    lock->cl->handle_count--;
    if (lock->shown.lost_fd >= 0)
        close(lock->shown.lost_fd);
    dibs__opts_fini(lock);
    dibsx_free(lock);
}
