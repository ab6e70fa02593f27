/* durability.h - how many replicas must have a write before it counts. Pure. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_CORE_DURABILITY_H
#define DIBS_CORE_DURABILITY_H

#include <dibs/types.h>

/* Replicas that must acknowledge it: reads "async" (none) or "wait:K"; NULL leaves it at
 * `initial`. */
DIBS_MUST_CHECK dibs_status dibs__durability_read(const char *text,
                                                  uint32_t initial,
                                                  uint32_t *replicas,
                                                  dibs_error *err);

#endif
