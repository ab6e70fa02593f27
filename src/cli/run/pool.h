/* pool.h - several processes that do the same, and one that watches over them. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_CLI_RUN_POOL_H
#define DIBS_CLI_RUN_POOL_H

#include "cli/command.h"

enum { DIBS__POOL_MAX = 256 };

/* Forks `count` workers, before the first thread. Each calls `work` and exits with its
 * code. Passes fatal signals on to them. A worker that a signal has killed is replaced,
 * unless one came; the others stop when a worker exits with another code than 0. Returns
 * when all have ended: 0, or the first code that was another. */
int dibs__pool_run(const dibs__command *cmd, size_t count, dibs__verb_fn *work);

#endif
