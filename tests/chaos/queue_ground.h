/* queue_ground.h - what the processes of the queue ground share: a file that is mapped
 * into memory. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_TESTS_CHAOS_QUEUE_GROUND_H
#define DIBS_TESTS_CHAOS_QUEUE_GROUND_H

#include "ground.h"
#include "record.h"
#include "witness.h"

/* The pool is taken in batches by many, the line one by one: it is serial. */
enum { POOL, LINE, QUEUES };

#define CONTROL "control"

typedef struct control {
    char url[URL_ROOM];
    int64_t ttl_ms;
    bool steps; /* the processes use the steps of the store, not the library */
    uint64_t items;            /* to push; of the line a part of it */
    _Atomic uint64_t next_seq; /* the last item that somebody pushes */
    _Atomic uint64_t line;     /* ... to the line */
    atomic_bool pushed;        /* nothing more is to be pushed */
    atomic_bool ending;        /* ... nor redriven */
    atomic_bool over;
} control;

extern const char *const queue_names[QUEUES];

/* Processes: they take part until they are told to end, and return the exit code. */
int library_consumer(const char *folder, int queue, uint64_t who);
int library_producer(const char *folder, int queue, uint64_t who);
int steps_consumer(const char *folder, int queue, uint64_t who);
int steps_producer(const char *folder, int queue, uint64_t who);

/* Draws up to `most` items to push; 0 when all have been. */
size_t draw_items(control *ct, int queue, pushed *all, size_t most);

/* Work takes a while, mostly a short one: death may come in the middle. */
void do_work(uint64_t *random);

/* queue_choice.c: what is asked for of an item, by its number. Some of the pool's are
 * delayed, and some are dead after a few attempts. */
void choose_push(int queue, pushed *one);

/* Workers have numbers from 1 on, and names made of them: processes of one number have one name. An item for
 * number WORKERS + 1 is for a worker that there is not. 0 is the name "": anybody's. */
enum { WORKERS = 5, WORKER_ROOM = 24 };
uint32_t worker_of(int queue, uint64_t who);
void write_worker(uint32_t worker, char out[WORKER_ROOM]);

/* How a delivery is to end: mostly with an ack. */
void choose_end(int queue, uint64_t *random, effect *one);

/* The reason of a nack or a death, of which the checker makes out who gave it. */
enum { REASON_ROOM = 24 };
void write_reason(const effect *one, char out[REASON_ROOM]);

/* Whether the one that made a dead letter redrives it: by chance. */
bool wants_redrive(const control *ct, uint64_t *random, const effect *one);

#endif
