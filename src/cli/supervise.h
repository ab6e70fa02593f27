/* supervise.h - running the command while its lease is watched. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_CLI_SUPERVISE_H
#define DIBS_CLI_SUPERVISE_H

#include "cli/run_opts.h"
#include "cli/signals.h"

/* Runs the command to its end, and the end of every process it left behind;
 * fills in what became of it. `lock` is held, or NULL when the command runs
 * under a lock held further up. Not DIBS_OK: nothing was started. */
DIBS_MUST_CHECK dibs_status dibs__supervise(const dibs__run_opts *opts,
                                            dibs_lock *lock, char *const *envp,
                                            const dibs__signals *sig,
                                            dibs__outcome *out,
                                            dibs_error *err);

#endif
