/* opts.h - options of the public interface, whose first member is their size. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_BASE_OPTS_H
#define DIBS_BASE_OPTS_H

#include "base/fail.h"

/* Copies options that may come from a caller built against an older, smaller struct, or
 * a newer one: other members are 0. NULL: all are. DIBS_INVALID if their size is not
 * set, as `macro` does ("DIBS_LOCK_OPTS()"). */
dibs_status dibsx_opts_copy(void *out, size_t out_size, const void *given,
                            const char *macro, dibs_error *err);

#endif
