/* side_process.h - what the guard and the backstop have in common: processes beside
 * dibs that sleep until a child ends or a moment comes. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_EXEC_SIDE_PROCESS_H
#define DIBS_EXEC_SIDE_PROCESS_H

#include "base/clock.h"
#include "exec/tree_means.h"

typedef struct dibs__side_process {
    int children; /* signalfd for SIGCHLD */
    int timer;    /* on the clock of leases, which counts suspend */
    dibsx_nsec armed_at;
} dibs__side_process;

/* After fork: signals blocked, a name, a process group of its own, and the
 * subreaper of all below. */
void dibs__side_process_become(const char *name);

/* Opens what it waits for, and closes all that dibs has open but the standard
 * descriptors, `sock` (-1: none) and the means. */
bool dibs__side_process_open(dibs__side_process *own,
                             const dibs__tree_means *means, int sock);

/* Sets the timer, if it is not set to that moment already. */
void dibs__side_process_arm(dibs__side_process *own, dibsx_nsec at);

/* Takes in what the two descriptors have to say; the timer is then not set. */
void dibs__side_process_drain(dibs__side_process *own);

#endif
