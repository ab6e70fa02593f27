/* watcher.h - a thread that listens to one sentinel for a new primary. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_REDIS_WATCHER_H
#define DIBS_STORE_REDIS_WATCHER_H

#include "store/redis/sentinel.h"
#include <pthread.h>

typedef struct dibs__watcher {
    dibs__sentinel *sn;
    pthread_t thread;
    int stop_fd; /* readable when it is to end; -1: it does not run */
} dibs__watcher;

/* False when it cannot be started: changes are then seen when a connection to
 * the old primary fails. End it with dibs__watcher_stop(). */
bool dibs__watcher_start(dibs__watcher *wt, dibs__sentinel *sn);
void dibs__watcher_stop(dibs__watcher *wt); /* not running: a no-op */

#endif
