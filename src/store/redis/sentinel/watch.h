/* watch.h - a thread that listens to one sentinel for a new primary. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_REDIS_SENTINEL_WATCH_H
#define DIBS_STORE_REDIS_SENTINEL_WATCH_H

#include "store/redis/sentinel/sentinel.h"
#include <pthread.h>

typedef struct dibs__sentinel_watch {
    dibs__sentinel *sn;
    pthread_t thread;
    int stop_fd; /* readable when it is to end; -1: it does not run */
} dibs__sentinel_watch;

/* False when it cannot be started: changes are then seen when a connection to
 * the old primary fails. End it with dibs__sentinel_watch_stop(). */
bool dibs__sentinel_watch_start(dibs__sentinel_watch *wt, dibs__sentinel *sn);
void dibs__sentinel_watch_stop(
    dibs__sentinel_watch *wt); /* not running: a no-op */

#endif
