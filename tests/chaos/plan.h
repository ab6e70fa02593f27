/* plan.h - which faults come when: drawn from the seed alone, so that the same seed
 * gives the same plan whatever happens. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_TESTS_CHAOS_PLAN_H
#define DIBS_TESTS_CHAOS_PLAN_H

#include "ground.h"

/* Faults that were asked for, as "kill,stop"; NULL: all. */
typedef struct wanted {
    const char *names;
    loss lost;   /* those that lose so much, too */
    bool root;   /* those that take root, too */
    bool clocks; /* those that set the boot clock of workers, too */
} wanted;

typedef struct plan {
    uint64_t random;
    const void *table[32]; /* crew_fault or ground_fault */
    size_t count;
    bool of_crew;
    int gap_ms;
    int64_t ttl_ms;
} plan;

typedef struct planned {
    const crew_fault *on_worker; /* either of these */
    const ground_fault *on_store;
    int64_t gap_ms; /* before it */
    int64_t span_ms;
    uint64_t dice;
} planned;

/* The plan of the workers (lane -1), or of a lane of the store. */
void plan_init(plan *pl, const ground *gr, int lane, uint64_t seed,
               const wanted *wt);

/* The next; false when there are no faults in it. */
bool plan_next(plan *pl, planned *out);

/* What may be lost by it. */
loss fault_loss(const ground_fault *ft);

/* Whether the list has the name. */
bool wanted_has(const wanted *wt, const char *name);

#endif
