/* ability.h - what some stores lack; each says why (`cannot` in store/store.h). */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_ABILITY_H
#define DIBS_STORE_ABILITY_H

typedef enum dibs__ability {
    DIBS__CAN_QUEUE, /* waiters have places; else a waiter asks again */
    DIBS__CAN_SHARE, /* DIBS__SHARED */
    DIBS__CAN_COUNT, /* DIBS__PERMITS, several at a time */
    DIBS__CAN_CONVERT,
    DIBS__CAN_RING,      /* DIBS__ASK_TELL, yield, and the notice of a revoke */
    DIBS__CAN_SET,       /* acquire_all, whatever the names */
    DIBS__CAN_REPLICATE, /* dibs__ask.replicas */
    DIBS__CAN_VALUE,
    DIBS__CAN_LOG,
    DIBS__CAN_TOPIC,
    DIBS__CAN_RATE,
    DIBS__CAN_MEET,
    DIBS__CAN_METER,
    DIBS__CAN_ITEMS,  /* queues of items (store/queue.h) */
    DIBS__CAN_COMMIT, /* commits and indexes (store/commit.h) */
    DIBS__ABILITIES
} dibs__ability;

#endif
