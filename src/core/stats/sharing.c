/* sharing.c - rounds in which a client shares what it gathered; see sharing.h.
 *
 * Thread: the keeper begins a round, a worker does it, and the thread that closes the
 * client does the last. */
/* SPDX-License-Identifier: MIT */
#include "core/stats/sharing.h"

#include "base/alloc.h"
#include "core/client.h"
#include <stddef.h>

/* Thread: a worker. Locks: cl->mutex, let go meanwhile. */
static void run_round(dibs_client *cl, dibs__job *job)
{
    dibs__sharing *sh =
        (dibs__sharing *)(void *)((char *)job - offsetof(dibs__sharing, round));

    sh->under_way = true;
    sh->ops->share(cl, sh, dibs__client_deadline(cl, dibsx_now()));
    sh->under_way = false;
    pthread_cond_broadcast(&cl->over);
}

/* While a round is under way, and if no worker can be started, it is tried again later. */
static void begin_round(dibs_client *cl, dibs__timer *timer, dibsx_nsec now)
{
    dibs__sharing *sh =
        (dibs__sharing *)(void *)((char *)timer -
                                  offsetof(dibs__sharing, timer));

    if (sh->under_way || !dibs__worker_add(cl, &sh->round))
        dibs__timer_set(cl, timer, dibsx_after_ms(now, sh->ops->pause_ms));
}

static void stop_sharing(dibs_client *cl, dibs__attached *at)
{
    dibs__sharing *sh = (dibs__sharing *)(void *)at;
    dibsx_nsec now = dibsx_now();
    dibsx_nsec until = sh->ops->close_ms > 0
                           ? dibsx_after_ms(now, sh->ops->close_ms)
                           : dibs__client_deadline(cl, now);

    pthread_mutex_lock(&cl->mutex);
    sh->stopping = true;
    while (sh->under_way || sh->round.queued)
        pthread_cond_wait(&cl->over, &cl->mutex);
    sh->ops->share(cl, sh, until);
    pthread_mutex_unlock(&cl->mutex);
}

static void free_sharing(dibs_client *cl, dibs__attached *at)
{
    dibs__sharing *sh = (dibs__sharing *)(void *)at;

    sh->ops->free(cl, sh);
    dibsx_free(sh);
}

void *
dibs__sharing_new(dibs_client *cl, size_t size, const dibs__sharing_ops *ops)
{
    dibs__sharing *sh = dibsx_zalloc(size);

    if (!sh || !dibs__timer_reserve(cl, 1)) {
        dibsx_free(sh);
        return NULL;
    }
    sh->ops = ops;
    sh->timer.fire = begin_round;
    sh->round.run = run_round;
    sh->attached.stop = stop_sharing;
    sh->attached.free = free_sharing;
    dibs__attach(cl, &sh->attached);
    return sh;
}

void dibs__sharing_due(dibs_client *cl, dibs__sharing *sh)
{
    if (!sh->stopping && !dibs__timer_is_set(&sh->timer) &&
        dibs__timer_ready(cl, NULL) == DIBS_OK)
        dibs__timer_set(cl, &sh->timer,
                        dibsx_after_ms(dibsx_now(), sh->ops->pause_ms));
}
