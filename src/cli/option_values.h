/* option_values.h - what each option of a command is worth, and who said so. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_CLI_OPTION_VALUES_H
#define DIBS_CLI_OPTION_VALUES_H

#include "cli/command.h"
#include "cli/options.h"
#include "cli/verbs.h"

/* In order of precedence: a higher one wins. */
typedef enum dibs__source {
    DIBS__FROM_NOTHING,
    DIBS__FROM_DEFAULT,
    DIBS__FROM_FILE,
    DIBS__FROM_ENV,
    DIBS__FROM_FLAG
} dibs__source;

typedef struct dibs__option_value {
    const char *text; /* borrowed from argv, environment or table, or owned */
    int64_t number;   /* flags: how often; durations: milliseconds */
    dibs__source source;
    char *owned;      /* what text points to when it is ours */
    char *place;      /* "path:line:column" when it came from a file; ours */
    const char **all; /* every text, where there may be many; ours, NULL ends */
    size_t count;
} dibs__option_value;

struct dibs__command {
    const dibs__verb *verb; /* NULL until it was seen */
    char **operands;        /* ours; the words are argv's */
    int operand_count;
    dibs__option_value settings[DIBS__OPTION_MAX]; /* in the table's order */
};

/* Fills in the defaults. End with dibs__command_fini(). */
void dibs__command_init(dibs__command *cmd);
void dibs__command_fini(dibs__command *cmd);

/* Checks `text` against the option's type and takes it, unless a higher source
 * has spoken. `name` is how the user wrote the option, for messages; `place`
 * (may be NULL) is where in a file. Text from a file is copied and so is a
 * secret; other text is borrowed. A secret that begins with "file:" is read from there. */
DIBS_MUST_CHECK dibs_status dibs__option_value_put(
    dibs__command *cmd, const dibs__option *option, const char *text,
    dibs__source source, const char *name, const char *place, dibs_error *err);

const dibs__option_value *
dibs__option_value_of(const dibs__command *cmd, const dibs__option *option);

/* True when the verb of this command has the option. */
bool dibs__opt_has(const dibs__command *cmd, const char *name);

/* Reads a file of at most `max` bytes into memory, with a NUL beyond its end.
 * The caller frees *out with dibsx_free(). DIBS_NOTFOUND: no such file. */
DIBS_MUST_CHECK dibs_status dibs__read_file(const char *path, size_t max,
                                            char **out, size_t *len,
                                            dibs_error *err);

#endif
