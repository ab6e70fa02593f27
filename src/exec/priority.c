/* priority.c - being run before others, for those who must act in time.
 *
 * Runs in the guard and the backstop, which sleep until there is something to end:
 * of a real-time priority nothing else suffers for longer than a tree is searched.
 */
/* SPDX-License-Identifier: MIT */
#include "exec/priority.h"

#include <sys/resource.h>

/* The lowest real-time priority is before all that is not real-time. */
enum { REAL_TIME = 1, NICEST = -20 };

void dibs__priority_raise(dibs__priority *old)
{
    struct sched_param param = {.sched_priority = REAL_TIME};
    old->policy = sched_getscheduler(0);
    old->nice = getpriority(PRIO_PROCESS, 0);
    (void)sched_getparam(0, &old->param);
    /* A dibs that was started with a real-time priority has all it needs. */
    if (old->policy == SCHED_FIFO || old->policy == SCHED_RR)
        return;
    if (sched_setscheduler(0, SCHED_RR | SCHED_RESET_ON_FORK, &param) != 0)
        (void)setpriority(PRIO_PROCESS, 0, NICEST);
}

void dibs__priority_restore(const dibs__priority *old)
{
    (void)sched_setscheduler(0, old->policy, &old->param);
    (void)setpriority(PRIO_PROCESS, 0, old->nice);
}
