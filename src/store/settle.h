/* settle.h - settlements: how a delivery of a queue (queue.h) ended, and the answer to that,
 * which the store keeps for a request that is sent again. Pure. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_SETTLE_H
#define DIBS_STORE_SETTLE_H

#include <dibs/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Tells one delivery of an item from all others. The fence rises over the queue, on
 * PostgreSQL for each item and each lane, over restarts that lose writes too. */
typedef struct dibs__token {
    uint64_t id;
    uint64_t fence;
    uint32_t attempt;
} dibs__token;

typedef enum dibs__settle_verb {
    DIBS__ITEM_ACK,     /* done: the item is gone, but for a record of it */
    DIBS__ITEM_NACK,    /* it comes back after `ms`; dead after its last try */
    DIBS__ITEM_DEAD,    /* it goes to the dead letters */
    DIBS__ITEM_UNBEGUN, /* it comes back, and this attempt was none */
    DIBS__ITEM_EXTEND   /* its limit is in `ms`; 0: none */
} dibs__settle_verb;

/* Answers DIBS_LOST when this is no delivery of the lane any more; nothing changed
 * then. DIBS_OK is answered for one token of an item's ack, whatever gets lost, and for
 * one verb of a token. */
typedef struct dibs__settlement {
    dibs__settle_verb verb;
    dibs__token token;
    int64_t ms;
    const char *reason; /* of nack and dead; of ack: the result; NULL: none */
    dibs_status rc;     /* out */
} dibs__settlement;

/* The bytes of its reason or result to keep. */
size_t dibs__settle_text(const dibs__settlement *settle);

/* The kept answer: the letter of its verb, a capital one if it is DIBS_LOST. */
char dibs__settle_mark(const dibs__settlement *settle);

/* Reads the kept answers of `count` settlements. False: they are of other ones. */
bool dibs__settle_read(dibs__settlement *settle, size_t count,
                       const char *marks);

#endif
