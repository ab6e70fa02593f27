/* lease_step.h - a lease step as an argument, so that several can be asked for
 * together; and releases for which nobody waits. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_LEASE_STEP_H
#define DIBS_STORE_LEASE_STEP_H

#include "base/clock.h"
#include "store/lease.h"
#include "store/lease_args.h"

/* The most that are asked for together. */
enum { DIBS__STEPS_MAX = 64 };

/* An acquire, or a release. The texts are the caller's. */
typedef struct dibs__lease_step {
    bool leaves;       /* a release */
    dibs__ask ask;     /* else */
    dibs__leave leave; /* leaves */
    dibsx_nsec deadline;

    dibs_status rc;   /* out, as that of the step alone */
    dibs__answer ans; /* out: of an acquire */
    dibs_error *err;  /* its detail goes here; may be NULL */
} dibs__lease_step;

typedef struct dibs__sent dibs__sent; /* the store's own */

typedef struct dibs__leave_ops {
    /* Sends a release and does not wait, also not for room to send. A step that begins
     * afterwards, without replicas to wait for, is done after it unless it is not done
     * at all. `leave` and its texts are borrowed until the end, which must come before
     * the store is closed. NULL: nothing was sent. */
    dibs__sent *(*post)(struct dibs__store *st, const dibs__leave *leave,
                        dibsx_nsec deadline);

    /* Its end: *rc as that of release(), or DIBS_STALE: it was not done. False when
     * the answer is not in; with `waits` it waits for that. True frees it. */
    bool (*end)(struct dibs__store *st, dibs__sent *sent, bool waits,
                dibs_status *rc, dibs_error *err);
} dibs__leave_ops;

#endif
