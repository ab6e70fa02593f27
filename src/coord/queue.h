/* queue.h - the inside of a queue handle and its items, shared by the files of queues.
 *
 *     queue.c          handles: new, cancel, free; close; notices
 *     queue_reserve.c  the calls of consumers: reserve, settle, detach, adopt
 *     queue_async.c    ... and without blocking; queue_call.c
 *     queue_push.c     the calls of producers
 *     queue_work.c     a pool of threads
 *     queue_item.c     reading an item
 *     queue_ask.c      requests of the lane: all that is wanted at the same time goes
 *                      into one, sent by one of the threads that want something
 *     queue_tend.c     tends of all lanes of a client, and the news of losses
 *     queue_hold.c     items in hand, and their end
 *
 * Locks: cl->mutex guards all of it; no step and no callback runs while it is held. A
 * queue lives until its handle, its items and its jobs are gone (`refs`). */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_COORD_QUEUE_H
#define DIBS_COORD_QUEUE_H

#include "base/fifo.h"
#include "coord/item_data.h"
#include "coord/producer_machine.h"
#include "coord/queue_call.h"
#include "core/attach.h"
#include "core/client.h"
#include "core/worker.h"

/* So long the belief in all items of one lane lasts: read without the mutex. */
typedef struct dibs__lane_life {
    _Atomic dibsx_nsec valid_until; /* 0: it is over */
    size_t refs;
} dibs__lane_life;

typedef enum dibs__item_state {
    DIBS__ITEM_HELD,    /* in hand */
    DIBS__ITEM_WANTED,  /* its settlement waits for the next request, */
    DIBS__ITEM_ASKED,   /* ... or is under way */
    DIBS__ITEM_SETTLED, /* or detached */
    DIBS__ITEM_LOST
} dibs__item_state;

struct dibs_item {
    dibs__lane_item lane; /* first, so that one is the other */
    dibsx_fifo_node node; /* in q->ready, q->wanted or q->lost */
    dibs_queue *q;
    dibs__lane_life *life; /* NULL: adopted */
    size_t refs;           /* the program, the request, a callback */
    dibs__item_state state;
    bool handed;       /* the program has it, or has had it */
    bool freed;        /* the program has freed it */
    bool told;         /* of its loss */
    _Atomic bool over; /* belief has ended: state is not HELD */
    _Atomic dibsx_nsec limit_until;
    dibsx_nsec limit_was; /* before the extension that is under way */
    uint32_t lost;
    int32_t priority;
    dibs__settle_verb verb; /* of the settlement */
    int64_t ms;
    char *reason;
    dibs__settler *settler;            /* NULL: nobody waits */
    uint64_t from_lane, number, stamp; /* adopted */
    dibs__item_parts parts;
    char bytes[]; /* with a NUL beyond the end */
};

/* The request of the lane that is under way. */
typedef struct dibs__queue_request {
    dibs__reserve ask;
    dibsx_nsec asked_at; /* before its first try */
    dibs__token heard[DIBS__QUEUE_BATCH];
    dibs__settlement settle[DIBS__QUEUE_BATCH];
    dibs_item *items[DIBS__QUEUE_BATCH]; /* what is settled */
    dibsx_fifo delivered;                /* by the answer */
    dibs__token
        strays[DIBS__QUEUE_BATCH]; /* no memory for these: they go back */
    size_t stray_count, stray_asked;
    bool starved; /* ... and for more, so that the lane is left */
} dibs__queue_request;

/* The pushes that are under way in one request. */
typedef struct dibs__push_batch {
    dibsx_fifo calls;
    dibs__push_item items[DIBS__QUEUE_BATCH];
    size_t count, bytes;
} dibs__push_batch;

struct dibs_queue {
    dibs_queue *next; /* of the client */
    dibs_client *cl;
    struct dibs__queues *all;
    char name[DIBS_NAME_MAX + 1]; /* with the client's prefix */
    char as[DIBS__WORKER_MAX];
    dibs_queue_opts opts;
    uint32_t replicas; /* that must have pushes and acks */
    size_t refs;
    size_t callers;          /* threads in a call that waits */
    size_t pools;            /* calls of dibs_queue_work() */
    dibs__queue_call *calls; /* that end with a callback */
    bool cancelled, freed;

    /* The consumer. */
    dibs__consumer machine;
    dibs__lane_life *life;
    char address[DIBS_OWNER_SIZE]; /* of the lane, in notices */
    dibs__queue_request request;
    bool driving; /* a thread sends, or awaits the answer */
    bool forced;  /* the next request goes also if nothing is wanted */
    bool placed;  /* the store hands over to the lane */
    bool dry;     /* the last look found nothing, and no ring came since */
    bool
        hungry; /* ask again at once: the last answer was not enough, or a ring */
    bool rung; /* a ring came before the answer to what was sent before it */
    bool away; /* the last request failed; the log knows */
    dibs_error failure; /* of that */
    uint32_t failures;  /* in a row */
    dibsx_nsec ask_at;  /* not before: after a failure */
    dibsx_nsec look_at; /* when a lane that waits asks by itself */
    dibsx_fifo waiters; /* dibs__waiter */
    dibsx_fifo ready;   /* items that nobody has yet */
    dibsx_fifo wanted;  /* items to settle */
    dibsx_fifo lost;    /* items whose loss is to be announced */
    size_t handed;      /* items in hand that the program has */
    dibs__timer timer;
    dibs__job job; /* goes on with a request that nobody waits for */
    bool calling;  /* on_lost runs */

    /* The producer. */
    dibs__producer producer;
    bool pushing; /* a thread sends */
    dibs__push_batch batch;
    dibsx_fifo pushes;   /* that wait for their turn */
    dibs__job push_job;  /* sends those that no thread waits for */
    pthread_cond_t calm; /* pushes that wait while the queue is full */
};

/* It is freed, or its client is being closed and no pool has items to settle. */
static inline bool dibs__queue_is_over(const dibs_queue *q)
{
    return q->freed || (q->cl->closing && q->pools == 0);
}

#endif
