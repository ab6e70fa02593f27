/* option_value.h - what an option is worth, and who said so. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_CONFIG_OPTION_VALUE_H
#define DIBS_CONFIG_OPTION_VALUE_H

#include "config/option.h"

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
    char *owned; /* what text points to when it is ours */
    char *place; /* "path:line:column" when it came from a file, or the variable
                  * when that is not the option's own; ours */
    char *file;  /* "file:PATH" when that had the secret; ours */
    const char **all; /* every text, where there may be many; ours, NULL ends */
    size_t count;
} dibs__option_value;

/* The rows of a table, and a value for each of them. */
typedef struct dibs__option_set {
    const dibs__option *(*row)(size_t i);
    size_t count;
    dibs__option_value *values; /* in the table's order; the caller's */
} dibs__option_set;

/* Fills in the defaults. End with dibs__values_fini(). */
void dibs__values_init(const dibs__option_set *set);
void dibs__values_fini(const dibs__option_set *set);

/* Checks `text` against the option's type and takes it, unless a higher source
 * has spoken. `name` is how the user wrote the option, for messages; `place`
 * (may be NULL) is where in a file. Text from a file is copied and so is a
 * secret; other text is borrowed. A secret that begins with "file:" is read from there. */
DIBS_MUST_CHECK dibs_status dibs__value_put(
    dibs__option_value *setting, const dibs__option *option, const char *text,
    dibs__source source, const char *name, const char *place, dibs_error *err);

/* true, yes, on or 1; false, no, off or 0. `name` is for the message. */
DIBS_MUST_CHECK dibs_status dibs__flag_parse(const char *text, const char *name,
                                             bool *on, dibs_error *err);

/* Reads a file of at most `max` bytes into memory, with a NUL beyond its end.
 * The caller frees *out with dibsx_free(). DIBS_NOTFOUND: no such file. */
DIBS_MUST_CHECK dibs_status dibs__read_file(const char *path, size_t max,
                                            char **out, size_t *len,
                                            dibs_error *err);

#endif
