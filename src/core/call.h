/* call.h - what a lock and a client keep of asynchronous calls; see async.h. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_CORE_CALL_H
#define DIBS_CORE_CALL_H

#include "base/heap.h"
#include "store/store.h"
#include <dibs/async.h>
#include <pthread.h>

/* A release that is yet to be sent; belief has ended. */
typedef struct dibs__parting {
    dibs_lock
        *holder; /* had the lease; with a reference. NULL: nothing to send */
    dibs__store *st;
    dibs__leave leave; /* its texts are here, and in the holder */
    char owner[DIBS_OWNER_SIZE];
} dibs__parting;

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
    dibs_status rc;     /* ANSWERED */
    dibs__parting part; /* RELEASE */
    struct dibs__runner *runner;
    dibs_lock *next;       /* in the list of its state */
    dibs_lock **at;        /* what points at it there; NULL: in none */
    dibsx_heap_node alarm; /* SLEEPING */
    bool calling;          /* a callback of this lock runs, */
    pthread_t caller;      /* ... on this thread */
    bool muted;            /* the lock is being freed: no callback */
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
    dibs__runner runners[DIBS__RUNNERS];
    dibs__call_list ended;
    size_t calls;   /* under way */
    size_t calling; /* callbacks that run */
    bool closing;   /* no further calls */
    bool stopping;  /* the runners are to end */
    int fd;         /* eventfd of the program's loop; -1: runners call back */
} dibs__async;

#endif
