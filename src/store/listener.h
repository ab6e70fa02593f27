/* listener.h - what the doorbells of servers have in common: a thread that listens, and
 * the rings that it has heard, until they are asked for.
 *
 * Rings are hints: what finds no room is lost, as is what is rung while nobody
 * listens. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_LISTENER_H
#define DIBS_STORE_LISTENER_H

#include "base/clock.h"
#include "store/ring.h"
#include <pthread.h>
#include <stdatomic.h>

enum { DIBS__LISTENER_RINGS = 1024, DIBS__LISTENER_ADDRESS = 17 };

typedef struct dibs__listener {
    pthread_mutex_t mutex;
    pthread_cond_t cond; /* `heeded` or `failure` has changed */
    pthread_t thread;
    int ring_fd;       /* readable while there are rings; -1 until opened */
    int stop_fd;       /* readable when the thread is to end */
    dibs__ring *rings; /* a circle of DIBS__LISTENER_RINGS */
    size_t first;
    size_t count;
    bool heeded;                          /* it has been listened to once */
    dibs_error failure;                   /* of the last attempt to */
    char address[DIBS__LISTENER_ADDRESS]; /* drawn at random */
    atomic_bool open; /* the thread runs; address and fds are constant */
} dibs__listener;

/* The caller owns the struct; end with fini, which ends the thread. */
void dibs__listener_init(dibs__listener *ln);
void dibs__listener_fini(dibs__listener *ln);

/* As bell_open and bell_hear of store/store.h. The first call starts the thread,
 * which runs `main` with all signals blocked; each waits for the outcome of the
 * first attempt to listen, a second at most. */
DIBS_MUST_CHECK dibs_status dibs__listener_open(dibs__listener *ln,
                                                void *(*main)(void *),
                                                void *arg, dibsx_nsec deadline,
                                                int *fd, dibs_error *err);
size_t dibs__listener_hear(dibs__listener *ln, dibs__ring *rings, size_t max);

/* The rest is for the thread. A ring that was heard: */
void dibs__listener_put(dibs__listener *ln, const dibs__ring *ring);

/* What came of an attempt to listen, NULL when it works. If it does again, those who
 * wait are told that they may have missed something. */
void dibs__listener_report(dibs__listener *ln, const dibs_error *failure);

/* Waits. True when the thread is to end. */
bool dibs__listener_rest(const dibs__listener *ln, dibsx_nsec until);

#endif
