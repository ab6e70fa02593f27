/* no_queue.h - the queue steps of a store that cannot have queues: each answers
 * DIBS_UNSUPPORTED with the reason that the store gives for DIBS__CAN_ITEMS. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_NO_QUEUE_H
#define DIBS_STORE_NO_QUEUE_H

#include "store/queue.h"

extern const dibs__queue_ops dibs__no_queue_ops;
extern const dibs__queue_admin_ops dibs__no_queue_admin_ops;

#endif
