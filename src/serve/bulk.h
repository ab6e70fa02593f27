/* bulk.h - how long one request may change things one after the other. Pure.
 *
 * The pool has few threads, and a change of many things would hold one of them as long as
 * it takes. So it ends after this time, its answer says what is left, and the client
 * sends it again. A step of the store that is under way is waited for. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_SERVE_BULK_H
#define DIBS_SERVE_BULK_H

#include "base/clock.h"

enum { DIBS__SERVE_BULK_MS = 2000 };

/* The end of a change that begins now. */
static inline dibsx_nsec dibs__bulk_end(void)
{
    return dibsx_after_ms(dibsx_now(), DIBS__SERVE_BULK_MS);
}

static inline bool dibs__bulk_over(dibsx_nsec end)
{
    return dibsx_now() >= end;
}

#endif
