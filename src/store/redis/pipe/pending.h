/* pending.h - pending commands of a pipeline, and queues of them.
 *
 * A pending command belongs to the thread that waits for it, alone or with others
 * of its own. One that was posted belongs to its sender, and a thread may come to wait
 * for it. The mutex of its pipeline guards it, its waiter and the queue that it is in. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_REDIS_PIPE_PENDING_H
#define DIBS_STORE_REDIS_PIPE_PENDING_H

#include "base/clock.h"
#include "base/fifo.h"
#include "base/park.h"
#include "store/redis/pipe/batch.h"

struct dibs__pending;

/* A thread that waits for commands, which are next to each other. */
typedef struct dibs__waiter {
    dibsx_park park;
    struct dibs__pending *commands;
    size_t count;
    size_t left; /* commands that have not ended */
} dibs__waiter;

typedef struct dibs__pending {
    dibsx_fifo_node queued; /* the first member: its node in a queue */
    dibs__waiter *waiter;   /* NULL: no thread waits for it */
    bool over;
    const char *bytes;
    size_t len;
    int due; /* replies to expect: one to each command in `bytes` */
    int got; /* replies that are in `replies` */
    redisReply **replies;
    dibs__member member; /* its part in a batch */
    int batch_count;     /* in flight, of the first of a batch: members; or 1 */
    bool unsure;         /* a batch that failed may have run it */
    uint64_t only_on;    /* the number of its connection; 0: any */
    uint64_t start; /* in flight: the offset of its first byte in the stream */
    dibsx_nsec deadline;
    dibs_status rc;
    dibs_error *err;
} dibs__pending;

/* The first of a queue, the last, and the next one; NULL: none. */
static inline dibs__pending *dibs__pending_first(const dibsx_fifo *fifo)
{
    return (dibs__pending *)fifo->first;
}

static inline dibs__pending *dibs__pending_last(const dibsx_fifo *fifo)
{
    return (dibs__pending *)fifo->last;
}

static inline const dibs__pending *dibs__pending_next(const dibs__pending *pd)
{
    return (const dibs__pending *)pd->queued.next;
}

/* Takes out the first; NULL when there is none. */
static inline dibs__pending *dibs__pending_pop(dibsx_fifo *fifo)
{
    return (dibs__pending *)dibsx_fifo_pop(fifo);
}

/* The command whose deadline is the first, among those that have not ended; there
 * must be one. */
dibs__pending *dibs__waiter_next(const dibs__waiter *wt);

/* Takes out the first, which must be there, with all that fit into one batch
 * with it; none when it goes `alone`. They belong to different threads, or
 * to one that has sent them together, so their order does not matter. None
 * goes past one that is bound to the connection. */
void dibs__pending_gather(dibsx_fifo *queue, bool alone, dibsx_fifo *members);

#endif
