/* lease_step.h - a lease step as an argument, so that several can be asked for
 * together. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_LEASE_STEP_H
#define DIBS_STORE_LEASE_STEP_H

#include "base/clock.h"
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

#endif
