/* queue_ground.h - what the processes of the queue ground share: a file that is mapped
 * into memory. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_TESTS_CHAOS_QUEUE_GROUND_H
#define DIBS_TESTS_CHAOS_QUEUE_GROUND_H

#include "ground.h"
#include "record.h"

/* The pool is taken in batches by many, the line one by one: it is serial. */
enum { POOL, LINE, QUEUES };

#define CONTROL "control"

typedef struct control {
    char url[URL_ROOM];
    int64_t ttl_ms;
    uint64_t items;            /* to push; of the line a part of it */
    _Atomic uint64_t next_seq; /* the last item that somebody pushes */
    _Atomic uint64_t line;     /* ... to the line */
    atomic_bool pushed;        /* nothing more is to be pushed */
    atomic_bool over;
} control;

extern const char *const queue_names[QUEUES];

/* Processes: they take part until they are told to end, and return the exit code. */
int consumer_main(const char *folder, int queue, uint64_t who);
int producer_main(const char *folder, int queue, uint64_t who);

#endif
