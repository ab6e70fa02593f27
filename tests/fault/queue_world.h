/* queue_world.h - a queue of a world (fault_world.h), with what tests of queues do to it. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_QUEUE_WORLD_H
#define DIBS_QUEUE_WORLD_H

#include "core/client.h"
#include "fault_world.h"

/* The queue "q"; `opts` may be NULL. */
dibs_queue *open_queue(dibs_client *cl, const dibs_queue_opts *opts);
void push(dibs_queue *q);
dibs_item *reserve(dibs_queue *q);
void ack(dibs_item *item);
void assert_empty(dibs_queue *q);
dibs__queue_stats stats(world *w);
void set_cap(world *w, uint32_t cap);

/* A call on a thread of its own. */
typedef struct call {
    dibs_queue *q;
    dibs_item *item;
    dibs_status rc;
    pthread_t thread;
} call;

/* Reserves an item; arg: the call. */
void *do_reserve(void *arg);

/* Until a lane waits at the store. */
void await_waiting(world *w);

#endif
