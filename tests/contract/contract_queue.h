/* contract_queue.h - what the tests of queues share: clients that push and take. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_CONTRACT_QUEUE_H
#define DIBS_CONTRACT_QUEUE_H

#include "contract.h"

enum { TAKEN_MAX = 256, LONG_MS = 60000, VIEWS_MAX = 16 };

/* A delivery as it was shown; data is text here. */
typedef struct taken {
    dibs__token token;
    uint32_t lost;
    int32_t priority;
    int64_t limit_ms;
    char data[64];
} taken;

/* A client's part in the queue of the test, on one of the handles. */
typedef struct lane {
    contract *t;
    size_t handle;
    dibs__reserve
        ask; /* change what is of interest; settle is of the next ask */
    dibs__settlement settle[DIBS__QUEUE_BATCH];
    taken got[TAKEN_MAX]; /* by the last answer */
    size_t count;
    dibs_error err;
} lane;

typedef struct pusher {
    contract *t;
    size_t handle;
    dibs__push push;
    dibs__push_item item; /* of push_text(); change what is of interest */
    dibs_error err;
} pusher;

/* Items of one place, as a look shows them; data is text here. */
typedef struct queue_views {
    dibs__item_view item[VIEWS_MAX];
    char data[VIEWS_MAX][64];
    size_t count;
} queue_views;

uint64_t queue_draw_lane(void);
lane queue_lane(contract *t, size_t handle); /* not open yet */
pusher queue_pusher(contract *t, size_t handle);

/* Sends the request as it is. */
dibs_status lane_send(lane *ln);
/* Opens the lane; sends the next number, and goes on to the next. */
void lane_open(lane *ln);
dibs_status lane_next(lane *ln, uint32_t want, bool wait);
/* Adds a settlement of what a delivery was to the next request. */
void lane_settle(lane *ln, dibs__settle_verb verb, dibs__token token,
                 int64_t ms, const char *reason);
/* Settles alone, and answers its rc. */
dibs_status lane_end(lane *ln, dibs__settle_verb verb, dibs__token token,
                     int64_t ms, const char *reason);
/* Takes one, which must be there. */
taken lane_take(lane *ln);
void lane_leave(lane *ln);

/* Sends the push as it is. The next number, with one item. */
dibs_status pusher_send(pusher *p);
dibs_status push_text(pusher *p, const char *text);
uint64_t push_ok(pusher *p, const char *text);

dibs__queue_stats queue_stats(contract *t);
void queue_set(contract *t, uint32_t fields, dibs__queue_conf conf);

queue_views
queue_peek(contract *t, dibs__item_place place, size_t skip, size_t max);
size_t queue_purge(contract *t, uint32_t places, size_t max);

/* Sleeps until a span that was begun before now is over. */
void queue_sleep(int64_t span_ms);

#endif
