/* fault.h - the store `fault+URL`: another store, with faults added to its steps.
 *
 * A test chooses them by a function (dibs__fault_set). From a command line they
 * are parameters of the URL, which the store within does not see:
 *   fault=     fail, drop_before, drop_after or none (the default)
 *   delay_ms=  how much later a step is begun, not beyond its deadline
 *   step=      which of dibs__step, as "renew"; default: all but open,
 *              listen and bell
 *   every=     each N-th of these steps is faulty; default 1, that is all
 *   seed=      with it, one step in N is faulty, chosen by chance from this seed
 * as in fault+sqlite:/srv/x.db?fault=drop_after&step=renew&every=3 */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_FAULT_H
#define DIBS_STORE_FAULT_H

#include "store/store.h"

/* Every step of the contract, and those of a store as such. LISTEN:
 * opening the doorbell. BELL: reading notices; any fault loses them, and drop_after reports DIBS__NOTICE_MISSED. */
#define DIBS__FAULT_STEPS(X)                                                   \
    X(open, OPEN)                                                              \
    DIBS__LEASE_STEPS(X)                                                       \
    DIBS__VALUE_STEPS(X)                                                       \
    DIBS__LOG_STEPS(X)                                                         \
    DIBS__TOPIC_STEPS(X)                                                       \
    DIBS__RATE_STEPS(X)                                                        \
    DIBS__METER_STEPS(X)                                                       \
    DIBS__ROSTER_STEPS(X)                                                      \
    DIBS__QUEUE_STEPS(X)                                                       \
    DIBS__QUEUE_ADMIN_STEPS(X)                                                 \
    DIBS__COMMIT_STEPS(X)                                                      \
    X(now, NOW)                                                                \
    X(audit, AUDIT)                                                            \
    X(listen, LISTEN)                                                          \
    X(bell, BELL)

#define DIBS__STEP_ID(step, STEP) DIBS__STEP_##STEP,

typedef enum dibs__step {
    DIBS__FAULT_STEPS(DIBS__STEP_ID) DIBS__STEP_COUNT
} dibs__step;

typedef enum dibs__fault_kind {
    DIBS__FAULT_NONE = 0,
    DIBS__FAULT_FAIL,        /* not done, DIBS_UNAVAIL */
    DIBS__FAULT_DROP_BEFORE, /* not done, DIBS_UNKNOWN */
    DIBS__FAULT_DROP_AFTER /* done, DIBS_UNKNOWN; a step that reads is not done */
} dibs__fault_kind;

typedef struct dibs__fault {
    dibs__fault_kind kind;
    int64_t delay_ms; /* a delay to the deadline drops the step before */
} dibs__fault;

/* Chooses the fault of the count-th step of this kind since the function was set,
 * counted over all handles of the process. Called on the thread of the step. */
typedef dibs__fault dibs__fault_fn(dibs__step step, uint64_t count, void *arg);

/* Replaces the function; NULL for none. Once this has returned, the one before
 * is not called any more. Not to be called from such a function. */
void dibs__fault_set(dibs__fault_fn *fn, void *arg);

#define DIBS__FAULT_PREFIX "fault+" /* of the scheme of the store within */
extern const dibs__store_ops dibs__fault_ops;

#endif
