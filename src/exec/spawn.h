/* spawn.h - starting a program below the guard. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_EXEC_SPAWN_H
#define DIBS_EXEC_SPAWN_H

#include "exec/priority.h"
#include "exec/signals.h"
#include <sys/types.h>

typedef struct dibs__spawn {
    char *const *argv;
    char *const *envp;
    const dibs__signals *signals; /* what to restore */
    const dibs__priority *rank;   /* ... NULL: it is as it was */
    int tty;       /* the terminal to be given to its group, or -1 */
    int stdin_fd;  /* becomes its standard input; -1: as it is */
    int cgroup_fd; /* the cgroup to start in; -1: as this process */
    pid_t group;   /* the process group to join; 0: one of its own */
} dibs__spawn;

/* Returns 0 once the program runs, else why it does not (an errno). It is killed
 * when this process dies. Only system calls are made. */
int dibs__spawn_start(const dibs__spawn *start, pid_t *pid);

#endif
