/* pending.h - commands that are under way on a pipeline, and lines of them.
 *
 * A request lives on the stack of the thread that waits for it; the mutex of its
 * pipeline guards it and the line that it stands in. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_REDIS_PIPE_PENDING_H
#define DIBS_STORE_REDIS_PIPE_PENDING_H

#include "base/clock.h"
#include "base/fifo.h"
#include "base/park.h"
#include "store/redis/pipe/batch.h"

typedef struct dibs__pending {
    dibsx_fifo_node queued; /* the first member: its place in a line */
    dibsx_park park;
    const char *bytes;
    size_t len;
    int due; /* replies: one to each command in `bytes`, */
    int got; /* ... of which so many are in `replies` */
    redisReply **replies;
    dibs__member member; /* how it takes part in a batch */
    int batch_count;     /* in flight: members whose first it is, or 1 */
    bool unsure;         /* a batch may have done it */
    uint64_t start; /* in flight: the place of its first byte in the stream */
    dibsx_nsec deadline;
    dibs_status rc;
    dibs_error *err;
} dibs__pending;

/* The first of a line, the last, and the one behind another; NULL: none. */
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

/* Takes out the first, which is there, with all who can go along in one batch, none
 * when it is to go `alone`. They are of different threads, so their order does not
 * matter. */
void dibs__pending_gather(dibsx_fifo *queue, bool alone, dibsx_fifo *members);

#endif
