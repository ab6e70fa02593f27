/* options.h - rows of options, and looking things up in all of them.
 *
 * Parsing, help, man pages, completion, configuration files and docs/config.md
 * all read the rows. The rows of a group of verbs stand beside its code, as
 * dibs__options_NAME; the list in verbs.c names them. The half of a row that the
 * library reads too is in config/settings.h. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_CLI_OPTIONS_H
#define DIBS_CLI_OPTIONS_H

#include "config/option.h"

/* Room for the settings of a command: one per row. */
enum { DIBS__OPTION_MAX = 320 };

/* The rows of a group of verbs. */
typedef struct dibs__option_rows {
    const char *verbs; /* the verbs of a row that names none, in its form */
    bool shared; /* other verbs may have rows of these by name (.options of
                  * their own row): those that name no verbs */
    const dibs__option *rows;
    size_t count;
} dibs__option_rows;

#define DIBS__OPTION_ROWS(who, table)                                          \
    {                                                                          \
        .verbs = (who), .rows = (table),                                       \
        .count = sizeof(table) / sizeof((table)[0])                            \
    }

#define DIBS__SHARED_ROWS(who, table)                                          \
    {                                                                          \
        .verbs = (who), .shared = true, .rows = (table),                       \
        .count = sizeof(table) / sizeof((table)[0])                            \
    }

#define DIBS__YEAR DIBS__DAYS(366)

#define DIBS__URLS                                                             \
    "sqlite:|redis://|rediss://|redis+unix://|redis-sentinel://|"              \
    "rediss-sentinel://|redis-cluster://|rediss-cluster://|redlock://|"        \
    "postgres://|memory:"

/* Halves that many rows have in common: each row adds the rest. */
/* clang-format off */
#define DIBS__ROW_TEXT(called, shown)                                          \
    .name = (called), .type = DIBS__TEXT, .metavar = (shown)
#define DIBS__ROW_INT(called, shown, least, most)                              \
    .name = (called), .type = DIBS__INT, .metavar = (shown),                   \
    .min = (least), .max = (most)
#define DIBS__ROW_SPAN(called, least, most)                                    \
    .name = (called), .type = DIBS__DURATION, .metavar = "DUR",                \
    .min = (least), .max = (most)
#define DIBS__ROW_CHOICE(called, shown, words)                                 \
    .name = (called), .type = DIBS__CHOICE, .metavar = (shown),                \
    .choices = (words)
#define DIBS__ROW_WAIT                                                         \
    DIBS__ROW_SPAN("wait", 0, DIBS__YEAR), .aliases = "timeout", .letter = 'w'
#define DIBS__ROW_WAIT_LONG                                                    \
    DIBS__ROW_WAIT, .otherwise = "wait without limit"
#define DIBS__ROW_NONBLOCK                                                     \
    .name = "nonblock", .aliases = "nb", .letter = 'n'
#define DIBS__ROW_INTERVAL                                                     \
    DIBS__ROW_SPAN("interval", 10, DIBS__DAYS(1))
#define DIBS__ROW_CONFLICT                                                     \
    DIBS__ROW_INT("conflict-exit-code", "N", 0, 255), .letter = 'E',           \
    .initial = "75"
/* clang-format on */

/* All rows, in the order of help. */
size_t dibs__option_count(void);
const dibs__option *dibs__option_at(size_t i);
size_t dibs__option_index(const dibs__option *option);

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
