/* breakers.h - calls behind a breaker. A failure ends the program. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_BENCH_BREAKERS_H
#define DIBS_BENCH_BREAKERS_H

#include <dibs/dibs.h>

/* All of a program are the same breaker. */
dibs_breaker *breaker_new(dibs_client *client, const dibs_breaker_opts *opts);

/* True when the call passed. */
bool breaker_call(dibs_breaker *breaker, bool good);

/* A good call, and a report of it to the store. */
void breaker_report(void *breaker);

#endif
