/* yaml.c - the YAML library's events, turned into a tree.
 *
 * The only file that knows libyaml, which is loaded on demand: without a
 * file in YAML neither library nor command touches it. Any thread. */
/* SPDX-License-Identifier: MIT */
#include "base/yaml.h"

#include "base/alloc.h"
#include "base/dynlib.h"
#include "base/fail.h"
#include "base/hash.h"
#include "base/once.h"
#include <stdio.h>
#include <string.h>
#include <yaml.h>

/* The functions that are used; each becomes a slot in `api`. */
#define FUNCTIONS(X)                                                           \
    X(parser_initialize)                                                       \
    X(parser_delete)                                                           \
    X(parser_set_input_string)                                                 \
    X(parser_parse)                                                            \
    X(event_delete)

#define SLOT(name) __typeof__(yaml_##name) *name;
#define CALL(name) {"yaml_" #name, (void **)&api.name},

static struct {
    FUNCTIONS(SLOT)
} api;

typedef struct reader {
    yaml_parser_t parser;
    yaml_event_t event; /* the current one; deleted by the next advance */
    bool have_event;
    size_t depth;
    size_t nodes;
    size_t nodes_max;
    dibsx_yaml_place *place;
    dibs_error *err;
} reader;

/* The keys of the map that is being read, by hash: each must be new. */
typedef struct key_set {
    const dibsx_yaml_node **slots;
    size_t room; /* a power of two, or 0 */
    size_t count;
} key_set;

static dibs_status load_libyaml(dibs_error *err)
{
    static const dibsx_dynlib_call calls[] = {FUNCTIONS(CALL)};

    return dibsx_dynlib_load("libyaml-0.so.2", "libyaml-0-2", calls,
                             sizeof(calls) / sizeof(calls[0]), err);
}

static dibs_status load_driver(dibs_error *err)
{
    static dibsx_once once = DIBSX_ONCE_INIT;

    return dibsx_once_do(&once, load_libyaml, err);
}

static dibs_status
fail_at(const reader *rd, const yaml_mark_t *mark, const char *what)
{
    *rd->place = (dibsx_yaml_place){mark->line + 1, mark->column + 1};
    return dibsx_fail(rd->err, DIBS_INVALID, "%s", what);
}

static dibs_status fail_here(const reader *rd, const char *what)
{
    return fail_at(rd, &rd->event.start_mark, what);
}

/* The remedy of a problem that an unquoted value makes. */
static const char *remedy_of(const char *problem)
{
    if (strstr(problem, "mapping values are not allowed"))
        return "; put a value that has a colon in it in quotes, such as "
               "'workflow:'";
    if (strstr(problem, "cannot start any token"))
        return "; put a value that begins with this character in quotes";
    return "";
}

static dibs_status advance(reader *rd)
{
    char text[216];
    const char *problem;

    if (rd->have_event)
        api.event_delete(&rd->event);
    rd->have_event = false;
    if (!api.parser_parse(&rd->parser, &rd->event)) {
        problem = rd->parser.problem ? rd->parser.problem : "malformed YAML";
        snprintf(text, sizeof(text), "%s%s", problem, remedy_of(problem));
        return fail_at(rd, &rd->parser.problem_mark, text);
    }
    rd->have_event = true;
    return DIBS_OK;
}

static dibsx_yaml_node *node_new(const reader *rd, dibsx_yaml_kind kind)
{
    dibsx_yaml_node *node = dibsx_zalloc(sizeof(*node));

    if (!node)
        return NULL;
    node->kind = kind;
    node->line = rd->event.start_mark.line + 1;
    node->column = rd->event.start_mark.column + 1;
    return node;
}

void dibsx_yaml_free(dibsx_yaml_node *node)
{
    while (node) {
        dibsx_yaml_node *next = node->next;

        dibsx_yaml_free(node->value);
        dibsx_yaml_free(node->child);
        if (node->text) /* it may have a password in it */
            explicit_bzero(node->text, strlen(node->text));
        dibsx_free(node->text);
        dibsx_free(node);
        node = next;
    }
}

static dibs_status read_scalar(reader *rd, dibsx_yaml_node **out)
{
    const char *text = (const char *)rd->event.data.scalar.value;
    dibsx_yaml_node *node;

    if (++rd->nodes > rd->nodes_max)
        return fail_here(rd, "too many entries");
    if (rd->event.data.scalar.anchor)
        return fail_here(rd, "anchors are not supported");
    if (rd->event.data.scalar.tag)
        return fail_here(rd, "tags are not supported");
    if (strlen(text) != rd->event.data.scalar.length)
        return fail_here(rd, "a zero byte in the text");
    node = node_new(rd, DIBSX_YAML_SCALAR);
    if (node)
        node->text = dibsx_strdup(text);
    if (!node || !node->text) {
        dibsx_yaml_free(node);
        return dibsx_nomem(rd->err, "the tree of the file");
    }
    node->quoted = rd->event.data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
    *out = node;
    return DIBS_OK;
}

static dibs_status read_node(reader *rd, dibsx_yaml_node **out);

static dibs_status read_list(reader *rd, dibsx_yaml_node *list)
{
    dibsx_yaml_node **end = &list->child;
    dibs_status rc = advance(rd);

    while (rc == DIBS_OK && rd->event.type != YAML_SEQUENCE_END_EVENT) {
        rc = read_node(rd, end);
        if (rc == DIBS_OK) {
            end = &(*end)->next;
            rc = advance(rd);
        }
    }
    return rc;
}

/* Where a key is, or where it would be. */
static const dibsx_yaml_node **find_slot(const key_set *keys, const char *text)
{
    size_t i = dibsx_hash_text(text) & (keys->room - 1);

    while (keys->slots[i] && strcmp(keys->slots[i]->text, text) != 0)
        i = (i + 1) & (keys->room - 1);
    return &keys->slots[i];
}

/* At most half of the slots are in use. */
static bool make_room(key_set *keys)
{
    key_set larger = {.room = keys->room ? keys->room * 2 : 16};

    if (keys->count * 2 < keys->room)
        return true;
    larger.slots = dibsx_zalloc_n(larger.room, sizeof(larger.slots[0]));
    if (!larger.slots)
        return false;
    for (size_t i = 0; i < keys->room; i++)
        if (keys->slots[i])
            *find_slot(&larger, keys->slots[i]->text) = keys->slots[i];
    larger.count = keys->count;
    dibsx_free(keys->slots);
    *keys = larger;
    return true;
}

static dibs_status read_key(reader *rd, key_set *keys, dibsx_yaml_node **end)
{
    const dibsx_yaml_node **slot;
    dibs_status rc;

    if (rd->event.type != YAML_SCALAR_EVENT)
        return fail_here(rd, "a key must be plain text");
    rc = read_scalar(rd, end);
    if (rc != DIBS_OK)
        return rc;
    if (!make_room(keys))
        return dibsx_nomem(rd->err, "the tree of the file");
    slot = find_slot(keys, (*end)->text);
    if (*slot)
        return fail_here(rd, "this key was given before");
    *slot = *end;
    keys->count++;
    return DIBS_OK;
}

static dibs_status read_map(reader *rd, dibsx_yaml_node *map)
{
    dibsx_yaml_node **end = &map->child;
    key_set keys = {.room = 0};
    dibs_status rc = advance(rd);

    while (rc == DIBS_OK && rd->event.type != YAML_MAPPING_END_EVENT) {
        rc = read_key(rd, &keys, end);
        if (rc == DIBS_OK)
            rc = advance(rd);
        if (rc == DIBS_OK)
            rc = read_node(rd, &(*end)->value);
        if (rc == DIBS_OK) {
            end = &(*end)->next;
            rc = advance(rd);
        }
    }
    dibsx_free(keys.slots);
    return rc;
}

/* A map or a list. On failure the caller frees what is in *out so far. */
static dibs_status read_collection(reader *rd, dibsx_yaml_node **out)
{
    bool map = rd->event.type == YAML_MAPPING_START_EVENT;
    yaml_char_t *anchor = map ? rd->event.data.mapping_start.anchor
                              : rd->event.data.sequence_start.anchor;
    yaml_char_t *tag = map ? rd->event.data.mapping_start.tag
                           : rd->event.data.sequence_start.tag;
    dibs_status rc;

    if (++rd->nodes > rd->nodes_max)
        return fail_here(rd, "too many entries");
    if (anchor)
        return fail_here(rd, "anchors are not supported");
    if (tag)
        return fail_here(rd, "tags are not supported");
    if (rd->depth == DIBSX_YAML_DEPTH_MAX)
        return fail_here(rd, "nested too deeply");
    *out = node_new(rd, map ? DIBSX_YAML_MAP : DIBSX_YAML_LIST);
    if (!*out)
        return dibsx_nomem(rd->err, "the tree of the file");
    rd->depth++;
    rc = map ? read_map(rd, *out) : read_list(rd, *out);
    rd->depth--;
    return rc;
}

static dibs_status read_node(reader *rd, dibsx_yaml_node **out)
{
    switch (rd->event.type) {
    case YAML_SCALAR_EVENT:
        return read_scalar(rd, out);
    case YAML_MAPPING_START_EVENT:
    case YAML_SEQUENCE_START_EVENT:
        return read_collection(rd, out);
    case YAML_ALIAS_EVENT:
        return fail_here(rd, "aliases are not supported");
    default:
        return fail_here(rd, "a value was expected here");
    }
}

/* stream start, [document start, node, document end], stream end. */
static dibs_status read_stream(reader *rd, dibsx_yaml_node **out)
{
    dibs_status rc = advance(rd);

    if (rc == DIBS_OK)
        rc = advance(rd);
    if (rc != DIBS_OK || rd->event.type == YAML_STREAM_END_EVENT)
        return rc;
    rc = advance(rd);
    if (rc == DIBS_OK)
        rc = read_node(rd, out);
    if (rc == DIBS_OK)
        rc = advance(rd);
    if (rc == DIBS_OK)
        rc = advance(rd);
    if (rc == DIBS_OK && rd->event.type != YAML_STREAM_END_EVENT)
        rc = fail_here(rd, "a second document; one is allowed");
    return rc;
}

dibs_status
dibsx_yaml_parse_at(const char *text, size_t len,
                    const dibsx_yaml_limits *limits, dibsx_yaml_node **out,
                    dibsx_yaml_place *place, dibs_error *err)
{
    size_t size_max =
        limits && limits->size ? limits->size : DIBSX_YAML_SIZE_MAX;
    reader rd = {.place = place,
                 .nodes_max = limits && limits->nodes ? limits->nodes
                                                      : DIBSX_YAML_NODES_MAX,
                 .err = err};
    dibsx_yaml_node *root = NULL;
    dibs_status rc;

    *out = NULL;
    *place = (dibsx_yaml_place){0};
    if (len > size_max) {
        *place = (dibsx_yaml_place){1, 1};
        return dibsx_fail(err, DIBS_INVALID,
                          "the file is larger than %zu bytes", size_max);
    }
    rc = load_driver(err);
    if (rc != DIBS_OK)
        return rc;
    if (!api.parser_initialize(&rd.parser))
        return dibsx_nomem(err, "the reader of the file");
    api.parser_set_input_string(&rd.parser, (const unsigned char *)text, len);
    rc = read_stream(&rd, &root);
    if (rc == DIBS_OK) {
        *out = root;
        root = NULL;
    }
    if (rd.have_event)
        api.event_delete(&rd.event);
    api.parser_delete(&rd.parser);
    dibsx_yaml_free(root);
    return rc;
}

dibs_status dibsx_yaml_parse(const char *text, size_t len, const char *file,
                             const dibsx_yaml_limits *limits,
                             dibsx_yaml_node **out, dibs_error *err)
{
    dibsx_yaml_place place;
    dibs_error why = {0};
    dibs_status rc = dibsx_yaml_parse_at(text, len, limits, out, &place, &why);

    if (rc == DIBS_OK)
        return rc;
    if (rc != DIBS_INVALID || place.line == 0) {
        if (err)
            *err = why;
        return rc;
    }
    return dibsx_fail(err, rc, "%s:%zu:%zu: %s", file, place.line, place.column,
                      why.message);
}

bool dibsx_yaml_is_null(const dibsx_yaml_node *node)
{
    return node->kind == DIBSX_YAML_SCALAR && !node->quoted &&
           (strcmp(node->text, "") == 0 || strcmp(node->text, "~") == 0 ||
            strcmp(node->text, "null") == 0);
}
