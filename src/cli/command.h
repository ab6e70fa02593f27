/* command.h - what a verb of the command sees: its operands and its options.
 *
 * The tables in cli/verbs.c and cli/options.c make parsing, help, man pages and
 * completion. By the time a verb runs, every option has its value from flag,
 * environment, file or default, checked against its type. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_CLI_COMMAND_H
#define DIBS_CLI_COMMAND_H

#include <dibs/dibs.h>

/* Exit codes. They are an API: scripts rely on them. */
enum {
    DIBS__EXIT_USAGE = 64,
    DIBS__EXIT_UNAVAIL = 69, /* the store is out of reach */
    DIBS__EXIT_INTERNAL = 70,
    DIBS__EXIT_BUSY = 75,     /* held by another, or not granted in time */
    DIBS__EXIT_DENIED = 77,   /* permission or authentication refused */
    DIBS__EXIT_CONFIG = 78,   /* bad configuration or unfit store */
    DIBS__EXIT_LOST = 122,    /* the lease was lost while the command ran */
    DIBS__EXIT_MAX_RUN = 124, /* --max-run ended it */
    DIBS__EXIT_WRAPPER = 125, /* dibs itself failed around the command */
    DIBS__EXIT_NOEXEC = 126,  /* found but cannot be run */
    DIBS__EXIT_NOTFOUND = 127,
    DIBS__EXIT_SIGNAL = 128 /* plus the signal's number */
};

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

/* Opens the client that the configuration asks for, with a log sink on stderr
 * as -q and -v say. On failure prints why and returns the exit code; 0 and
 * *out on success. Close with dibs_close(). */
int dibs__cli_open(const dibs__command *cmd, dibs_client **out);

/* Prints "dibs: <message>" to stderr. */
void dibs__cli_say(const char *format, ...)
    __attribute__((format(printf, 1, 2)));

/* Prints the error unless -q, and returns the exit code of its status. */
int dibs__cli_fail(const dibs__command *cmd, const dibs_error *err);

/* Says that there is no memory for `thing`, a noun with its article, and returns
 * the exit code of that. */
int dibs__cli_nomem(const char *thing);
int dibs__exit_code(dibs_status status);

#endif
