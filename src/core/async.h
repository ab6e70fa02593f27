/* async.h - asynchronous calls: the driver of acquires that cost no thread.
 *
 *                            a step is done
 *     start --> READY ---> RUNNING ----------> SLEEPING
 *                 ^            |                   |
 *                 +------------+<--- alarm, wake --+
 *                              |
 *                              v     callback
 *                            ENDED ------------> NONE
 *
 * Steps that talk to the store are done by a few runners, each started when it is
 * first needed. All steps for one name are done by one runner: releases first,
 * acquires in the order in which they were started, in which they join the queue.
 * A sleeping call costs one timer of the keeper and no thread.
 * Callbacks are run by the runners, or by dibs_async_process() once the program
 * has asked for the descriptor.
 *
 *   (1) A call has its lock's `busy` and a reference on it, from start to NONE.
 *   (2) The callbacks of one lock never run at the same time.
 *   (3) A muted call is never called back. The thread that frees the lock completes
 *       the call, or waits for the step that is under way.
 *
 * Owns the runners; attached to the client with the first call. Locks: cl->mutex
 * for everything here. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_CORE_ASYNC_H
#define DIBS_CORE_ASYNC_H

#include "core/attach.h"
#include "core/lock/release.h"
#include "core/timer.h"
#include <dibs/async.h>
#include <pthread.h>

typedef enum dibs__call_state {
    DIBS__CALL_NONE,
    DIBS__CALL_READY,    /* in its runner's list: there is a step to do */
    DIBS__CALL_RUNNING,  /* a thread is doing it */
    DIBS__CALL_SLEEPING, /* until the alarm, or until something happens */
    DIBS__CALL_ENDED     /* its callback is to be run */
} dibs__call_state;

typedef enum dibs__call_kind {
    DIBS__CALL_ACQUIRE,
    DIBS__CALL_RELEASE,
    DIBS__CALL_ANSWERED /* either, its status known */
} dibs__call_kind;

/* The call of one lock; there is one at a time. */
typedef struct dibs__call {
    dibs__call_state state;
    dibs__call_kind kind;
    dibs_async_fn *done; /* may be NULL for a release */
    void *arg;
    dibs_status rc;                /* ANSWERED */
    dibs__pending_release release; /* RELEASE */
    struct dibs__runner *runner;
    dibs_lock *next;   /* in the list of its state */
    dibs_lock **at;    /* what points at it there; NULL: in none */
    dibs__timer alarm; /* SLEEPING */
    bool calling;      /* a callback of this lock runs, */
    pthread_t caller;  /* ... on this thread */
    bool muted;        /* the lock is being freed: no callback */
} dibs__call;

/* Locks in the order in which they came. */
typedef struct dibs__call_list {
    dibs_lock *first;
    dibs_lock **end;
    size_t count;
} dibs__call_list;

enum { DIBS__RUNNERS = 4 };

typedef struct dibs__runner {
    dibs_client *cl;
    pthread_t thread;
    bool running;
    bool idle;
    pthread_cond_t cond;
    dibs__call_list ready;
} dibs__runner;

/* The calls of a client. */
typedef struct dibs__async {
    dibs__attached attached; /* first, so that one is the other */
    dibs__runner runners[DIBS__RUNNERS];
    dibs__call_list ended;
    size_t calls;   /* under way */
    size_t calling; /* callbacks that run */
    bool stopping;  /* the runners are to end */
    int fd;         /* eventfd of the program's loop; -1: runners call back */
} dibs__async;

/* Ends what is under way on a lock that is being freed; no callback of it runs
 * afterwards, except the one this is called from. The mutex is let go meanwhile. */
void dibs__async_drop(dibs_lock *lock);

#endif
