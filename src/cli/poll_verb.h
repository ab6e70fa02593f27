/* poll_verb.h - a verb that looks again and again until it is interrupted. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_CLI_POLL_VERB_H
#define DIBS_CLI_POLL_VERB_H

#include "cli/command.h"
#include "exec/signals.h"

enum { DIBS__POLL_ENOUGH = -1 };

/* One look. 0 to go on, DIBS__POLL_ENOUGH to end with success, or the exit code. */
typedef int dibs__look_fn(const dibs__command *cmd, dibs_client *cl, void *arg);

/* Rests between two looks and serves signals. 0 to look again, DIBS__POLL_ENOUGH to
 * end with success, or the signal that ends the process. */
typedef int
dibs__rest_fn(const dibs__signals *sig, int64_t interval_ms, void *arg);

/* Opens the store and looks every --interval. Returns the exit code of a look
 * that failed; a signal ends the process, and so does the end of the reader of
 * stdout. */
int dibs__poll_verb(const dibs__command *cmd, dibs__look_fn *look, void *arg);

/* The same with a rest of the verb's own. */
int dibs__poll_verb_resting(const dibs__command *cmd, dibs__look_fn *look,
                            dibs__rest_fn *rest, void *arg);

/* The usual rest: one interval. */
int dibs__poll_rest(const dibs__signals *sig, int64_t interval_ms, void *arg);

/* Says what went wrong with a look. 0 when it may go better next time, else the
 * exit code. */
int dibs__poll_verb_failed(const dibs__command *cmd, const dibs_error *err);

#endif
