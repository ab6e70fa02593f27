/* list_verb.h - a verb that lists: as a table, as JSON, or names alone.
 *
 * Verbs differ in their items; the three ways of showing them are the same. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_CLI_LIST_VERB_H
#define DIBS_CLI_LIST_VERB_H

#include "cli/print.h"

typedef enum dibs__shape {
    DIBS__AS_ROWS,  /* `out` is a dibs__table */
    DIBS__AS_JSON,  /* `out` is a dibsx_json, inside an array */
    DIBS__AS_NAMES, /* `out` is NULL: straight to stdout */
    DIBS__SHAPES
} dibs__shape;

typedef struct dibs__listing {
    const char *key; /* of the array in JSON */
    const char *const *heads;
    size_t columns;
    /* Lists everything that the command asks for, in that shape. */
    dibs_status (*list)(const dibs__command *cmd, dibs_client *cl,
                        dibs__shape shape, void *out, dibs_error *err);
} dibs__listing;

/* The body of such a verb. */
int dibs__list(const dibs__command *cmd, const dibs__listing *what);

/* A name on a line of its own. */
void dibs__list_name(const char *name);

#endif
