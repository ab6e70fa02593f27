/* crowd.h - threads of some processes that wait for the same thing, and how long it takes
 * until all of them have it.
 *
 * All crowds of a program are made before the first of them wakes, and before it opens a
 * client: their processes are its children. A failure ends the program. One thread. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_BENCH_CROWD_H
#define DIBS_BENCH_CROWD_H

#include <dibs/dibs.h>

typedef enum crowd_kind {
    CROWD_BARE,   /* PUBLISH to one of each process, which wakes its others */
    CROWD_LATCH,  /* its last count */
    CROWD_BARRIER /* its last party */
} crowd_kind;

enum { CROWD_MAX = 5000, CROWD_PROCESSES = 100 };

typedef struct crowd_size {
    int processes; /* each with one client */
    int threads;   /* in all; up to CROWD_MAX */
    size_t rounds;
} crowd_size;

/* A round, in nanoseconds. */
typedef struct crowd_times {
    int64_t
        heard; /* from the deed that they wait for to the first thread that is
                        awake, in the last process */
    int64_t last; /* to the last thread */
    int64_t
        arrived; /* a barrier: from the start of all to the arrival of the last but
                        one party */
    long long commands; /* a barrier on Redis: of all parties in the round */
} crowd_times;

typedef struct crowd crowd;

/* `port`: of the Redis server at `url`; 0: it is another store, which CROWD_BARE cannot
 * use. Free it with crowd_free(), after all rounds. */
crowd *
crowd_new(crowd_kind kind, const crowd_size *size, const char *url, int port);
void crowd_free(crowd *cr);

/* The next round. */
void crowd_wake(crowd *cr, crowd_times *out);

#endif
