/* doorbell.h - what the doorbells of servers have in common: somebody listens, and
 * what was heard is kept until it is asked for.
 *
 * Rings are hints: what finds no room is lost, as is what is rung while nobody
 * listens. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_DOORBELL_H
#define DIBS_STORE_DOORBELL_H

#include "base/clock.h"
#include "store/notice.h"
#include <pthread.h>
#include <stdatomic.h>

enum { DIBS__DOORBELL_NOTICES = 1024, DIBS__DOORBELL_ADDRESS = 17 };

typedef struct dibs__doorbell {
    pthread_mutex_t mutex;
    pthread_cond_t cond; /* `heeded` or `failure` has changed */
    int notice_fd;       /* readable while there are notices; -1 until opened */
    int stop_fd;         /* readable when nobody is to listen any more */
    dibs__notice *notices; /* a circle of DIBS__DOORBELL_NOTICES */
    size_t first;
    size_t count;
    bool heeded;                          /* it has been listened to once */
    dibs_error failure;                   /* of the last attempt to */
    char address[DIBS__DOORBELL_ADDRESS]; /* drawn at random */
    atomic_bool open;                     /* address and fds are constant */
} dibs__doorbell;

/* The caller owns the struct. Who listens is told to stop, and has ended, before
 * fini. */
void dibs__doorbell_init(dibs__doorbell *doorbell);
void dibs__doorbell_stop(dibs__doorbell *doorbell);
void dibs__doorbell_fini(dibs__doorbell *doorbell);

/* As bell_open and bell_hear of store/store.h. The first call has `start` begin to
 * listen on a thread of its own: 0, or an errno. Each waits for the outcome of the
 * first attempt, a second at most. */
DIBS_MUST_CHECK dibs_status dibs__doorbell_open(dibs__doorbell *doorbell,
                                                int (*start)(void *arg),
                                                void *arg, dibsx_nsec deadline,
                                                int *fd, dibs_error *err);
size_t dibs__doorbell_hear(dibs__doorbell *doorbell, dibs__notice *notices,
                           size_t max);

/* The rest is for who listens. A ring that was heard: */
void dibs__doorbell_put(dibs__doorbell *doorbell, const dibs__notice *notice);

/* Rings may have been lost: those who wait had better ask. */
void dibs__doorbell_missed(dibs__doorbell *doorbell);

/* What came of an attempt to listen, NULL when it works; if it does again, something
 * may have been missed. */
void dibs__doorbell_report(dibs__doorbell *doorbell, const dibs_error *failure);

/* Waits. True when it is time to stop. */
bool dibs__doorbell_rest(const dibs__doorbell *doorbell, dibsx_nsec until);

#endif
