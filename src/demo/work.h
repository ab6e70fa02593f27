/* work.h - what the parts of a worker share: its clients, its log, and the way to
 * stop all that is under way. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_DEMO_WORK_H
#define DIBS_DEMO_WORK_H

#include "demo/ads.h"
#include "demo/demo.h"
#include "demo/log.h"
#include <pthread.h>

/* A lock that somebody waits for or holds, while a stop must know of it. */
typedef struct dibs__demo_hold {
    dibs_lock *lock;
    struct dibs__demo_hold *next;
} dibs__demo_hold;

typedef struct dibs__demo_work {
    int id;
    const dibs__demo_opts *opts;
    dibs__demo_log log;
    dibs__demo_feed feed; /* of what is in the log */
    dibs_client *locks;
    dibs_client *data; /* the same one, unless the values are elsewhere */
    int stop_fd;       /* readable, for good, once all is to end */

    pthread_mutex_t mutex; /* for what follows */
    pthread_cond_t none;   /* there are no holds any more */
    dibs__demo_hold *holds;
    bool stopping;
} dibs__demo_work;

DIBS_MUST_CHECK dibs_status dibs__demo_work_init(dibs__demo_work *work, int id,
                                                 const dibs__demo_opts *opts,
                                                 dibs_error *err);
void dibs__demo_work_fini(dibs__demo_work *work);

/* Opens the store, or the two. */
DIBS_MUST_CHECK dibs_status dibs__demo_work_open(dibs__demo_work *work,
                                                 dibs_error *err);

/* Takes the lock for an operation of this name; negative waits without limit.
 * DIBS_CANCELLED: the worker stops. On success give it back with
 * dibs__demo_drop(). */
DIBS_MUST_CHECK dibs_status dibs__demo_take(dibs__demo_work *work,
                                            dibs__demo_hold *hold,
                                            const char *operation,
                                            int64_t wait_ms, dibs_error *err);

/* Releases and forgets it: what dibs_lock_release() answers. */
dibs_status
dibs__demo_drop(dibs__demo_work *work, dibs__demo_hold *hold, dibs_error *err);

/* Sleeps under the lock (NULL: without one). DIBS_CANCELLED: the worker stops.
 * DIBS_LOST: the lock is gone. */
DIBS_MUST_CHECK dibs_status dibs__demo_sleep(dibs__demo_work *work,
                                             dibs_lock *lock, int64_t span_ms,
                                             dibs_error *err);

/* Ends all waits and sleeps, now and later, and returns when no lock is held. */
void dibs__demo_work_stop(dibs__demo_work *work);

#endif
