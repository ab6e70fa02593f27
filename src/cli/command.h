/* command.h - what a verb of the command sees: its operands and its options.
 *
 * The rows of verbs and options (cli/verbs.h) make parsing, help, man pages and
 * completion. By the time a verb runs, every option has its value from flag,
 * environment, file or default, checked against its type. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_CLI_COMMAND_H
#define DIBS_CLI_COMMAND_H

#include "cli/messages.h"
#include <dibs/dibs.h>

typedef struct dibs__command dibs__command;

/* A verb's body. The result is the exit code. */
typedef int dibs__verb_fn(const dibs__command *cmd);

/* Operands after the options, NULL at the end; for `run` this includes NAME and
 * the command with its arguments ("--" removed). */
char *const *dibs__operands(const dibs__command *cmd);
int dibs__operand_count(const dibs__command *cmd);

/* Options by their long name. Asking for one that the verb does not have is a
 * bug and aborts. Text is borrowed from the command; what has neither been given
 * nor a default is NULL, and -1 as a number. A flag as a number is how often it
 * was given. Given means by flag, environment or file. */
bool dibs__opt_flag(const dibs__command *cmd, const char *name);
const char *dibs__opt_text(const dibs__command *cmd, const char *name);
int64_t dibs__opt_ms(const dibs__command *cmd, const char *name);
int64_t dibs__opt_int(const dibs__command *cmd, const char *name);
bool dibs__opt_given(const dibs__command *cmd, const char *name);

/* Every text of an option that may be given again, in order; NULL ends. */
const char *const *dibs__opt_all(const dibs__command *cmd, const char *name);

/* The URL of the store that the configuration asks for. */
const char *dibs__cli_url(const dibs__command *cmd);

/* How much is logged: -v adds to what --log-level asks for, and takes nothing
 * away. */
dibs_log_level dibs__cli_log_level(const dibs__command *cmd);

/* Opens the client that the configuration asks for, with a log sink on stderr
 * as -q and -v say. On failure prints why and returns the exit code; 0 and
 * *out on success. Close with dibs_close(). */
int dibs__cli_open(const dibs__command *cmd, dibs_client **out);

/* The same for a store that may not be up yet: waits for it at most wait_ms, or
 * makes no contact, so that an acquire waits for it (lazy). */
int dibs__cli_open_waiting(const dibs__command *cmd, int64_t wait_ms,
                           dibs_client **out);
int dibs__cli_open_lazy(const dibs__command *cmd, dibs_client **out);

#endif
