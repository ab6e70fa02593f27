/* queue_bare.h - queues as bare drivers have them, to measure against.
 *
 * Items are BARE_BYTES long. A failure ends the program. One thread. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_BENCH_QUEUE_BARE_H
#define DIBS_BENCH_QUEUE_BARE_H

#include <stddef.h>

enum { BARE_BYTES = 100, BARE_FLYING = 32 };

typedef struct bare bare;

typedef struct bare_ops {
    /* Connects, and empties what was there. */
    bare *(*open)(const char *url);
    void (*close)(bare *b);

    /* Pushes so many times `batch` items, with `flying` pushes on the way, up to
     * BARE_FLYING. */
    void (*push)(bare *b, int flying, int times, int batch);
    /* Takes `batch` items and acknowledges them; as push. There must be enough. */
    void (*take)(bare *b, int flying, int times, int batch);
} bare_ops;

/* LPUSH; RPOPLPUSH and LREM for each item, the next when the first was answered. */
extern const bare_ops bare_list;
/* XADD; XREADGROUP, then XACK and XDEL together. */
extern const bare_ops bare_stream;
/* INSERT; DELETE of what a SELECT FOR UPDATE SKIP LOCKED finds. */
extern const bare_ops bare_table;
/* The same, by one after the other: each has the row of the queue locked. */
extern const bare_ops bare_turns;

/* How many bytes the server has for everything: by INFO, or by the size of the tables and
 * indexes in the schemas of dibs and of the bare table. */
long long bare_redis_bytes(bare *b);
long long bare_postgres_bytes(bare *b);

/* Processor time of the server since it started. */
double bare_redis_cpu_ms(bare *b);

#endif
