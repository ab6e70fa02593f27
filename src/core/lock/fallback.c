/* fallback.c - the store that is used while the configured one is away. Any
 * thread. */
/* SPDX-License-Identifier: MIT */
#include "core/lock/fallback.h"

#include "base/fail.h"
#include "config/default_url.h"
#include "core/away.h"
#include "core/fork.h"
#include "core/lock/handle.h"
#include "core/lock/publish.h"

static dibs_status
open_fallback(const dibs_client *cl, dibs__store **out, dibs_error *err)
{
    dibsx_nsec deadline = dibs__client_deadline(cl, dibsx_now());
    const char *url = cl->local_url;
    dibsx_buf place;
    dibs_status rc = DIBS_OK;

    dibsx_buf_init(&place, DIBSX_URL_MAX);
    if (cl->on_unavailable == DIBS_AWAY_OPEN) {
        url = "memory:";
    } else if (!url) {
        rc = dibs__store_default_url(&place, err);
        url = dibsx_buf_text(&place);
    }
    if (rc == DIBS_OK)
        rc = dibs__store_open(url, deadline, out, err);
    dibsx_buf_fini(&place);
    return rc;
}

/* Locks: cl->mutex, let go while opening. */
static dibs_status have_fallback(dibs_client *cl, dibs_error *err)
{
    dibs__store *fallback = NULL;
    dibs_status rc;

    if (cl->fallback)
        return DIBS_OK;
    pthread_mutex_unlock(&cl->mutex);
    rc = open_fallback(cl, &fallback, err);
    pthread_mutex_lock(&cl->mutex);
    if (rc == DIBS_OK && !cl->fallback) {
        cl->fallback = fallback;
        fallback = NULL;
    }
    /* If another thread was faster, this one is not needed. */
    dibs__store_close(fallback);
    return rc;
}

dibs_status
dibs__fallback_use(dibs_lock *lock, const dibs_error *why, dibs_error *err)
{
    dibs_client *cl = lock->cl;
    dibs_status rc;

    dibs__away_began(cl,
                     cl->on_unavailable == DIBS_AWAY_LOCAL
                         ? "the store is away, locks hold on this machine only"
                         : "the store is away, running without locks",
                     why);
    rc = have_fallback(cl, err);
    if (rc != DIBS_OK)
        return rc;
    if (cl->on_unavailable == DIBS_AWAY_LOCAL) {
        pthread_mutex_unlock(&cl->mutex);
        dibs__notices_listen(cl, cl->fallback,
                             dibs__client_deadline(cl, dibsx_now()));
        pthread_mutex_lock(&cl->mutex);
    }
    dibs__lock_use_store(lock, cl->fallback,
                         cl->on_unavailable == DIBS_AWAY_LOCAL
                             ? DIBS_FALLBACK_LOCAL
                             : DIBS_FALLBACK_OPEN);
    return DIBS_OK;
}

dibs_fallback dibs_lock_fallback(const dibs_lock *lock)
{
    pthread_mutex_t *mutex = &lock->cl->mutex;
    int fallback;

    if (dibs__forked(lock->cl->fork_number))
        return (dibs_fallback)atomic_load(&lock->shown.fallback);
    pthread_mutex_lock(mutex);
    fallback = atomic_load(lock->entry.via ? &lock->entry.via->shown.fallback
                                           : &lock->shown.fallback);
    pthread_mutex_unlock(mutex);
    return (dibs_fallback)fallback;
}
