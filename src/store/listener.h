/* listener.h - what the doorbells of servers have in common: somebody listens, and
 * what was heard is kept until it is asked for.
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
    int ring_fd;         /* readable while there are rings; -1 until opened */
    int stop_fd;         /* readable when nobody is to listen any more */
    dibs__ring *rings;   /* a circle of DIBS__LISTENER_RINGS */
    size_t first;
    size_t count;
    bool heeded;                          /* it has been listened to once */
    dibs_error failure;                   /* of the last attempt to */
    char address[DIBS__LISTENER_ADDRESS]; /* drawn at random */
    atomic_bool open;                     /* address and fds are constant */
} dibs__listener;

/* The caller owns the struct. Who listens is told to stop, and has ended, before
 * fini. */
void dibs__listener_init(dibs__listener *ln);
void dibs__listener_stop(dibs__listener *ln);
void dibs__listener_fini(dibs__listener *ln);

/* As bell_open and bell_hear of store/store.h. The first call has `start` begin to
 * listen on a thread of its own: 0, or an errno. Each waits for the outcome of the
 * first attempt, a second at most. */
DIBS_MUST_CHECK dibs_status dibs__listener_open(dibs__listener *ln,
                                                int (*start)(void *arg),
                                                void *arg, dibsx_nsec deadline,
                                                int *fd, dibs_error *err);
size_t dibs__listener_hear(dibs__listener *ln, dibs__ring *rings, size_t max);

/* The rest is for who listens. A ring that was heard: */
void dibs__listener_put(dibs__listener *ln, const dibs__ring *ring);

/* Rings may have been lost: those who wait had better ask. */
void dibs__listener_missed(dibs__listener *ln);

/* What came of an attempt to listen, NULL when it works; if it does again, something
 * may have been missed. */
void dibs__listener_report(dibs__listener *ln, const dibs_error *failure);

/* Waits. True when it is time to stop. */
bool dibs__listener_rest(const dibs__listener *ln, dibsx_nsec until);

#endif
