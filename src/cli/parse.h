/* parse.h - from argv to a verb, its options and its operands.
 *
 * Options may stand anywhere before "--"; global ones also before the verb. A
 * verb with a tail (`run`) ends them at the first word of its command. A dash
 * alone and a negative number are operands. Long names are not abbreviated, so
 * that a new option never breaks a script. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_CLI_PARSE_H
#define DIBS_CLI_PARSE_H

#include "cli/option_values.h"

/* Fills cmd, which was initialised. DIBS_INVALID: err says what is wrong, in
 * words for the user. The operand count is checked by dibs__parse_operands(),
 * so that --help needs none. */
DIBS_MUST_CHECK dibs_status dibs__parse(dibs__command *cmd, int argc,
                                        char *const *argv, dibs_error *err);
DIBS_MUST_CHECK dibs_status dibs__parse_operands(const dibs__command *cmd,
                                                 dibs_error *err);

/* DIBS_INVALID: `group` ("" for the top) has no such verb; err says so, and which one
 * may be meant. */
dibs_status
dibs__refuse_verb(const char *group, const char *word, dibs_error *err);

#endif
