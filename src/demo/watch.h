/* watch.h - the holder of the lock and its waiters, looked up again and again on a
 * thread of its own, for a store may be slow to answer. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_DEMO_WATCH_H
#define DIBS_DEMO_WATCH_H

#include "demo/output.h"
#include <dibs/dibs.h>
#include <pthread.h>

typedef struct dibs__demo_watch {
    dibs_client *cl; /* borrowed */
    int port;        /* of a worker, to be named while nothing goes on */
    int fd;          /* readable when the text is new; -1: it does not run */
    int stop_fd;
    pthread_t thread;
    pthread_mutex_t mutex; /* for the text */
    char text[DIBS__DEMO_STATUS_MAX];
} dibs__demo_watch;

/* A failure leaves it without a thread, and `fd` is -1: there is just no status
 * then. Stop is safe in any case. */
void dibs__demo_watch_start(dibs__demo_watch *watch, dibs_client *cl, int port);
void dibs__demo_watch_stop(dibs__demo_watch *watch);

/* Appends one line: the holder of the lock and its waiters, or why that is not known.
 * Asks the store. `port` is named while nothing goes on. */
void dibs__demo_look(dibs_client *cl, int port, dibsx_buf *out);

/* The latest text. */
void dibs__demo_watch_take(dibs__demo_watch *watch,
                           char out[DIBS__DEMO_STATUS_MAX]);

#endif
