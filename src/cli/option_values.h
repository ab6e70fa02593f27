/* option_values.h - what each option of a command is worth, and who said so. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_CLI_OPTION_VALUES_H
#define DIBS_CLI_OPTION_VALUES_H

#include "cli/command.h"
#include "cli/options.h"
#include "cli/verbs.h"
#include "config/option_value.h"

struct dibs__command {
    const dibs__verb *verb; /* NULL until it was seen */
    char **operands;        /* ours; the words are argv's */
    int operand_count;
    dibs__option_value settings[DIBS__OPTION_MAX]; /* in the table's order */
};

/* Fills in the defaults. End with dibs__command_fini(). */
void dibs__command_init(dibs__command *cmd);
void dibs__command_fini(dibs__command *cmd);

/* A second one for the same verb with the values of the flags, which borrow from it; NULL:
 * there is no memory. Free after dibs__command_fini() with dibsx_free(). */
dibs__command *dibs__command_again(const dibs__command *cmd);

/* Adds DIBS_* variables and configuration files to what the flags said; see
 * config/config.h. */
DIBS_MUST_CHECK dibs_status dibs__command_configure(dibs__command *cmd,
                                                    dibs_error *err);

/* As dibs__value_put(). */
DIBS_MUST_CHECK dibs_status dibs__option_value_put(
    dibs__command *cmd, const dibs__option *option, const char *text,
    dibs__source source, const char *name, const char *place, dibs_error *err);

const dibs__option_value *
dibs__option_value_of(const dibs__command *cmd, const dibs__option *option);

/* Whether the next child process has the secrets among them. */
void dibs__opt_inherit_secrets(const dibs__command *cmd, bool inherited);

/* True when the verb of this command has the option. */
bool dibs__opt_has(const dibs__command *cmd, const char *name);

#endif
