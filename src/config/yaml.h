/* yaml.h - YAML text as a tree of nodes that know their line and column.
 *
 * A plain subset: one document; mappings with scalar keys, lists, scalars.
 * Anchors, aliases, tags and repeated keys are refused, so that what is written
 * is what is meant. Size, depth and the number of nodes are bounded. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_CONFIG_YAML_H
#define DIBS_CONFIG_YAML_H

#include <dibs/types.h>

enum {
    DIBS__YAML_SIZE_MAX = 1024 * 1024,
    DIBS__YAML_DEPTH_MAX = 16,
    DIBS__YAML_NODES_MAX = 16384
};

typedef enum dibs__yaml_kind {
    DIBS__YAML_SCALAR,
    DIBS__YAML_MAP,
    DIBS__YAML_LIST
} dibs__yaml_kind;

typedef struct dibs__yaml_node {
    dibs__yaml_kind kind;
    size_t line; /* both count from 1 */
    size_t column;
    char *text;  /* scalar: its text */
    bool quoted; /* scalar: so "null" is a word, not nothing */
    struct dibs__yaml_node *value; /* in a map, what belongs to this key */
    struct dibs__yaml_node
        *child; /* first item of a list, first key of a map */
    struct dibs__yaml_node *next;
} dibs__yaml_node;

/* Loads the YAML library at the first call. On failure *out is NULL and the
 * message begins with "file:line:column: ". An empty document gives NULL and
 * DIBS_OK. Free with dibs__yaml_free(). `file` is used in messages only. */
DIBS_MUST_CHECK dibs_status dibs__yaml_parse(const char *text, size_t len,
                                             const char *file,
                                             dibs__yaml_node **out,
                                             dibs_error *err);
void dibs__yaml_free(dibs__yaml_node *node);

/* True for a scalar that stands for nothing: empty, ~ or null, unquoted. */
bool dibs__yaml_is_null(const dibs__yaml_node *node);

#endif
