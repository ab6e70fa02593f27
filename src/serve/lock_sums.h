/* lock_sums.h - shared statistics of all clients, summed by class of names, as counters
 * that only rise.
 *
 *     the store's counts of each name --> less those of the last reading --> class
 *
 * The store forgets a name a day after its last use, and a reading has the 4,096 most
 * contended names alone. A sum over names would fall then, and a scraper would take that
 * for a restart. Hence only the growth of each name is added.
 *
 * A name that is forgotten here leaves a bit of its hash: when it is read again, its
 * counts have been added before, and are only its baseline. Another name with the same
 * bit loses its first counts, which is better than to add some twice.
 *
 * Any thread. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_SERVE_LOCK_SUMS_H
#define DIBS_SERVE_LOCK_SUMS_H

#include "base/buf.h"
#include "base/clock.h"
#include "serve/buckets.h"
#include "serve/class.h"
#include <dibs/dibs.h>
#include <pthread.h>

enum {
    DIBS__LOCK_CLASSES_MAX = 100, /* names of further ones are "other" */
    DIBS__LOCK_SUMS_BUCKETS = 1024,
    DIBS__LOCK_SUMS_NAMES_MAX = 8192,   /* names to remember */
    DIBS__LOCK_SUMS_FORGOTTEN = 1 << 20 /* bits for those forgotten */
};

/* All that is counted of a name or of a class. */
typedef struct dibs__lock_numbers {
    uint64_t wait[DIBS__SERVE_WAIT_ENDS + 1];
    uint64_t hold[DIBS__SERVE_HOLD_ENDS + 1];
    uint64_t wait_us, hold_us, contended;
} dibs__lock_numbers;

typedef struct dibs__lock_class {
    char name[DIBS__SERVE_CLASS_MAX];
    dibs__lock_numbers all;
    dibs_spans wait, hold; /* of the latest reading, the slowest of each */
} dibs__lock_class;

/* A name as the latest reading that had it. */
typedef struct dibs__lock_seen {
    struct dibs__lock_seen *next; /* in its bucket */
    uint64_t reading;
    bool known; /* what was added of it is `last` */
    dibs__lock_numbers last;
    char name[];
} dibs__lock_seen;

typedef struct dibs__lock_sums {
    const char *rules;     /* of classes; may be NULL */
    pthread_mutex_t mutex; /* for all below; held while the store is read */
    dibs__lock_class
        classes[DIBS__LOCK_CLASSES_MAX + 1]; /* the last: "other" */
    size_t count;                            /* without "other" */
    bool others;                             /* it is used */
    uint64_t dropped; /* names of the latest reading that are in "other" */
    uint64_t reading;
    dibsx_nsec read_at; /* the latest; 0: none */
    dibs__lock_seen *buckets[DIBS__LOCK_SUMS_BUCKETS];
    size_t names;
    uint8_t forgotten[DIBS__LOCK_SUMS_FORGOTTEN / 8];
} dibs__lock_sums;

/* `rules` are those of class.h, borrowed. */
void dibs__lock_sums_init(dibs__lock_sums *sums, const char *rules);
void dibs__lock_sums_fini(dibs__lock_sums *sums);

/* Adds the counts of the store, unless that was done within a second. Blocks for the
 * store. If it is away or has no values, nothing is added. */
void dibs__lock_sums_read(dibs__lock_sums *sums, dibs_client *cl);

/* The parts of a reading: begin, one name, end. Locks: mutex. */
void dibs__lock_sums_begin(dibs__lock_sums *sums);
void dibs__lock_sums_add(dibs__lock_sums *sums, const dibs_name_stats *stats);
void dibs__lock_sums_end(dibs__lock_sums *sums);

/* Appends the metrics; returns how many names are in "other". */
uint64_t dibs__lock_sums_put(dibs__lock_sums *sums, dibsx_buf *out);

#endif
