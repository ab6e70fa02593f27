/* json_read.h - a strict JSON reader: text in, a tree of nodes out.
 *
 * RFC 8259 and no more: one value, no comments, no trailing commas, UTF-8 only, no
 * unpaired surrogates. Depth and members are bounded, and a key that comes twice
 * in an object is refused, for two readers might take different ones. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_BASE_JSON_READ_H
#define DIBS_BASE_JSON_READ_H

#include <dibs/types.h>

enum { DIBSX_JSON_DEPTH_MAX = 32, DIBSX_JSON_MEMBERS_MAX = 256 };

typedef enum dibsx_json_kind {
    DIBSX_JSON_NULL,
    DIBSX_JSON_BOOL,
    DIBSX_JSON_NUMBER,
    DIBSX_JSON_TEXT,
    DIBSX_JSON_LIST,
    DIBSX_JSON_MAP
} dibsx_json_kind;

typedef struct dibsx_json_node {
    dibsx_json_kind kind;
    bool truth;       /* of a BOOL */
    bool whole;       /* NUMBER: `integer` is exactly its value */
    int64_t integer;  /* 2000, 2000.0 and 2e3 are all whole */
    double real;      /* NUMBER: the nearest there is */
    const char *text; /* TEXT: decoded, with a NUL beyond its end */
    size_t len;       /* ... which may have NULs in it too */
    const char *key;  /* in a MAP, what it is under */
    size_t key_len;
    struct dibsx_json_node *child; /* first of a LIST or a MAP */
    struct dibsx_json_node *next;
} dibsx_json_node;

typedef struct dibsx_json_doc {
    dibsx_json_node *root; /* NULL when nothing was read */
    char *texts;           /* what the nodes point to */
} dibsx_json_doc;

/* Reads `len` bytes. DIBS_INVALID: err says what is wrong and at which byte, and
 * `doc` is empty. Free with dibsx_json_doc_fini(). */
DIBS_MUST_CHECK dibs_status dibsx_json_read(const char *text, size_t len,
                                            dibsx_json_doc *doc,
                                            dibs_error *err);
void dibsx_json_doc_fini(dibsx_json_doc *doc);

/* The value under a key; NULL when there is none, or `map` is no MAP. */
const dibsx_json_node *
dibsx_json_get(const dibsx_json_node *map, const char *key);

#endif
