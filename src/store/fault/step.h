/* step.h - what the steps of the fault store share: the fault of each, chosen before it
 * begins. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_FAULT_STEP_H
#define DIBS_STORE_FAULT_STEP_H

#include "base/fail.h"
#include "base/rand.h"
#include "store/fault.h"
#include <pthread.h>

/* The fault that the parameters of the URL ask for. */
typedef struct dibs__fault_rule {
    dibs__fault fault;
    dibs__step step; /* DIBS__STEP_COUNT: all but open, listen and bell */
    uint64_t every;
    bool by_chance;
} dibs__fault_rule;

typedef struct dibs__fault_store {
    dibs__store base;
    dibs__store *within;
    dibs__fault_rule rule;
    pthread_mutex_t mutex; /* for what follows */
    uint64_t count;        /* steps that the rule concerns */
    dibsx_prng prng;
} dibs__fault_store;

static inline dibs__fault_store *dibs__fault_of(dibs__store *st)
{
    return (dibs__fault_store *)st;
}

/* Runs before each step. DIBS_OK: do it; *after: do it and lose the answer. */
dibs_status
dibs__fault_begin(dibs__fault_store *fs, dibs__step step, dibsx_nsec deadline,
                  bool *after, dibs_error *err);

/* The same for a step that only reads: there is no difference between the two
 * ways to lose an answer, and nothing must reach the caller. */
dibs_status dibs__fault_begin_read(dibs__fault_store *fs, dibs__step step,
                                   dibsx_nsec deadline, dibs_error *err);

dibs_status dibs__fault_lose_answer(dibs_error *err);

extern const dibs__queue_ops dibs__fault_queue_ops;
extern const dibs__queue_admin_ops dibs__fault_queue_admin_ops;
extern const dibs__commit_ops dibs__fault_commit_ops;

#endif
