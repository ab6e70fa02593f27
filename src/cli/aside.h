/* aside.h - what the guard and the backstop have in common: processes beside
 * dibs that sleep until a child ends or a moment comes. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_CLI_ASIDE_H
#define DIBS_CLI_ASIDE_H

#include "base/clock.h"
#include "cli/means.h"

typedef struct dibs__aside {
    int children; /* signalfd for SIGCHLD */
    int timer;    /* on the clock of leases, which counts suspend */
    dibsx_nsec armed_at;
} dibs__aside;

/* After fork: signals blocked, a name, a process group of its own, and the
 * subreaper of all below. */
void dibs__aside_become(const char *name);

/* Opens what it waits for, and closes all that dibs has open but the standard
 * descriptors, `sock` (-1: none) and the means. */
bool dibs__aside_open(dibs__aside *own, const dibs__means *means, int sock);

/* Sets the timer, if it is not set to that moment already. */
void dibs__aside_arm(dibs__aside *own, dibsx_nsec at);

/* Takes in what the two descriptors have to say; the timer is then not set. */
void dibs__aside_drain(dibs__aside *own);

#endif
