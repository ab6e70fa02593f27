/* own_store.h - the word that a store is of one user alone. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_CLI_OWN_STORE_H
#define DIBS_CLI_OWN_STORE_H

#include "cli/command.h"

/* For a client that was opened without a URL: says, once for each store, that
 * other users do not see its locks, and what to do; and each time that the
 * environment seems to name another. */
void dibs__own_store_note(const dibs__command *cmd, const dibs_client *cl);

#endif
