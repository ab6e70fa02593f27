/* answer.h - whether an answer of a store about a lease is possible. Pure.
 *
 * The core counts validity from spans in answers, so each store checks them here,
 * where it has read them. An impossible answer is DIBS_UNKNOWN: the step may have
 * been done, and the store does not trust that server's connections any further. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_ANSWER_H
#define DIBS_STORE_ANSWER_H

#include "store/lease_args.h"

/* Some time is left, and no more than ask->most_ms; of a grant by hand-off, no more
 * than a claim has. There is a fence. */
DIBS_MUST_CHECK dibs_status dibs__answer_grant(const dibs__ask *ask,
                                               const dibs__answer *ans,
                                               dibs_error *err);

/* The time until the first lease could end is possible, and there is a watermark. */
DIBS_MUST_CHECK dibs_status dibs__answer_busy(const dibs__answer *ans,
                                              dibs_error *err);

/* Some time is left, no more than a lease has, and the fence is not below the one
 * before. */
DIBS_MUST_CHECK dibs_status
dibs__answer_convert(const dibs__conversion *conversion,
                     const dibs__answer *ans, dibs_error *err);

/* After a renewal: the same without the fence. With a ttl of 0, no time need be
 * left. */
DIBS_MUST_CHECK dibs_status dibs__answer_renewal(const dibs__renewal *item,
                                                 dibs_error *err);

#endif
