/* request.h - commands that are under way on a link, and lines of them.
 *
 * A request lives on the stack of the thread that waits for it; the mutex of its
 * link guards it and the line that it stands in. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_REDIS_REQUEST_H
#define DIBS_STORE_REDIS_REQUEST_H

#include "base/clock.h"
#include "base/park.h"
#include "store/redis/group.h"

typedef struct dibs__request {
    struct dibs__request *next;
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

typedef struct dibs__line {
    dibs__request *head;
    dibs__request *tail;
    int count;
} dibs__line;

void dibs__line_push(dibs__line *ln, dibs__request *rq);

/* Takes out the first, which is there. */
dibs__request *dibs__line_pop(dibs__line *ln);

/* False when it is not in this line. */
bool dibs__line_remove(dibs__line *ln, dibs__request *rq);

/* Puts all of `ln` before those of `rest`; `ln` is empty afterwards. */
void dibs__line_prepend(dibs__line *rest, dibs__line *ln);

/* Takes out the first, which is there, with all who can go along in one group, none
 * when it is to go `alone`. They are of different threads, so their order does not
 * matter. */
void dibs__line_gather(dibs__line *queue, bool alone, dibs__line *members);

#endif
