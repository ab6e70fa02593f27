/* quota.h - how much of something each name may have in a second: it fills up with time.
 * Not locked. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_BASE_QUOTA_H
#define DIBS_BASE_QUOTA_H

#include "base/clock.h"
#include <dibs/types.h>

/* The names that asked last, so many of them. */
enum { DIBSX_QUOTAS = 256, DIBSX_QUOTA_NAME_SIZE = 65 };

typedef struct dibsx_quota {
    char name[DIBSX_QUOTA_NAME_SIZE];
    double left;
    dibsx_nsec at; /* when `left` was so much */
} dibsx_quota;

/* Takes one off the quota of a name: `rate` a second, five times as many at once. `all`
 * is DIBSX_QUOTAS of them, zeroed at first. False: there is none left. */
DIBS_MUST_CHECK bool dibsx_quota_take(dibsx_quota *all, const char *name,
                                      unsigned rate, dibsx_nsec now);

#endif
