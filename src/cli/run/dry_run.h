/* dry_run.h - `dibs run --dry-run`: what a run would do, without doing it. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_CLI_RUN_DRY_RUN_H
#define DIBS_CLI_RUN_DRY_RUN_H

#include "cli/run/options.h"

/* The state of a name for one request. */
typedef enum dibs__dry_state {
    DIBS__DRY_FREE,
    DIBS__DRY_NESTED, /* held further up the tree, and enough */
    DIBS__DRY_BUSY,
    DIBS__DRY_OTHER /* in use as another kind: refused */
} dibs__dry_state;

/* The answer that the store would give to the request now. Pure. */
dibs__dry_state
dibs__dry_run_judge(const dibs_lease_info *info, const dibs_lock_opts *asked);

/* Prints the store, the names, the settings and what would be done; takes no
 * lock. The exit code is that of a run as far as it is known now: 0 when the
 * command would be started, or skipped. */
int dibs__dry_run(const dibs__command *cmd, const dibs__run_opts *opts);

#endif
