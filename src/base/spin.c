/* spin.c - whether to look again and again for what is expected, or to sleep. */
/* SPDX-License-Identifier: MIT */
#include "base/spin.h"
#include <sched.h>

/* A longer wait counts as this, so that it is soon forgotten. */
#define LONGEST (4 * DIBSX_SPIN_MAX)

enum { WEIGHT = 8 }; /* the last one counts as an eighth */

int dibsx_processors(void)
{
    cpu_set_t set;
    int count;

    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof(set), &set))
        return 1;
    count = CPU_COUNT(&set);
    return count > 0 ? count : 1;
}

void dibsx_spin_init(dibsx_spin *sp, int processors)
{
    sp->processors = processors;
    sp->usual = 0;
}

dibsx_nsec dibsx_spin_span(const dibsx_spin *sp)
{
    return sp->processors > 1 && sp->usual <= DIBSX_SPIN_MAX ? DIBSX_SPIN_MAX
                                                             : 0;
}

void dibsx_spin_learn(dibsx_spin *sp, dibsx_nsec took)
{
    if (took < 0)
        took = 0;
    if (took > LONGEST)
        took = LONGEST;
    sp->usual += (took - sp->usual) / WEIGHT;
}
