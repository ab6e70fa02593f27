/* fell.h - killing a whole tree, from its root down, before it has grown again.
 */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_CLI_FELL_H
#define DIBS_CLI_FELL_H

#include <stdbool.h>
#include <sys/types.h>

/* Kills all below `root`, until a walk through the tree finds nobody new. False
 * where the kernel does not list children: nothing was done. Only system calls
 * are made. */
bool dibs__tree_fell(int proc_fd, pid_t root);

#endif
