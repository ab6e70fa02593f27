/* queue_part.h - a process's part in a queue of the ground: pushes, takes and acks, and
 * goes on asking whatever happens to the store. One thread. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_TESTS_CHAOS_QUEUE_PART_H
#define DIBS_TESTS_CHAOS_QUEUE_PART_H

#include "witness.h"

#include <stdatomic.h>

enum { PART_BATCH = 16 };

typedef struct queue_part queue_part;

/* `over` ends every call soon. NULL: it was over before the store could be reached. Close
 * it with part_close(): what it has comes back by itself. It takes items as `worker`. */
queue_part *part_open(const char *url, const char *queue, int64_t ttl_ms,
                      uint32_t worker, const atomic_bool *over);
void part_close(queue_part *pt); /* NULL is a no-op */

/* Pushes up to PART_BATCH items, and sets how, id and sent_us of each. */
void part_push(queue_part *pt, pushed *all, size_t count);

/* Settles `count` items, sets how and sent_us of each, and takes up to `want` others in the
 * same step: `next` has room for PART_BATCH. Waits a little when there are none. */
void part_next(queue_part *pt, effect *all, size_t count, size_t want,
               effect *next, size_t *taken);

/* Makes a dead letter an item again. */
outcome part_redrive(queue_part *pt, uint64_t id);

/* Whether what was taken last is this process's still; `arg` is the part. */
bool part_is_valid(void *arg);

#endif
