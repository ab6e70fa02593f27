/* answer.h - whether what a store answers about a lease can be so. Pure.
 *
 * The core counts validity from spans that others tell it, so each store checks
 * them here, where it has read them. What cannot be so is DIBS_UNKNOWN: the step may
 * have been done, and who answers such things is not believed further. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_ANSWER_H
#define DIBS_STORE_ANSWER_H

#include "store/lease_args.h"

/* Something is left, and no more than ask->most_ms; what was handed on stands for a
 * claim. There is a fence. */
DIBS_MUST_CHECK dibs_status dibs__answer_grant(const dibs__ask *ask,
                                               const dibs__answer *ans,
                                               dibs_error *err);

/* The time until the first holder could end is one, and there is a watermark. */
DIBS_MUST_CHECK dibs_status dibs__answer_busy(const dibs__answer *ans,
                                              dibs_error *err);

/* Something is left, for no longer than leases are, and the fence is not below that
 * of before. */
DIBS_MUST_CHECK dibs_status
dibs__answer_convert(const dibs__conversion *conversion,
                     const dibs__answer *ans, dibs_error *err);

/* Of one that was renewed: the same without the fence. With a ttl of 0 nothing need
 * be left. */
DIBS_MUST_CHECK dibs_status dibs__answer_renewal(const dibs__renewal *item,
                                                 dibs_error *err);

#endif
