/* fault_world.h - clients on one store in memory, with faults as told.
 *
 * A world has a store of its own, which every client opened in it shares. Faults
 * are set per kind of step and last until they are set anew. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_FAULT_WORLD_H
#define DIBS_FAULT_WORLD_H

#include "store/fault.h"
#include "world.h"

/* Something that happens during a step. */
typedef void world_event(void *arg);

typedef struct world {
    char url[80];
    dibs_client *keep; /* keeps the store in memory alive; takes no part */
    dibs_client *one;  /* two clients for the test */
    dibs_client *other;
    atomic_int kind[DIBS__STEP_COUNT];
    atomic_int times[DIBS__STEP_COUNT]; /* how many more; negative: all */
    atomic_int then[DIBS__STEP_COUNT];  /* the kind of those after that */
    atomic_int delay_ms[DIBS__STEP_COUNT];
    atomic_int seen[DIBS__STEP_COUNT];
    _Atomic(world_event *) event[DIBS__STEP_COUNT];
    void *event_arg[DIBS__STEP_COUNT]; /* set before `event` */
} world;

int world_setup(void **state);
int world_teardown(void **state);

#define WORLD_TEST(fn)                                                         \
    cmocka_unit_test_setup_teardown(fn, world_setup, world_teardown)

/* A client of the world; the caller closes it. */
dibs_client *world_open(world *w);

/* The next `times` steps of the kind have this fault; negative: all of them. */
void world_fault(world *w, dibs__step step, dibs__fault_kind kind, int times);

/* All that come after those have this one; to be called after world_fault(). */
void world_fault_then(world *w, dibs__step step, dibs__fault_kind kind);
void world_delay(world *w, dibs__step step, int delay_ms);
void world_heal(world *w);

/* The next step of the kind calls `event` on its thread before it is taken. */
void world_during(world *w, dibs__step step, world_event *event, void *arg);

/* How many steps of the kind there have been. */
int world_seen(world *w, dibs__step step);

/* Steps hang in it until it is opened. */
typedef struct gate {
    world *w;
    dibs__step step;
    atomic_int inside;
    atomic_bool open;
} gate;

/* As world_event; arg: the gate. */
void hang_in_gate(void *arg);
void await_at_least(const atomic_int *count, int least);

/* How many hold the name and how many wait; *fence (may be NULL) is that of the
 * last holder. */
void world_count(world *w, const char *name, size_t *holders, size_t *waiters,
                 uint64_t *fence);

#endif
