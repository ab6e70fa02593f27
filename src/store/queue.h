/* queue.h - the queue steps of the store contract: push, reserve and settle, tend,
 * leave; queue_admin.h has those of an operator. store/deliver.h has the rule. The data of
 * an item is bytes; the core writes the headers in front of them.
 *
 * A client's part in a queue is a lane, a number that it draws (53 random bits): one
 * to reserve with, and one to push with. A lane is one lease for all that it has.
 * Its requests are numbered from 1; the client sends the next number when the last
 * was answered, or gives the lane up. The store does a number once and keeps its
 * answer, so a request whose answer was lost is sent again as it was: within 60 s a
 * push, while the lane lives a reserve. DIBS_LOST to a request that was sent once
 * means that nothing was done; to one that was sent again it means DIBS_UNKNOWN. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_QUEUE_H
#define DIBS_STORE_QUEUE_H

#include "store/queue_admin.h"
#include "store/settle.h"

typedef struct dibs__push_item {
    const void *data; /* up to DIBS__ITEM_MAX bytes */
    size_t len;
    int64_t delay_ms;
    int32_t priority;  /* higher ones first */
    uint32_t tries;    /* 0: those of the queue */
    const char *to;    /* the worker that it is for; "": none */
    const char *dedup; /* "": none */
    int64_t dedup_ms;  /* its window, from now on */

    uint64_t id;    /* out; of a duplicate: of the item that has the dedup id */
    bool duplicate; /* out: no item was made */
} dibs__push_item;

typedef struct dibs__push {
    const char *queue;
    uint64_t lane, number;
    dibs__push_item *items;
    size_t count;
    uint32_t replicas; /* that must acknowledge it; with DIBS__CAN_REPLICATE */
} dibs__push;

typedef struct dibs__delivery {
    dibs__token token;
    uint32_t lost; /* earlier deliveries that ended without a word */
    int32_t priority;
    int64_t limit_ms; /* left of its limit, 1 at least; 0: it has none */
    const void *data; /* borrowed for the call */
    size_t len;
} dibs__delivery;

/* Called once for each delivery, after the step; the store is not locked. */
typedef void dibs__delivery_fn(const dibs__delivery *delivery, void *arg);

/* Number 1 opens the lane and does nothing else. The client takes all that is
 * delivered, also beyond `want`; of an item that it has the later fence counts. `heard`:
 * items that rings brought. The rings of the stores bring none: they mean "ask".
 *
 * The lane lives for span_ms after this. A new number shortens it only while it has nothing.
 * So a client counts its validity from before the send; when it sends a number with an empty
 * hand, it counts on no more than that span, and on no tend sent before the answer. */
typedef struct dibs__reserve {
    const char *queue;
    uint64_t lane, number;
    uint64_t seen; /* the stamp of the answer before; of number 1: 0 */
    int64_t span_ms;
    uint32_t want;  /* up to DIBS__QUEUE_BATCH; 0: settles only */
    bool wait;      /* if there is nothing, a push hands over to it and rings */
    const char *as; /* the worker whose items it takes first; "": none */
    uint32_t hands; /* works on so many: charged with its death; 0: on all */
    int64_t limit_ms; /* of each delivery; 0: none */
    const dibs__token *heard;
    size_t heard_count;
    dibs__settlement *settle;
    size_t settle_count;
    uint32_t replicas; /* that must acknowledge each ack, else it is UNKNOWN */

    uint64_t stamp; /* out: for the next number */
    int64_t due_ms; /* out: until it should ask for a delayed item; or -1 */
} dibs__reserve;

typedef struct dibs__tend {
    const char *queue;
    uint64_t lane;
    int64_t span_ms;
    dibs_status rc;  /* out: OK; LOST: there is no such lane, or it has ended */
    int64_t left_ms; /* out: of the lane; it was not shortened */
    bool ready;      /* out: there is something to reserve */
} dibs__tend;

typedef struct dibs__queue_ops {
    /* DIBS_OK: each item has its id, and is there once. DIBS_FULL: none was made, nor
     * will be by this number. DIBS_LOST: the number is over, or the lane not known.
     * DIBS_INVALID: too many, too long. DIBS_UNKNOWN: also if too few replicas have it. */
    dibs_status (*push)(struct dibs__store *st, const dibs__push *push,
                        dibsx_nsec deadline, dibs_error *err);

    /* Settles, then takes up to `want`, in one step; of two on PostgreSQL that overlap
     * either may get the earlier item. DIBS_OK: each settlement has its rc, and each
     * delivery was shown. DIBS_LOST: the lane has ended, and all that it had comes
     * back; nothing of this request was done. DIBS_INVALID: nor of this one; a request
     * with other settlements had the number. */
    dibs_status (*reserve)(struct dibs__store *st, dibs__reserve *ask,
                           dibsx_nsec deadline, dibs__delivery_fn *each,
                           void *arg, dibs_error *err);

    /* Each lane has its own status. DIBS_OK: a server answered for one of them; in a
     * cluster those of another one may be DIBS_UNAVAIL or DIBS_UNKNOWN. */
    dibs_status (*tend)(struct dibs__store *st, dibs__tend *items, size_t count,
                        dibsx_nsec deadline, dibs_error *err);

    /* Ends a lane; what it had comes back uncounted. DIBS_OK also without one. */
    dibs_status (*leave)(struct dibs__store *st, const char *queue,
                         uint64_t lane, dibsx_nsec deadline, dibs_error *err);
} dibs__queue_ops;

/* The owner in notices for a lane. */
void dibs__lane_address(uint64_t lane, char out[DIBS_OWNER_SIZE]);

/* As DIBS__LEASE_STEPS(). */
#define DIBS__QUEUE_STEPS(X)                                                   \
    X(push, PUSH)                                                              \
    X(reserve, RESERVE)                                                        \
    X(tend, TEND)                                                              \
    X(leave, LEAVE)

#endif
