/* pipeline_post.c - commands that no thread waits for: see pipeline.h.
 *
 * Owns nothing. Runs on the thread that posts, and on the one that comes to wait. */
/* SPDX-License-Identifier: MIT */
#include "store/redis/pipe/pipeline_parts.h"
#include <poll.h>

/* A post goes behind so many commands at most; this bounds what is unanswered. */
enum { UNDER_WAY_MAX = 64 };

/* Locks: pl->mutex. */
static bool may_post(const dibs__pipeline *pl)
{
    return pl->cn && !pl->broken &&
           pl->flight.count + pl->queue.count < UNDER_WAY_MAX;
}

/* Sends it, with what was queued before. A thread that posts never waits for room.
 * Returns the park to wake once the mutex is free. Locks: pl->mutex, which it may
 * drop. */
static dibsx_park *send_post(dibs__pipeline *pl)
{
    dibs__waiter nobody = {.left = 0};

    if (!pl->led) {
        pl->led = true;
        dibs__pipeline_flush(pl, NULL);
        return dibs__pipeline_pass_lead(pl);
    }
    if (dibs__pipeline_is_worth_sending(pl))
        dibs__pipeline_flush(pl, &nobody);
    return NULL;
}

bool dibs__pipeline_post(dibs__pipeline *pl, dibs__pending *pd)
{
    dibsx_nsec now = dibsx_now();
    dibsx_park *next = NULL;
    bool ok;

    pthread_mutex_lock(&pl->mutex);
    if (!pl->led)
        dibs__pipeline_look_at_idle(pl, now);
    ok = may_post(pl);
    if (ok) {
        pd->only_on = pl->cn_number;
        dibsx_fifo_push(&pl->queue, &pd->queued);
        pl->used_at = now;
        next = send_post(pl);
    }
    pthread_mutex_unlock(&pl->mutex);
    if (next)
        dibsx_park_wake(next);
    return ok;
}

bool dibs__pipeline_is_over(dibs__pipeline *pl, const dibs__pending *pd)
{
    bool over;

    pthread_mutex_lock(&pl->mutex);
    over = pd->over;
    pthread_mutex_unlock(&pl->mutex);
    return over;
}

void dibs__pipeline_await(dibs__pipeline *pl, dibs__pending *pd)
{
    dibs__waiter wt = {.commands = pd, .count = 1, .left = 1};

    pthread_mutex_lock(&pl->mutex);
    if (pd->over) {
        pthread_mutex_unlock(&pl->mutex);
        return;
    }
    pd->waiter = &wt;
    dibs__pipeline_drive(pl, &wt);
}

bool dibs__pipeline_seize(dibs__pipeline *pl, dibs__pending *pd)
{
    dibsx_nsec now = dibsx_now();
    bool ok;

    pthread_mutex_lock(&pl->mutex);
    if (!pl->led)
        dibs__pipeline_look_at_idle(pl, now);
    ok = !pl->led && may_post(pl) && pl->cn_number == pd->only_on;
    if (ok) {
        pl->led = true;
        dibsx_fifo_push(&pl->queue, &pd->queued);
        pl->used_at = now;
        dibs__pipeline_flush(pl, NULL);
    }
    if (ok && pd->over) { /* Memory was short. */
        dibs__pipeline_step_down(pl);
        return false;
    }
    pthread_mutex_unlock(&pl->mutex);
    return ok;
}

void dibs__pipeline_watch(dibs__pipeline *pl, struct pollfd *out)
{
    pthread_mutex_lock(&pl->mutex);
    *out = (struct pollfd){.fd = dibs__conn_fd(pl->cn), .events = POLLIN};
    if (!pl->writing && dibs__pipeline_has_unsent(pl))
        out->events |= POLLOUT;
    pthread_mutex_unlock(&pl->mutex);
}

bool dibs__pipeline_take(dibs__pipeline *pl, const dibs__pending *pd)
{
    bool over;

    pthread_mutex_lock(&pl->mutex);
    /* With TLS an answer may be read already, with the one before it. */
    do {
        if (!pl->broken)
            dibs__pipeline_receive(pl, 0);
    } while (!pl->broken && !pd->over && dibs__conn_has_more(pl->cn));
    if (pl->broken)
        dibs__pipeline_hang_up(pl);
    over = pd->over;
    if (over)
        dibs__pipeline_step_down(pl);
    else
        pthread_mutex_unlock(&pl->mutex);
    return over;
}

void dibs__pipeline_resign(dibs__pipeline *pl)
{
    pthread_mutex_lock(&pl->mutex);
    dibs__pipeline_step_down(pl);
}
