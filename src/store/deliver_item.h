/* deliver_item.h - the ways of an item in the rule of queues: made, made ready, given,
 * settled, returned. For the rule alone. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_DELIVER_ITEM_H
#define DIBS_STORE_DELIVER_ITEM_H

#include "store/shelf.h"

/* The number of a lane that has ended, and is kept until all that was ready for its worker
 * is everybody's. Its until_us is 0. */
#define DIBS__LANE_OVER ((uint64_t)INT64_MAX)

typedef enum dibs__return_kind {
    DIBS__RETURN_NACK,
    DIBS__RETURN_LOST,    /* the delivery ended without a word */
    DIBS__RETURN_UNBEGUN, /* the attempt was none */
    DIBS__RETURN_DEAD     /* it was given up */
} dibs__return_kind;

/* The settings with the defaults. */
dibs__queue_conf dibs__deliver_conf(const dibs__queue_head *head);

/* The next id, fence or stamp. */
uint64_t dibs__item_draw(dibs__shelf *sh);

/* Whether the dedup id is taken, and by which item. "" never is. */
dibs_status
dibs__item_dedup(dibs__shelf *sh, const char *dedup, bool *taken, uint64_t *by);

/* Makes an item. */
dibs_status dibs__item_push(dibs__shelf *sh, dibs__push_item *push);
dibs_status dibs__item_fail_full(dibs__shelf *sh);

/* Makes it ready in its place: for the worker that it is for if that lives. */
dibs_status dibs__item_shelve(dibs__shelf *sh, dibs__item *item);

/* Finds the next item for a worker: its own and everybody's in one order, then the
 * first of the worker with most, up to half of these at once. DIBS_NOTFOUND: nothing
 * is ready, or the queue is held back. */
dibs_status dibs__item_next(dibs__shelf *sh, const char *as, dibs__item *item);

/* Delivers it to the lane, in the answer to that number; 0: unheard. */
dibs_status dibs__item_give(dibs__shelf *sh, dibs__item *item,
                            const dibs__lane *lane, uint64_t told);

/* Ends its delivery. */
dibs_status
dibs__item_return(dibs__shelf *sh, dibs__item *item, dibs__return_kind how,
                  int64_t delay_ms, const char *reason);

/* The item is gone, and its dedup id is free after its window. */
dibs_status dibs__item_forget(dibs__shelf *sh, const dibs__item *item);

/* Drops the oldest records of done items beyond the bound, up to `max` of them. */
dibs_status dibs__item_trim_done(dibs__shelf *sh, size_t max);

/* Does one settlement of a lane; its rc is the outcome. */
dibs_status
dibs__item_settle(dibs__shelf *sh, uint64_t lane, dibs__settlement *settle);

#endif
