/* messages.h - messages on standard error, and the exit codes of the command. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_CLI_MESSAGES_H
#define DIBS_CLI_MESSAGES_H

#include <dibs/types.h>

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

struct dibs__command;

/* Prints "dibs: <message>" to stderr. */
void dibs__cli_say(const char *format, ...)
    __attribute__((format(printf, 1, 2)));

/* Prints the error unless -q, and returns the exit code of its status. */
int dibs__cli_fail(const struct dibs__command *cmd, const dibs_error *err);

/* Says that there is no memory for `thing`, a noun with its article, and returns
 * the exit code of that. */
int dibs__cli_nomem(const char *thing);
int dibs__exit_code(dibs_status status);

#endif
