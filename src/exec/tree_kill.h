/* tree_kill.h - killing a whole tree, from its root down, before it has grown again.
 */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_EXEC_TREE_KILL_H
#define DIBS_EXEC_TREE_KILL_H

#include <stdbool.h>
#include <sys/types.h>

/* Kills all below `root`, until a walk through the tree finds nobody new. False
 * where the kernel does not list children: nothing was done. Only system calls
 * are made. */
bool dibs__tree_kill_down(int proc_fd, pid_t root);

#endif
