/* crowd.h - threads of one process that wait for the same thing, and how long it takes
 * until all of them have it. A failure ends the program. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_BENCH_CROWD_H
#define DIBS_BENCH_CROWD_H

#include <dibs/dibs.h>

typedef enum crowd_kind {
    CROWD_BARE,   /* PUBLISH to one that listens and wakes the others */
    CROWD_LATCH,  /* its last count */
    CROWD_BARRIER /* its last party */
} crowd_kind;

enum { CROWD_MAX = 1000 };

typedef struct crowd crowd;

/* Up to CROWD_MAX threads, on one client; CROWD_BARE needs none. Free it with
 * crowd_free(), after all rounds. */
crowd *crowd_new(crowd_kind kind, int threads, size_t rounds, int port,
                 dibs_client *client);
void crowd_free(crowd *cr);

/* The next round: nanoseconds from the deed that they wait for to the last who is
 * awake. */
int64_t crowd_wake(crowd *cr);

#endif
