/* tree.h - all the processes below one, found through /proc. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_CLI_TREE_H
#define DIBS_CLI_TREE_H

#include <sys/types.h>

typedef struct dibs__tree_count {
    int sent;   /* processes that were sent the signal */
    int denied; /* ... that may not be signalled: setuid programs */
} dibs__tree_count;

/* Sends the signal to every process below `root`, but not to the members of the
 * process group `spare` (0: spares none). What is born meanwhile is missed: who
 * kills a tree repeats this until nothing is left. Only system calls are made,
 * so that it may be used after fork in a process that had threads. */
dibs__tree_count dibs__tree_signal(pid_t root, int number, pid_t spare);

/* Kills all that is below this process and reaps it; returns when nothing is
 * left. What may not be killed is waited for. */
void dibs__tree_sweep(void);

#endif
