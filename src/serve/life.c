/* life.c - the life of a thread that makes pictures for others; see life.h.
 *
 * Owns the thread, the mutex and the condition variable. */
/* SPDX-License-Identifier: MIT */
#include "serve/life.h"
#include "base/cond.h"
#include "base/fail.h"
#include "base/thread.h"

enum { SHARE = 20, SOON_SHARE = 4 };

dibs_status
dibs__life_init(dibs__serve_life *life, const char *what, dibs_error *err)
{
    *life = (dibs__serve_life){.made = false};
    if (!dibsx_cond_init(&life->cond))
        return dibsx_nomem(err, "%s", what);
    pthread_mutex_init(&life->mutex, NULL);
    life->made = true;
    return DIBS_OK;
}

void dibs__life_fini(dibs__serve_life *life)
{
    if (!life->made)
        return;
    pthread_cond_destroy(&life->cond);
    pthread_mutex_destroy(&life->mutex);
    life->made = false;
}

dibs_status dibs__life_start(dibs__serve_life *life, void *(*main)(void *),
                             void *arg, const char *what, dibs_error *err)
{
    if (dibsx_thread_start(&life->thread, main, arg) != 0)
        return dibsx_nomem(err, "%s", what);
    life->runs = true;
    return DIBS_OK;
}

void dibs__life_tell(dibs__serve_life *life)
{
    if (!life->runs)
        return;
    pthread_mutex_lock(&life->mutex);
    life->stop = true;
    pthread_cond_broadcast(&life->cond);
    pthread_mutex_unlock(&life->mutex);
}

void dibs__life_stop(dibs__serve_life *life)
{
    if (!life->runs)
        return;
    dibs__life_tell(life);
    pthread_join(life->thread, NULL);
    life->runs = false;
}

int64_t dibs__life_pause_ms(int64_t every_ms, dibs_status rc, int64_t took_us)
{
    const int64_t share_ms = rc == DIBS_OK ? took_us / 1000 * SHARE : 0;

    return share_ms > every_ms ? share_ms : every_ms;
}

int64_t dibs__life_soon_ms(int64_t every_ms, dibs_status rc, int64_t took_us)
{
    const int64_t share_ms = rc == DIBS_OK ? took_us / 1000 * SOON_SHARE : 0;

    return share_ms > every_ms ? share_ms : every_ms;
}

bool dibs__life_fresh(int64_t every_ms, dibs_status rc, int64_t took_us,
                      dibsx_nsec seen_at, dibsx_nsec now)
{
    const int64_t pause_ms = dibs__life_pause_ms(every_ms, rc, took_us);

    return now <
           dibsx_after_ms(seen_at, took_us / 1000 + pause_ms + pause_ms / 2);
}
