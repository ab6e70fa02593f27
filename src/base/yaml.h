/* yaml.h - YAML text as a tree of nodes that know their line and column.
 *
 * A plain subset: one document; mappings with scalar keys, lists, scalars.
 * Anchors, aliases, tags and repeated keys are refused, so that what is written
 * is what is meant. Size, depth and the number of nodes are bounded. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_BASE_YAML_H
#define DIBS_BASE_YAML_H

#include <dibs/types.h>

enum {
    DIBSX_YAML_SIZE_MAX = 1024 * 1024,
    DIBSX_YAML_DEPTH_MAX = 16,
    DIBSX_YAML_NODES_MAX = 16384
};

typedef enum dibsx_yaml_kind {
    DIBSX_YAML_SCALAR,
    DIBSX_YAML_MAP,
    DIBSX_YAML_LIST
} dibsx_yaml_kind;

typedef struct dibsx_yaml_node {
    dibsx_yaml_kind kind;
    size_t line; /* both count from 1 */
    size_t column;
    char *text;  /* scalar: its text */
    bool quoted; /* scalar: so "null" is a word, not nothing */
    struct dibsx_yaml_node *value; /* in a map, what belongs to this key */
    struct dibsx_yaml_node
        *child; /* first item of a list, first key of a map */
    struct dibsx_yaml_node *next;
} dibsx_yaml_node;

/* 0: the bound from above. */
typedef struct dibsx_yaml_limits {
    size_t size; /* bytes of text */
    size_t nodes;
} dibsx_yaml_limits;

/* Loads the YAML library at the first call. On failure *out is NULL and the
 * message begins with "file:line:column: ". An empty document gives NULL and
 * DIBS_OK. Free with dibsx_yaml_free(). `file` is used in messages only; `limits`
 * may be NULL. */
DIBS_MUST_CHECK dibs_status dibsx_yaml_parse(const char *text, size_t len,
                                             const char *file,
                                             const dibsx_yaml_limits *limits,
                                             dibsx_yaml_node **out,
                                             dibs_error *err);

typedef struct dibsx_yaml_place {
    size_t line; /* both count from 1; 0: the failure has no place */
    size_t column;
} dibsx_yaml_place;

/* The same, with the place of a failure beside the message. */
DIBS_MUST_CHECK dibs_status dibsx_yaml_parse_at(const char *text, size_t len,
                                                const dibsx_yaml_limits *limits,
                                                dibsx_yaml_node **out,
                                                dibsx_yaml_place *place,
                                                dibs_error *err);
void dibsx_yaml_free(dibsx_yaml_node *node);

/* True for a scalar that stands for nothing: empty, ~ or null, unquoted. */
bool dibsx_yaml_is_null(const dibsx_yaml_node *node);

#endif
