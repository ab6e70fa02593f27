/* spin.h - whether to look again and again for what is expected, or to sleep.
 *
 * To be woken takes longer than a server on the same machine needs for an answer.
 * Who has waited for short spans lately looks on for a moment before it sleeps;
 * who has not, or has only one processor, sleeps at once. One thread at a time. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_BASE_SPIN_H
#define DIBS_BASE_SPIN_H

#include "base/clock.h"

/* Nobody looks for longer, nor where it usually takes longer. */
#define DIBSX_SPIN_MAX ((dibsx_nsec)50000)

typedef struct dibsx_spin {
    int processors;
    dibsx_nsec usual; /* span; recent ones count most */
} dibsx_spin;

/* The processors that this process may use, at least 1. */
int dibsx_processors(void);

void dibsx_spin_init(dibsx_spin *sp, int processors);

/* For how long to look before sleeping; 0: not at all. */
dibsx_nsec dibsx_spin_span(const dibsx_spin *sp);

/* It took this long until it came. */
void dibsx_spin_learn(dibsx_spin *sp, dibsx_nsec took);

#endif
