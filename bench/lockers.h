/* lockers.h - many lockers on one thread, with asynchronous calls and an event loop.
 *
 * A failure ends the program. One thread. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_BENCH_LOCKERS_H
#define DIBS_BENCH_LOCKERS_H

#include <dibs/dibs.h>

enum { LOCKERS_MAX = 256 };

typedef struct lockers lockers;

/* So many, each with a name of its own. Free with lockers_free(). */
lockers *lockers_new(dibs_client *client, int count);
void lockers_free(lockers *ls);

/* Each acquires and releases so many times. Returns when all have. */
void lockers_work(lockers *ls, int pairs);

#endif
