/* spin.h - whether to look again and again for what is expected, or to sleep.
 *
 * To be woken takes longer than a server on an idle machine needs for an answer; on
 * a busy one who looks keeps the server from its processor. So both are tried at
 * times, and what has been quicker lately is done. One thread at a time. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_BASE_SPIN_H
#define DIBS_BASE_SPIN_H

#include "base/clock.h"
#include <stdbool.h>

/* Nobody looks for longer before it sleeps after all. */
#define DIBSX_SPIN_MAX ((dibsx_nsec)50000)

/* One wait in so many is for finding out whether the other way is quicker. */
enum { DIBSX_SPIN_PROBE = 32 };

typedef struct dibsx_spin {
    int processors;
    unsigned waits;
    dibsx_nsec looked; /* spans until it came; recent ones count most, */
    dibsx_nsec slept;  /* ... and 0 is unknown */
} dibsx_spin;

/* The processors that this process may use, at least 1. */
int dibsx_processors(void);

void dibsx_spin_init(dibsx_spin *sp, int processors);

/* Whether to look, in a wait that begins now. */
bool dibsx_spin_begin(dibsx_spin *sp);

/* The wait is over, and took this long. */
void dibsx_spin_end(dibsx_spin *sp, bool looked, dibsx_nsec took);

#endif
