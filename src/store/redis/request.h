/* request.h - commands that are under way on a link, and lines of them.
 *
 * A request lives on the stack of the thread that waits for it; the mutex of its
 * link guards it and the line that it stands in. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_REDIS_REQUEST_H
#define DIBS_STORE_REDIS_REQUEST_H

#include "base/clock.h"
#include "base/fifo.h"
#include "base/park.h"
#include "store/redis/group.h"

typedef struct dibs__request {
    dibsx_fifo_node queued; /* the first member: its place in a line */
    dibsx_park park;
    const char *bytes;
    size_t len;
    int due; /* replies: one to each command in `bytes`, */
    int got; /* ... of which so many are in `replies` */
    redisReply **replies;
    dibs__member member; /* how it takes part in a group */
    int grouped;         /* in flight: members whose first it is, or 1 */
    bool unsure;         /* a group may have done it */
    uint64_t start; /* in flight: the place of its first byte in the stream */
    dibsx_nsec deadline;
    dibs_status rc;
    dibs_error *err;
} dibs__request;

/* The first of a line, the last, and the one behind another; NULL: none. */
static inline dibs__request *dibs__line_first(const dibsx_fifo *line)
{
    return (dibs__request *)line->first;
}

static inline dibs__request *dibs__line_last(const dibsx_fifo *line)
{
    return (dibs__request *)line->last;
}

static inline const dibs__request *dibs__line_next(const dibs__request *rq)
{
    return (const dibs__request *)rq->queued.next;
}

/* Takes out the first; NULL when there is none. */
static inline dibs__request *dibs__line_pop(dibsx_fifo *line)
{
    return (dibs__request *)dibsx_fifo_pop(line);
}

/* Takes out the first, which is there, with all who can go along in one group, none
 * when it is to go `alone`. They are of different threads, so their order does not
 * matter. */
void dibs__line_gather(dibsx_fifo *queue, bool alone, dibsx_fifo *members);

#endif
