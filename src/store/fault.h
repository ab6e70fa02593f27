/* fault.h - the store `fault+URL`: another store, with faults as told.
 *
 * A test tells them by a function (dibs__fault_set). From a command line they
 * are parameters of the URL, which the store within does not see:
 *   fault=     fail, drop_before, drop_after or none (the default)
 *   delay_ms=  how much later a step is begun, not beyond its deadline
 *   step=      which of dibs__step, as "renew"; default: all but open and bell
 *   every=     faulty is each N-th of them; default 1, that is all
 *   seed=      with it, faulty is one in N, chosen by chance from this seed
 * as in fault+sqlite:/srv/x.db?fault=drop_after&step=renew&every=3 */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_FAULT_H
#define DIBS_STORE_FAULT_H

#include "store/store.h"

typedef enum dibs__step {
    DIBS__STEP_OPEN,
    DIBS__STEP_ACQUIRE,
    DIBS__STEP_RENEW,
    DIBS__STEP_RELEASE,
    DIBS__STEP_ACQUIRE_ALL,
    DIBS__STEP_TURN,
    DIBS__STEP_YIELD,
    DIBS__STEP_INSPECT,
    DIBS__STEP_LIST,
    DIBS__STEP_TAKE,
    DIBS__STEP_GET,
    DIBS__STEP_PUT,
    DIBS__STEP_ADD,
    DIBS__STEP_DEL,
    DIBS__STEP_SCAN, /* the list of values */
    DIBS__STEP_APPEND,
    DIBS__STEP_READ, /* of a log */
    DIBS__STEP_NOW,
    DIBS__STEP_AUDIT,
    DIBS__STEP_BELL, /* rings heard; any fault loses them, and drop_after says so */
    DIBS__STEP_COUNT
} dibs__step;

typedef enum dibs__fault_kind {
    DIBS__FAULT_NONE = 0,
    DIBS__FAULT_FAIL,        /* not done, DIBS_UNAVAIL */
    DIBS__FAULT_DROP_BEFORE, /* not done, DIBS_UNKNOWN */
    DIBS__FAULT_DROP_AFTER   /* done, DIBS_UNKNOWN; what only reads is not */
} dibs__fault_kind;

typedef struct dibs__fault {
    dibs__fault_kind kind;
    int64_t delay_ms; /* a delay to the deadline drops the step before */
} dibs__fault;

/* Says what happens to the count-th step of this kind since it was set, counted
 * over all handles of the process. Called on the thread of the step. */
typedef dibs__fault dibs__fault_fn(dibs__step step, uint64_t count, void *arg);

/* Replaces the function; NULL for none. Once this has returned, the one before
 * is not called any more. Not to be called from such a function. */
void dibs__fault_set(dibs__fault_fn *fn, void *arg);

#define DIBS__FAULT_PREFIX "fault+" /* of the scheme of the store within */
extern const dibs__store_ops dibs__fault_ops;

#endif
