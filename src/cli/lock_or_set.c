/* lock_or_set.c - what run and acquire take: one lock, or several at once.
 *
 * Owns the handles. Used on the main thread; cancel and waiting also by the
 * thread that serves signals meanwhile. */
/* SPDX-License-Identifier: MIT */
#include "cli/lock_or_set.h"

#include <assert.h>
#include <string.h>

dibs_status dibs__lock_or_set_init(dibs__lock_or_set *locks, dibs_client *cl,
                                   const char *const *names, size_t count,
                                   const dibs_lock_opts *opts, dibs_error *err)
{
    assert(count > 0);
    *locks = (dibs__lock_or_set){.name = names[0]};
    if (count > 1)
        return dibs_multi_new(cl, names, count, opts, &locks->multi, err);
    return dibs_lock_new(cl, names[0], opts, &locks->lock, err);
}

void dibs__lock_or_set_fini(dibs__lock_or_set *locks)
{
    dibs_lock_free(locks->lock);
    dibs_multi_free(locks->multi);
    *locks = (dibs__lock_or_set){.lock = NULL};
}

size_t dibs__lock_or_set_count(const dibs__lock_or_set *locks)
{
    return locks->multi ? dibs_multi_count(locks->multi) : 1;
}

dibs_lock *dibs__lock_or_set_lock(const dibs__lock_or_set *locks, size_t i)
{
    return locks->multi ? dibs_multi_lock(locks->multi, i) : locks->lock;
}

const char *dibs__lock_or_set_name(const dibs__lock_or_set *locks, size_t i)
{
    return locks->multi ? dibs_multi_name(locks->multi, i) : locks->name;
}

dibs_status dibs__lock_or_set_acquire(dibs__lock_or_set *locks, dibs_error *err)
{
    dibs_status rc = locks->multi ? dibs_multi_acquire(locks->multi, err)
                                  : dibs_lock_acquire(locks->lock, err);

    locks->taken = rc == DIBS_OK;
    return rc;
}

dibs_status dibs__lock_or_set_try(dibs__lock_or_set *locks, dibs_error *err)
{
    dibs_status rc = locks->multi ? dibs_multi_try(locks->multi, err)
                                  : dibs_lock_try(locks->lock, err);

    locks->taken = rc == DIBS_OK;
    return rc;
}

void dibs__lock_or_set_cancel(dibs__lock_or_set *locks)
{
    if (locks->multi)
        dibs_multi_cancel(locks->multi);
    else
        dibs_lock_cancel(locks->lock);
}

dibs_status dibs__lock_or_set_renew(dibs__lock_or_set *locks, dibs_error *err)
{
    dibs_status rc = DIBS_OK;

    for (size_t i = 0; i < dibs__lock_or_set_count(locks) && rc == DIBS_OK; i++)
        rc = dibs_lock_renew(dibs__lock_or_set_lock(locks, i), err);
    return rc;
}

void dibs__lock_or_set_tick(dibs__lock_or_set *locks)
{
    for (size_t i = 0; i < dibs__lock_or_set_count(locks); i++)
        dibs_lock_tick(dibs__lock_or_set_lock(locks, i));
}

dibs_status dibs__lock_or_set_release(dibs__lock_or_set *locks, dibs_error *err)
{
    if (!locks->taken)
        return DIBS_OK;
    locks->taken = false;
    return locks->multi ? dibs_multi_release(locks->multi, err)
                        : dibs_lock_release(locks->lock, err);
}

void dibs__lock_or_set_leave(dibs__lock_or_set *locks)
{
    for (size_t i = 0; i < dibs__lock_or_set_count(locks); i++)
        dibs_lock_leave(dibs__lock_or_set_lock(locks, i));
    locks->taken = false;
}

int64_t dibs__lock_or_set_valid_ms(const dibs__lock_or_set *locks)
{
    return locks->multi ? dibs_multi_valid_ms(locks->multi)
                        : dibs_lock_valid_ms(locks->lock);
}

dibs_lock *
dibs__lock_or_set_find(const dibs__lock_or_set *locks, const char *name)
{
    for (size_t i = 0; i < dibs__lock_or_set_count(locks); i++)
        if (strcmp(dibs__lock_or_set_name(locks, i), name) == 0)
            return dibs__lock_or_set_lock(locks, i);
    return NULL;
}

const char *dibs__lock_or_set_weakest(const dibs__lock_or_set *locks)
{
    const char *name = NULL;
    int64_t least_ms = INT64_MAX;

    for (size_t i = 0; i < dibs__lock_or_set_count(locks); i++) {
        int64_t valid_ms = dibs_lock_valid_ms(dibs__lock_or_set_lock(locks, i));

        if (valid_ms < least_ms) {
            least_ms = valid_ms;
            name = dibs__lock_or_set_name(locks, i);
        }
    }
    return name;
}

const char *dibs__lock_or_set_waiting(const dibs__lock_or_set *locks)
{
    for (size_t i = 0; i < dibs__lock_or_set_count(locks); i++)
        if (dibs_lock_state_get(dibs__lock_or_set_lock(locks, i)) ==
            DIBS_LOCK_WAITING)
            return dibs__lock_or_set_name(locks, i);
    return dibs__lock_or_set_name(locks, 0);
}
