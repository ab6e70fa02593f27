/* job_from_json.c - reads a definition from the JSON that the store keeps. Pure.
 *
 * The JSON becomes nodes as a file has them, so that there is one reader. */
/* SPDX-License-Identifier: MIT */
#include "base/fail.h"
#include "base/json_read.h"
#include "jobs/job_build.h"
#include "jobs/job_json.h"
#include <stdio.h>
#include <string.h>

static dibsx_yaml_node *make_node(dibs__arena *arena, dibsx_yaml_kind kind)
{
    dibsx_yaml_node *node = dibs__arena_take(arena, 1, sizeof(*node));

    if (node) {
        node->kind = kind;
        node->line = node->column = 1;
    }
    return node;
}

/* NULL: a NUL in the text, or no memory. */
static dibsx_yaml_node *
make_scalar(dibs__arena *arena, const char *text, size_t len, bool quoted)
{
    dibsx_yaml_node *node = make_node(arena, DIBSX_YAML_SCALAR);

    if (!node || strlen(text) != len)
        return NULL;
    node->text = dibs__arena_text(arena, text);
    node->quoted = quoted;
    return node->text ? node : NULL;
}

static dibsx_yaml_node *convert(dibs__arena *arena, const dibsx_json_node *js);

static dibsx_yaml_node *
convert_members(dibs__arena *arena, const dibsx_json_node *js)
{
    bool map = js->kind == DIBSX_JSON_MAP;
    dibsx_yaml_node *out =
        make_node(arena, map ? DIBSX_YAML_MAP : DIBSX_YAML_LIST);
    dibsx_yaml_node **end = out ? &out->child : NULL;

    if (!out)
        return NULL;
    for (const dibsx_json_node *at = js->child; at; at = at->next) {
        dibsx_yaml_node *value = convert(arena, at);

        *end = map ? make_scalar(arena, at->key, at->key_len, true) : value;
        if (!*end || !value)
            return NULL;
        if (map)
            (*end)->value = value;
        end = &(*end)->next;
    }
    return out;
}

/* Depth is bounded by the reader of JSON. */
static dibsx_yaml_node *convert(dibs__arena *arena, const dibsx_json_node *js)
{
    char number[32];

    switch (js->kind) {
    case DIBSX_JSON_NULL:
        return make_scalar(arena, "null", 4, false);
    case DIBSX_JSON_BOOL:
        return make_scalar(arena, js->truth ? "yes" : "no", js->truth ? 3 : 2,
                           false);
    case DIBSX_JSON_NUMBER:
        if (!js->whole)
            return NULL;
        (void)snprintf(number, sizeof(number), "%lld", (long long)js->integer);
        return make_scalar(arena, number, strlen(number), false);
    case DIBSX_JSON_TEXT:
        return make_scalar(arena, js->text, js->len, true);
    case DIBSX_JSON_LIST:
    case DIBSX_JSON_MAP:
        break;
    }
    return convert_members(arena, js);
}

/* Keeps the first mistake. */
static void keep_first(void *arg, bool warning, size_t line, size_t column,
                       const char *message)
{
    char *first = arg;

    (void)line;
    (void)column;
    if (!warning && !first[0])
        (void)snprintf(first, sizeof(((dibs_error *)0)->message), "%s",
                       message);
}

static dibs_status
build(const dibsx_yaml_node *root, dibs__job **out, dibs_error *err)
{
    const dibsx_yaml_node *name = dibs__node_get(root, "name");
    char first[sizeof(((dibs_error *)0)->message)] = "";
    const dibs__job_sink sink = {keep_first, first};
    const dibs__job_source source = {.key = root, .map = root};
    dibs__job_reader rd;
    dibs_status rc;

    if (!name || name->kind != DIBSX_YAML_SCALAR ||
        !dibs__job_name_ok(name->text))
        return dibsx_fail(err, DIBS_INVALID,
                          "the definition of a job has no name");
    dibs__job_reader_init(&rd, &sink);
    rd.stored = true;
    rc = dibs__job_build(&rd, name->text, &source, out, err);
    dibs__job_reader_fini(&rd);
    if (rc == DIBS_INVALID)
        rc = dibsx_fail(err, rc,
                        "the definition of the job '%.60s' is wrong: %s",
                        name->text, first);
    return rc;
}

dibs_status dibs__job_from_json(const char *text, size_t len, dibs__job **out,
                                dibs_error *err)
{
    dibs__arena *arena = NULL;
    dibsx_yaml_node *root = NULL;
    dibsx_json_doc doc;
    dibs_status rc;

    *out = NULL;
    if (len > DIBS__JOB_JSON_MAX)
        return dibsx_fail(err, DIBS_INVALID,
                          "the definition of a job is larger than %d bytes",
                          DIBS__JOB_JSON_MAX);
    rc = dibsx_json_read(text, len, &doc, err);
    if (rc != DIBS_OK)
        return rc;
    arena = dibs__arena_new();
    if (arena)
        root = convert(arena, doc.root);
    if (!arena || !dibs__arena_ok(arena))
        rc = dibsx_nomem(err, "the definition of a job");
    else if (!root || root->kind != DIBSX_YAML_MAP)
        rc = dibsx_fail(err, DIBS_INVALID,
                        "the definition of a job is no object of texts and "
                        "whole numbers");
    else
        rc = build(root, out, err);
    dibs__arena_free(arena);
    dibsx_json_doc_fini(&doc);
    return rc;
}
