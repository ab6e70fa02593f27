/* changes.h - an operator's changes by the command, with their entries in the trail. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_CLI_CHANGES_H
#define DIBS_CLI_CHANGES_H

#include "cli/command.h"
#include <dibs/client.h>

/* --reason, or NULL. */
const char *dibs__cli_change_reason(const dibs__command *cmd);

/* Before a change that ends or drops something. 0, or the exit code after a message:
 * the trail did not take the entry, and nothing may be changed. */
int dibs__cli_change_begin(const dibs__command *cmd, dibs_client *cl,
                           const char *action, const char *target);

/* After it, with its status. */
void dibs__cli_change_end(const dibs__command *cmd, dibs_client *cl,
                          const char *action, const char *target,
                          dibs_status rc);

/* The same for a change of many items, of which `done` were changed. */
void dibs__cli_change_end_items(const dibs__command *cmd, dibs_client *cl,
                                const char *action, const char *target,
                                uint64_t done, dibs_status rc);

/* After any other change, with its status. `reason` may be NULL. An entry that the
 * trail did not take is said on standard error. */
void dibs__cli_change_made(const dibs__command *cmd, dibs_client *cl,
                           const char *action, const char *target,
                           const char *reason, dibs_status rc);

#endif
