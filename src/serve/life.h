/* life.h - the life of a thread that makes pictures for others: begun, told to stop,
 * joined. The look, the look at the board and the catalogs have one each. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_SERVE_LIFE_H
#define DIBS_SERVE_LIFE_H

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

#endif
