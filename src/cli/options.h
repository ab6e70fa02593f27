/* options.h - the one table of options.
 *
 * Parsing, help, man pages, completion, configuration files and docs/config.md
 * all read it; an option is added by adding a row. The half of a row that the
 * library reads too is in config/settings.h. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_CLI_OPTIONS_H
#define DIBS_CLI_OPTIONS_H

#include "config/option.h"

/* Room for the settings of a command: one per row of the table. */
enum { DIBS__OPTION_MAX = 128 };

extern const dibs__option dibs__options[];
extern const size_t dibs__option_count;

/* The option that `verb` knows by this long name or alias (`len` bytes), or by
 * this letter; NULL when it has none. "" as the verb asks for those that every
 * verb has. */
const dibs__option *
dibs__option_find(const char *verb, const char *name, size_t len);
const dibs__option *dibs__option_letter(const char *verb, char letter);

bool dibs__option_has_verb(const dibs__option *option, const char *verb);

/* True for those that every verb has. */
bool dibs__option_global(const dibs__option *option);

#endif
