/* spin.c - whether to look again and again for what is expected, or to sleep. */
/* SPDX-License-Identifier: MIT */
#include "base/spin.h"
#include <sched.h>

/* A longer wait counts as this, so that it is soon forgotten. */
#define LONGEST (4 * DIBSX_SPIN_MAX)

enum {
    WEIGHT = 8, /* the last span counts as an eighth, */
    GAIN = 8    /* ... and an eighth is the least for which it pays to look */
};

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
    *sp = (dibsx_spin){.processors = processors};
}

bool dibsx_spin_begin(dibsx_spin *sp)
{
    bool pays = sp->looked < sp->slept - sp->slept / GAIN;

    if (sp->processors < 2)
        return false;
    return ++sp->waits % DIBSX_SPIN_PROBE == 0 ? !pays : pays;
}

void dibsx_spin_end(dibsx_spin *sp, bool looked, dibsx_nsec took)
{
    dibsx_nsec *usual = looked ? &sp->looked : &sp->slept;

    if (took < 1)
        took = 1;
    if (took > LONGEST)
        took = LONGEST;
    *usual += *usual == 0 ? took : (took - *usual) / WEIGHT;
}
