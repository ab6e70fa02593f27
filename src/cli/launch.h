/* launch.h - starting a program below the guard. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_CLI_LAUNCH_H
#define DIBS_CLI_LAUNCH_H

#include "cli/rank.h"
#include "cli/signals.h"
#include <sys/types.h>

typedef struct dibs__launch {
    char *const *argv;
    char *const *envp;
    const dibs__signals *signals; /* what to restore */
    const dibs__rank *rank;       /* ... NULL: it is as it was */
    int tty;       /* the terminal to be given to its group, or -1 */
    int stdin_fd;  /* becomes its standard input; -1: as it is */
    int cgroup_fd; /* the cgroup to start in; -1: as this process */
    pid_t group;   /* the process group to join; 0: one of its own */
} dibs__launch;

/* Returns 0 once the program runs, else why it does not (an errno). It is killed
 * when this process dies. Only system calls are made. */
int dibs__launch_start(const dibs__launch *start, pid_t *pid);

#endif
