/* lock_or_set.c - what run and acquire take: one lock, or several at once.
 *
 * Owns the handles. Used on the main thread; cancel and waiting also by the
 * thread that serves signals meanwhile. */
/* SPDX-License-Identifier: MIT */
#include "cli/lock_or_set.h"

#include <assert.h>
#include <string.h>

dibs_status dibs__lock_or_set_init(dibs__lock_or_set *claim, dibs_client *cl,
                                   const char *const *names, size_t count,
                                   const dibs_lock_opts *opts, dibs_error *err)
{
    assert(count > 0);
    *claim = (dibs__lock_or_set){.name = names[0]};
    if (count > 1)
        return dibs_multi_new(cl, names, count, opts, &claim->multi, err);
    return dibs_lock_new(cl, names[0], opts, &claim->lock, err);
}

void dibs__lock_or_set_fini(dibs__lock_or_set *claim)
{
    dibs_lock_free(claim->lock);
    dibs_multi_free(claim->multi);
    *claim = (dibs__lock_or_set){.lock = NULL};
}

size_t dibs__lock_or_set_count(const dibs__lock_or_set *claim)
{
    return claim->multi ? dibs_multi_count(claim->multi) : 1;
}

dibs_lock *dibs__lock_or_set_lock(const dibs__lock_or_set *claim, size_t i)
{
    return claim->multi ? dibs_multi_lock(claim->multi, i) : claim->lock;
}

const char *dibs__lock_or_set_name(const dibs__lock_or_set *claim, size_t i)
{
    return claim->multi ? dibs_multi_name(claim->multi, i) : claim->name;
}

dibs_status dibs__lock_or_set_acquire(dibs__lock_or_set *claim, dibs_error *err)
{
    dibs_status rc = claim->multi ? dibs_multi_acquire(claim->multi, err)
                                  : dibs_lock_acquire(claim->lock, err);

    claim->taken = rc == DIBS_OK;
    return rc;
}

dibs_status dibs__lock_or_set_try(dibs__lock_or_set *claim, dibs_error *err)
{
    dibs_status rc = claim->multi ? dibs_multi_try(claim->multi, err)
                                  : dibs_lock_try(claim->lock, err);

    claim->taken = rc == DIBS_OK;
    return rc;
}

void dibs__lock_or_set_cancel(dibs__lock_or_set *claim)
{
    if (claim->multi)
        dibs_multi_cancel(claim->multi);
    else
        dibs_lock_cancel(claim->lock);
}

dibs_status dibs__lock_or_set_renew(dibs__lock_or_set *claim, dibs_error *err)
{
    dibs_status rc = DIBS_OK;

    for (size_t i = 0; i < dibs__lock_or_set_count(claim) && rc == DIBS_OK; i++)
        rc = dibs_lock_renew(dibs__lock_or_set_lock(claim, i), err);
    return rc;
}

void dibs__lock_or_set_tick(dibs__lock_or_set *claim)
{
    for (size_t i = 0; i < dibs__lock_or_set_count(claim); i++)
        dibs_lock_tick(dibs__lock_or_set_lock(claim, i));
}

dibs_status dibs__lock_or_set_release(dibs__lock_or_set *claim, dibs_error *err)
{
    if (!claim->taken)
        return DIBS_OK;
    claim->taken = false;
    return claim->multi ? dibs_multi_release(claim->multi, err)
                        : dibs_lock_release(claim->lock, err);
}

void dibs__lock_or_set_leave(dibs__lock_or_set *claim)
{
    for (size_t i = 0; i < dibs__lock_or_set_count(claim); i++)
        dibs_lock_leave(dibs__lock_or_set_lock(claim, i));
    claim->taken = false;
}

int64_t dibs__lock_or_set_valid_ms(const dibs__lock_or_set *claim)
{
    return claim->multi ? dibs_multi_valid_ms(claim->multi)
                        : dibs_lock_valid_ms(claim->lock);
}

dibs_lock *
dibs__lock_or_set_find(const dibs__lock_or_set *claim, const char *name)
{
    for (size_t i = 0; i < dibs__lock_or_set_count(claim); i++)
        if (strcmp(dibs__lock_or_set_name(claim, i), name) == 0)
            return dibs__lock_or_set_lock(claim, i);
    return NULL;
}

const char *dibs__lock_or_set_weakest(const dibs__lock_or_set *claim)
{
    const char *name = NULL;
    int64_t least_ms = INT64_MAX;

    for (size_t i = 0; i < dibs__lock_or_set_count(claim); i++) {
        int64_t valid_ms = dibs_lock_valid_ms(dibs__lock_or_set_lock(claim, i));

        if (valid_ms < least_ms) {
            least_ms = valid_ms;
            name = dibs__lock_or_set_name(claim, i);
        }
    }
    return name;
}

const char *dibs__lock_or_set_waiting(const dibs__lock_or_set *claim)
{
    for (size_t i = 0; i < dibs__lock_or_set_count(claim); i++)
        if (dibs_lock_state_get(dibs__lock_or_set_lock(claim, i)) ==
            DIBS_LOCK_WAITING)
            return dibs__lock_or_set_name(claim, i);
    return dibs__lock_or_set_name(claim, 0);
}
