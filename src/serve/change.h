/* change.h - the difference of two pictures: grants, ends and waits of single parties.
 * Pure.
 *
 * A hold or a wait that is shorter than the step of the look can be missing. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_SERVE_CHANGE_H
#define DIBS_SERVE_CHANGE_H

#include "serve/look.h"

typedef enum dibs__serve_change_kind {
    DIBS__SERVE_QUEUED,   /* it waits now */
    DIBS__SERVE_ACQUIRED, /* it holds now */
    DIBS__SERVE_RELEASED, /* it held before, and had time left */
    DIBS__SERVE_EXPIRED,  /* it held before, and its time was over */
    DIBS__SERVE_GAVE_UP   /* it waited before, and does not hold now */
} dibs__serve_change_kind;

typedef struct dibs__serve_change {
    dibs__serve_change_kind kind;
    const dibs_lease_info *row; /* that has the party */
    const dibs_party *party;
    int64_t waited_ms; /* of a grant; -1: it was not seen to wait */
    size_t place;      /* of a wait, from 1 on */
} dibs__serve_change;

typedef void dibs__serve_change_fn(void *arg, const dibs__serve_change *change);

/* Calls `each` for every change, name by name; the ends of a name come first. Without
 * a picture before all parties are new. Names behind the end of a picture that is not
 * complete are left out: nobody knows whether the store had them. */
void dibs__serve_compare(const dibs__serve_picture *before,
                         const dibs__serve_picture *now,
                         dibs__serve_change_fn *each, void *arg);

/* "acquired" and so on. */
const char *dibs__serve_change_text(dibs__serve_change_kind kind);

#endif
