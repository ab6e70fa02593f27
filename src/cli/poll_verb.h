/* poll_verb.h - a verb that looks again and again until it is interrupted. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_CLI_POLL_VERB_H
#define DIBS_CLI_POLL_VERB_H

#include "cli/command.h"

/* One look. 0 to go on, or the exit code. */
typedef int dibs__look_fn(const dibs__command *cmd, dibs_client *cl, void *arg);

/* Opens the store and looks every --interval. Returns the exit code of a look
 * that failed; a signal ends the process. */
int dibs__poll_verb(const dibs__command *cmd, dibs__look_fn *look, void *arg);

/* Says what went wrong with a look. 0 when it may go better next time, else the
 * exit code. */
int dibs__poll_verb_failed(const dibs__command *cmd, const dibs_error *err);

#endif
