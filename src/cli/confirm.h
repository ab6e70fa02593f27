/* confirm.h - asking before something is taken away. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_CLI_CONFIRM_H
#define DIBS_CLI_CONFIRM_H

#include "cli/command.h"

/* 0 when --yes is given or there is a terminal to ask on; else the exit code, after a
 * message. Before the store is asked. */
int dibs__confirm_possible(const dibs__command *cmd);

/* Asks on the terminal. 0 for yes, else the exit code. */
int dibs__confirm(const char *question);

#endif
