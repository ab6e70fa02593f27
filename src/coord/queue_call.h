/* queue_call.h - those that wait in a queue handle: threads, and calls that end with a
 * callback.
 *
 *     begin --> waits in the queue --> ended, posted --> its callback runs --> freed
 *
 *   (1) A call has a reference on its queue, and the close of the client waits for it.
 *   (2) A call that is dropped is never called back.
 *
 * Locks: cl->mutex for everything here. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_COORD_QUEUE_CALL_H
#define DIBS_COORD_QUEUE_CALL_H

#include "base/fifo.h"
#include "coord/lane_machine.h"
#include "core/client.h"
#include "core/runner.h"
#include <dibs/queue.h>

typedef struct dibs__queue_call dibs__queue_call;

struct dibs__queue_call {
    dibs__call_node node;   /* first, so that one is the other */
    dibs__queue_call *next; /* of the queue */
    dibs_queue *q;
    dibs__runner *runner;
    bool dropped;     /* its end is not told any more */
    bool calling;     /* the callback runs, */
    pthread_t caller; /* ... on this thread */
    /* Calls back, without the mutex. */
    void (*tell)(dibs__queue_call *call);
    /* Removes it from what it waits in. It waits for a request under way, if it must. */
    void (*withdraw)(dibs__queue_call *call);
    /* Frees all but the reference on the queue. `told`: the callback has run. */
    void (*free)(dibs__queue_call *call, bool told);
};

/* A thread or a call that waits for the outcome of a settlement. A thread sleeps on one
 * condition for all that it waits for: whatever ends or is due wakes it. */
typedef struct dibs__settler {
    pthread_cond_t *cond;   /* of the thread */
    dibs__queue_call *call; /* NULL: a thread waits */
    bool over;
    dibs_status rc;
    dibs_error err;
} dibs__settler;

/* A thread or a call that waits for items. */
typedef struct dibs__waiter {
    dibsx_fifo_node node;   /* first; in q->waiters */
    pthread_cond_t cond;    /* of the thread */
    dibs__queue_call *call; /* NULL: a thread waits */
    dibsx_nsec deadline;    /* of the call */
    dibs_item **out;
    size_t want, got;
    bool waits; /* else one look is enough */
    bool asked; /* it is in the request under way */
    bool over;
    dibs_status rc;
    dibs_error err;
} dibs__waiter;

/* Begins a call, whose functions are set. On failure it is the caller's to free. */
DIBS_MUST_CHECK dibs_status dibs__queue_call_begin(dibs__queue_call *call,
                                                   dibs_queue *q,
                                                   dibs_error *err);

/* The outcome is known; the callback is run soon. */
static inline void dibs__queue_call_end(dibs__queue_call *call)
{
    if (!call->dropped)
        dibs__runner_post(call->runner, &call->node);
}

/* Drops all calls of a queue that is being freed. When it returns no callback runs,
 * except the one that it was called from. Lets the mutex go meanwhile. */
void dibs__queue_call_drop_all(dibs_queue *q);

#endif
