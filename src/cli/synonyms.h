/* synonyms.h - words that people try for options and verbs that have other names
 * here. Pure. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_CLI_SYNONYMS_H
#define DIBS_CLI_SYNONYMS_H

#include <stddef.h>

typedef struct dibs__synonym {
    const char *tried;
    const char *meant;
} dibs__synonym;

/* The first row that fits counts. */
extern const dibs__synonym dibs__option_synonyms[];
extern const size_t dibs__option_synonym_count;
extern const dibs__synonym dibs__verb_synonyms[];
extern const size_t dibs__verb_synonym_count;

/* The option of `verb` that "--TRIED" (`len` bytes) is likely to mean, or NULL. */
const char *dibs__option_meant(const char *verb, const char *tried, size_t len);

/* The word that people try in this group, by a row for verbs; NULL: it is for another
 * group. */
const char *dibs__synonym_word(const dibs__synonym *row, const char *group);

/* The whole name of the verb that "GROUP TRIED" is likely to mean, or NULL; group ""
 * is the top. */
const char *dibs__verb_meant(const char *group, const char *tried);

#endif
