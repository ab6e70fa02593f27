/* combine.h - acquires and releases of many threads, sent together.
 *
 * A statement costs a round trip, a transaction and perhaps a write to disk,
 * however little it does. While some are under way, new items queue up; the next
 * statement takes all of them along. An item of a lone thread is sent at once, by
 * itself. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_POSTGRES_COMBINE_H
#define DIBS_STORE_POSTGRES_COMBINE_H

#include "base/clock.h"
#include "base/fifo.h"
#include "base/park.h"
#include "store/lease_args.h"
#include <dibs/types.h>
#include <pthread.h>

struct dibs__pg;
struct dibs__pg_item;

enum { DIBS__PG_BATCH = 48, DIBS__PG_ANSWER_MAX = DIBS__WHO_MAX + 96 };

typedef struct dibs__pg_combiner {
    pthread_mutex_t mutex; /* guards all below, and what is so marked */
    int leaders;           /* threads that send */
    size_t crowd;          /* how many the last of them took along */
    dibsx_fifo queue;      /* of dibs__pg_item */
} dibs__pg_combiner;

/* A request and its outcome. Text is borrowed for the call. */
typedef struct dibs__pg_item {
    dibsx_fifo_node queued;   /* the first member; guarded */
    const dibs__ask *ask;     /* NULL: it is a release, of */
    const dibs__leave *leave; /* ... this */
    const char *who;          /* asks, as dibs__pg_who() has it */

    char answer[DIBS__PG_ANSWER_MAX];
    dibs_status rc;
    dibs_error *err;

    struct dibs__pg_item **in_batch; /* its element there; guarded */
    dibsx_park park;
} dibs__pg_item;

/* The caller owns the struct; end with fini. */
void dibs__pg_combiner_init(dibs__pg_combiner *cb);
void dibs__pg_combiner_fini(dibs__pg_combiner *cb);

/* Sends it and waits. DIBS_OK: item->answer is what the function answered. */
DIBS_MUST_CHECK dibs_status dibs__pg_combine(struct dibs__pg *pg,
                                             dibs__pg_item *item,
                                             dibsx_nsec deadline,
                                             dibs_error *err);

#endif
