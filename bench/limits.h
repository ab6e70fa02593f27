/* limits.h - limits that are never reached. A failure ends the program. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_BENCH_LIMITS_H
#define DIBS_BENCH_LIMITS_H

#include <dibs/dibs.h>

/* `chunk` as in dibs_limit_opts. */
dibs_limit *limit_new(dibs_client *client, const char *name, int64_t chunk);

/* Takes one token. */
void limit_take(void *limit);

#endif
