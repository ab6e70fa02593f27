/* freeze.h - stopping a whole tree, so that nothing of it acts or forks while it
 * is being killed. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_CLI_FREEZE_H
#define DIBS_CLI_FREEZE_H

#include <stdbool.h>
#include <sys/types.h>

/* Sends SIGSTOP to all below `root`, until a walk through the tree finds nobody
 * new. False where the kernel does not list children: nothing was done. Only
 * system calls are made. */
bool dibs__tree_freeze(int proc_fd, pid_t root);

#endif
