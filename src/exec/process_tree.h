/* process_tree.h - all the processes below one: found, signalled, killed. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_EXEC_PROCESS_TREE_H
#define DIBS_EXEC_PROCESS_TREE_H

#include "exec/tree_means.h"
#include <sys/types.h>

typedef struct dibs__tree_count {
    int sent;   /* processes that were sent the signal */
    int denied; /* ... that may not be signalled: setuid programs */
    bool blind; /* they could not be looked for, or not all of them */
} dibs__tree_count;

/* Sends the signal to every process below `root`, but not to the members of the
 * process group `spare` (0: spares none). A process that is born meanwhile is missed. Only
 * system calls are made, here and below, so that they may be used after fork in a
 * process that had threads. */
dibs__tree_count dibs__tree_signal(const dibs__tree_means *means, pid_t root,
                                   int number, pid_t spare);

/* Kills the command's cgroup, and every process below `root`. Where there is no
 * cgroup and the kernel does not list children, something may be born meanwhile:
 * who kills a tree repeats this until nothing is left. */
dibs__tree_count dibs__tree_kill(const dibs__tree_means *means, pid_t root);

/* Signals the command (`head` > 0), or the process group that it was given (-head),
 * which needs no means. Only while a child of this process is the command or in the
 * group: nobody else reaps it, so the number cannot be another's. False when there is
 * none. */
bool dibs__tree_signal_head(pid_t head, int number);

/* Kills the head and all that is below this process, and reaps it; returns when
 * nothing is left. A process that may not be killed, or not be found, is waited for. */
void dibs__tree_sweep(const dibs__tree_means *means, pid_t head);

/* Kills the children of this process that are none of `known`, and all below them;
 * `sent` is how many were found, the dead that wait to be reaped among them. For a
 * process with several trees below it, each of which has a guard or had one. */
dibs__tree_count dibs__tree_kill_strays(const dibs__tree_means *means,
                                        const pid_t *known, size_t count);

#endif
