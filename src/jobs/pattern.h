/* pattern.h - patterns of params: extended regular expressions, with bounds. Pure.
 *
 * A pattern is for the whole text. Patterns that make the C library slow or hungry are refused:
 * references back, and repeats of repeats that multiply. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_JOBS_PATTERN_H
#define DIBS_JOBS_PATTERN_H

#include <dibs/types.h>

/* INVALID: it is none, and err says why. */
DIBS_MUST_CHECK dibs_status dibs__pattern_check(const char *pattern,
                                                dibs_error *err);

/* False also for a pattern that is none. */
bool dibs__pattern_match(const char *pattern, const char *text);

#endif
