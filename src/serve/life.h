/* life.h - the life of a thread that makes pictures for others: begun, told to stop,
 * joined. The look, the look at the board and the catalogs have one each. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_SERVE_LIFE_H
#define DIBS_SERVE_LIFE_H

#include "base/clock.h"
#include <dibs/types.h>
#include <pthread.h>

typedef struct dibs__serve_life {
    pthread_t thread;
    bool runs;
    bool made; /* by the init */

    pthread_mutex_t mutex; /* for `stop`, and for what the thread shares */
    pthread_cond_t cond;   /* told when any of that has changed */
    bool stop;
} dibs__serve_life;

/* Zeroed storage may be ended. `what` is for messages: "the look at the store". */
DIBS_MUST_CHECK dibs_status dibs__life_init(dibs__serve_life *life,
                                            const char *what, dibs_error *err);
void dibs__life_fini(dibs__serve_life *life);

/* A stop without a start is a no-op. */
DIBS_MUST_CHECK dibs_status dibs__life_start(dibs__serve_life *life,
                                             void *(*main)(void *), void *arg,
                                             const char *what, dibs_error *err);
void dibs__life_stop(dibs__serve_life *life);

/* Tells the thread to stop, and does not wait for it. A stop must follow. */
void dibs__life_tell(dibs__serve_life *life);

/* From the beginning of a look to that of the next: `every_ms`, and so long that looks
 * take one part in twenty of the store's time at most. `rc` and `took_us` are of the look:
 * one that failed says nothing about how long the next one takes. */
int64_t dibs__life_pause_ms(int64_t every_ms, dibs_status rc, int64_t took_us);

/* The same where somebody waits for a change to be seen: such looks take a quarter of the
 * store's time at most. */
int64_t dibs__life_soon_ms(int64_t every_ms, dibs_status rc, int64_t took_us);

/* Whether a picture that was begun at `seen_at` is as new as such looks make it: the next
 * one may be late by half of the pause. */
bool dibs__life_fresh(int64_t every_ms, dibs_status rc, int64_t took_us,
                      dibsx_nsec seen_at, dibsx_nsec now);

#endif
