/* option.h - a row of a table of options: its name, its type, where its value may
 * come from.
 *
 * The library reads settings, which a variable or a configuration file can give
 * (settings.h). The command adds options that only a command line can give, and
 * all that help needs (cli/options.h). */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_CONFIG_OPTION_H
#define DIBS_CONFIG_OPTION_H

#include <dibs/types.h>

typedef enum dibs__opt_type {
    DIBS__FLAG,     /* takes no value; its number counts how often it came */
    DIBS__TEXT,     /* anything */
    DIBS__DURATION, /* 500ms, 30s, 2m, 1h; its number is in milliseconds */
    DIBS__INT,
    DIBS__CHOICE,   /* one of `choices` */
    DIBS__BEGIN,    /* what names begin with: of `max` bytes at most */
    DIBS__REPLICAS, /* async or wait:K; its number is K, or 0 */
} dibs__opt_type;

typedef struct dibs__option {
    const char *name; /* long form, without dashes */
    dibs__opt_type type;
    const char *choices; /* "auto|always|never" */
    int64_t min;         /* for numbers and durations (in ms) */
    int64_t max;
    const char *initial; /* the default, as it would be typed, or NULL */
    const char *env;     /* environment variable, or NULL */
    const char *key;     /* key in the configuration file, or NULL */
    bool secret;         /* never shown whole; "file:PATH" is read */
    bool library;        /* dibs_open() without a URL takes it */

    /* For the command line. */
    const char *aliases; /* further long forms, separated by commas, or NULL */
    char letter;         /* short form, or 0 */
    const char *metavar; /* what stands for the value in help; not for flags */
    const char *otherwise; /* what happens without a value, in words */
    const char *offers;    /* words for completion, where others may be given */
    const char *verbs;     /* "run,state set": they have it; "*": every verb;
                            * NULL: the verbs of its group (cli/options.h) */
    bool many;             /* may be given again; only as a flag */
    bool hidden;           /* left out of help, man pages and completion */
    const char *help;      /* one sentence or two */
} dibs__option;

#define DIBS__MINUTES(n) ((int64_t)(n)*60 * 1000)
#define DIBS__DAYS(n)    (DIBS__MINUTES(60) * 24 * (n))

/* "async" is none, "wait:K" is K (1 to 9). False for any other text. */
bool dibs__replicas_parse(const char *text, uint32_t *replicas);

/* True when the list, separated by `between`, has `word` (`len` bytes) in it.
 * NULL is an empty list. */
bool dibs__list_has(const char *list, char between, const char *word,
                    size_t len);

#endif
