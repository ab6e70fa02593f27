/* options.h - the one table of options.
 *
 * Parsing, help, man pages, completion, configuration files and docs/config.md
 * all read it; an option is added by adding a row. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_CLI_OPTIONS_H
#define DIBS_CLI_OPTIONS_H

#include <dibs/types.h>

typedef enum dibs__opt_type {
    DIBS__FLAG,     /* takes no value; its number counts how often it came */
    DIBS__TEXT,     /* anything */
    DIBS__DURATION, /* 500ms, 30s, 2m, 1h; its number is in milliseconds */
    DIBS__INT,
    DIBS__CHOICE, /* one of `choices` */
} dibs__opt_type;

typedef struct dibs__option {
    const char *name;    /* long form, without dashes */
    const char *aliases; /* further long forms, separated by commas, or NULL */
    char letter;         /* short form, or 0 */
    dibs__opt_type type;
    const char *metavar; /* what stands for the value in help; not for flags */
    const char *choices; /* "auto|always|never" */
    const char *offers; /* words for completion, where others are allowed too */
    int64_t min;        /* for numbers and durations (in ms) */
    int64_t max;
    const char *initial;   /* the default, as it would be typed, or NULL */
    const char *otherwise; /* what happens without a value, in words */
    const char *env;       /* environment variable, or NULL */
    const char *key;       /* key in the configuration file, or NULL */
    const char *verbs;     /* "run,state set": they have it, besides verbs whose
                            * rows name it; "*": every verb; or NULL */
    bool many;             /* may be given again; only as a flag */
    bool secret;           /* never shown whole; "file:PATH" is read */
    bool hidden;           /* left out of help, man pages and completion */
    const char *help;      /* one sentence or two */
} dibs__option;

/* Room for the settings of a command: one per row of the table. */
enum { DIBS__OPTION_MAX = 96 };

extern const dibs__option dibs__options[];
extern const size_t dibs__option_count;

/* The option that `verb` knows by this long name or alias (`len` bytes), or by
 * this letter; NULL when it has none. "" as the verb asks for those that every
 * verb has. */
const dibs__option *
dibs__option_find(const char *verb, const char *name, size_t len);
const dibs__option *dibs__option_letter(const char *verb, char letter);

/* By its key in the configuration file; NULL when there is none. */
const dibs__option *dibs__option_key(const char *key);

bool dibs__option_has_verb(const dibs__option *option, const char *verb);

/* True for those that every verb has. */
bool dibs__option_global(const dibs__option *option);

/* True when the list, separated by `between`, has `word` (`len` bytes) in it.
 * NULL is an empty list. */
bool dibs__list_has(const char *list, char between, const char *word,
                    size_t len);

#endif
