/* job_file.c - reads a jobs file: its head, its defaults, its jobs. */
/* SPDX-License-Identifier: MIT */
#include "jobs/job_file.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/suggest.h"
#include "jobs/job_build.h"
#include "jobs/job_graph.h"
#include "jobs/job_json.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HASHES_MAX = 128 * 1024 * 1024 };

static const char *const head_keys[] = {"version", "set", "board", "defaults",
                                        "jobs"};

enum { HEAD_KEYS = sizeof(head_keys) / sizeof(head_keys[0]) };

/* ---- head */

static void check_head(dibs__job_reader *rd, const dibsx_yaml_node *root)
{
    for (const dibsx_yaml_node *key = root->child; key; key = key->next) {
        dibsx_suggest sg = {.typed = key->text};
        size_t i = 0;

        while (i < HEAD_KEYS && strcmp(head_keys[i], key->text) != 0)
            dibsx_suggest_offer(&sg, head_keys[i++]);
        if (i < HEAD_KEYS)
            continue;
        if (sg.best)
            dibs__job_mistake(
                rd, key, "a jobs file has no key '%.60s'; did you mean '%s'?",
                key->text, sg.best);
        else
            dibs__job_mistake(rd, key,
                              "a jobs file has no key '%.60s'; it has version, "
                              "set, board, defaults and jobs",
                              key->text);
    }
}

static void
read_version(dibs__job_reader *rd, const dibsx_yaml_node *node, int64_t *out)
{
    static const dibs__key row = {.name = "version",
                                  .type = DIBS__KEY_INT,
                                  .min = 1,
                                  .max = INT64_C(1) << 53};
    dibs_error err = {0};

    if (!node)
        return;
    if (node->kind != DIBSX_YAML_SCALAR)
        dibs__job_mistake(rd, node, "version takes a whole number");
    else if (dibs__key_read(&row, node->text, &rd->ctx, out, &err) != DIBS_OK)
        dibs__job_mistake(rd, node, "version: %s", err.message);
}

static void read_name(dibs__job_reader *rd, const dibsx_yaml_node *node,
                      const char *key, char out[DIBS__JOB_NAME_MAX + 1])
{
    if (!node)
        return;
    if (node->kind == DIBSX_YAML_SCALAR && dibs__job_name_ok(node->text))
        (void)snprintf(out, DIBS__JOB_NAME_MAX + 1, "%s", node->text);
    else
        dibs__job_mistake(rd, node,
                          "%s takes a name: letters, digits and . _ -, at "
                          "most %d bytes",
                          key, DIBS__JOB_NAME_MAX);
}

static bool begins_name(char c)
{
    const char text[] = {c, '\0'};

    return dibs__job_name_ok(text);
}

static bool continues_name(char c)
{
    const char text[] = {'a', c, '\0'};

    return c && dibs__job_name_ok(text);
}

/* The name of a file without folder and suffix, from its first letter or digit on;
 * other characters become -. */
static void name_set(const char *path, char out[DIBS__JOB_NAME_MAX + 1])
{
    const char *base = strrchr(path, '/');
    const char *dot;
    size_t len = 0;

    base = base ? base + 1 : path;
    while (*base && !begins_name(*base))
        base++;
    dot = strrchr(base, '.');
    for (; *base && base != dot && len < DIBS__JOB_NAME_MAX; base++)
        out[len++] = continues_name(*base) ? *base : '-';
    out[len] = '\0';
    if (len == 0)
        (void)snprintf(out, DIBS__JOB_NAME_MAX + 1, "jobs");
}

/* ---- jobs */

static bool check_name(dibs__job_reader *rd, const dibsx_yaml_node *key)
{
    if (dibs__job_name_ok(key->text))
        return true;
    dibs__job_mistake(rd, key,
                      "'%.40s' is no name of a job; a name has letters, digits "
                      "and . _ -, and at most %d bytes",
                      key->text, DIBS__JOB_NAME_MAX);
    return false;
}

/* The definition, as the store would keep it, is hashed and must not be too large. */
static dibs_status
hash_job(dibs__job_reader *rd, const dibsx_yaml_node *key,
         dibs__job_entry *entry, dibsx_buf *json, dibs_error *err)
{
    dibsx_buf_reset(json);
    dibs__job_json(entry->job, json);
    if (!dibsx_buf_ok(json))
        return dibsx_nomem(err, "the definition of a job");
    if (json->len > DIBS__JOB_JSON_MAX)
        dibs__job_mistake(rd, key,
                          "the definition of '%s' has %zu bytes as JSON; %d "
                          "are allowed: put text into files",
                          key->text, json->len, DIBS__JOB_JSON_MAX);
    dibs__job_hash(dibsx_buf_text(json), json->len, entry->hash);
    return DIBS_OK;
}

static dibs_status
read_job(dibs__job_reader *rd, const dibsx_yaml_node *key,
         const dibsx_yaml_node *defaults, dibs__job_file *out, dibsx_buf *json,
         dibs_error *err)
{
    const dibs__job_source source = {.key = key,
                                     .map = key->value,
                                     .defaults = defaults};
    dibs__job_entry *entry = &out->entries[out->count];
    dibs_status rc;

    if (!check_name(rd, key))
        return DIBS_OK;
    if (key->value->kind != DIBSX_YAML_MAP) {
        dibs__job_mistake(rd, key->value,
                          "the job '%s' takes a map, with lines such as "
                          "run: [echo, hello]",
                          key->text);
        return DIBS_OK;
    }
    rc = dibs__job_build(rd, key->text, &source, &entry->job, err);
    if (rc == DIBS_INVALID)
        return DIBS_OK;
    if (rc == DIBS_OK) {
        out->count++;
        rc = hash_job(rd, key, entry, json, err);
    }
    return rc;
}

/* Mistakes in the defaults are reported once, not with each job. */
static const dibsx_yaml_node *
check_defaults(dibs__job_reader *rd, const dibsx_yaml_node *root)
{
    const dibsx_yaml_node *node = dibs__node_get(root, "defaults");
    size_t mistakes = rd->mistakes;

    if (!node)
        return NULL;
    dibs__defaults_check(rd, node);
    return rd->mistakes == mistakes ? node : NULL;
}

static dibs_status read_jobs(dibs__job_reader *rd, const dibsx_yaml_node *root,
                             dibs__job_file *out, dibs_error *err)
{
    const dibsx_yaml_node *jobs = dibs__node_get(root, "jobs");
    const dibsx_yaml_node *defaults = check_defaults(rd, root);
    size_t count = 0;
    dibs_status rc = DIBS_OK;
    dibsx_buf json;

    if (!jobs || jobs->kind != DIBSX_YAML_MAP) {
        dibs__job_mistake(rd, jobs ? jobs : root,
                          "a jobs file has a map of jobs by name below jobs");
        return DIBS_OK;
    }
    for (const dibsx_yaml_node *key = jobs->child; key; key = key->next)
        count++;
    out->entries = dibsx_zalloc_n(count + 1, sizeof(*out->entries));
    if (!out->entries)
        return dibsx_nomem(err, "the list of jobs");
    dibsx_buf_init(&json, 64 * DIBS__JOB_JSON_MAX);
    for (const dibsx_yaml_node *key = jobs->child; key && rc == DIBS_OK;
         key = key->next)
        rc = read_job(rd, key, defaults, out, &json, err);
    dibsx_buf_fini(&json);
    /* A job that has mistakes is missing in the graph. */
    if (rc == DIBS_OK && out->count == count)
        rc = dibs__job_graph_check(rd, out->entries, count, jobs, err);
    return rc;
}

/* ---- the whole */

static int compare_entries(const void *a, const void *b)
{
    return strcmp((*(const dibs__job_entry *const *)a)->job->name,
                  (*(const dibs__job_entry *const *)b)->job->name);
}

/* Hashes the board, then names and hashes of all jobs, in order of names. */
static dibs_status hash_file(dibs__job_file *file, dibs_error *err)
{
    const dibs__job_entry **sorted =
        dibsx_zalloc_n(file->count + 1, sizeof(*sorted));
    dibs_status rc = DIBS_OK;
    dibsx_buf text;

    file->by_name = sorted;
    if (!sorted)
        return dibsx_nomem(err, "the list of jobs");
    for (size_t i = 0; i < file->count; i++)
        sorted[i] = &file->entries[i];
    qsort(sorted, file->count, sizeof(*sorted), compare_entries);
    dibsx_buf_init(&text, HASHES_MAX);
    dibsx_buf_printf(&text, "%s\n", file->board);
    for (size_t i = 0; i < file->count; i++)
        dibsx_buf_printf(&text, "%s %s\n", sorted[i]->job->name,
                         sorted[i]->hash);
    if (dibsx_buf_ok(&text))
        dibs__job_hash(dibsx_buf_text(&text), text.len, file->hash);
    else
        rc = dibsx_nomem(err, "the list of jobs");
    dibsx_buf_fini(&text);
    return rc;
}

static void drop_entries(dibs__job_file *file)
{
    dibsx_free(file->by_name);
    file->by_name = NULL;
    for (size_t i = 0; i < file->count; i++)
        dibs__job_free(file->entries[i].job);
    dibsx_free(file->entries);
    file->entries = NULL;
    file->count = 0;
}

void dibs__job_file_fini(dibs__job_file *file)
{
    drop_entries(file);
}

static dibs_status read_root(dibs__job_reader *rd, const dibsx_yaml_node *root,
                             dibs__job_file *out, dibs_error *err)
{
    if (root->kind != DIBSX_YAML_MAP) {
        dibs__job_mistake(rd, root,
                          "a jobs file is a map, with a map of jobs by name "
                          "below jobs");
        return DIBS_OK;
    }
    check_head(rd, root);
    read_version(rd, dibs__node_get(root, "version"), &out->version);
    read_name(rd, dibs__node_get(root, "set"), "set", out->set);
    read_name(rd, dibs__node_get(root, "board"), "board", out->board);
    return read_jobs(rd, root, out, err);
}

dibs_status dibs__job_file_read(const char *text, size_t len, const char *path,
                                const dibs__job_sink *sink, dibs__job_file *out,
                                dibs_error *err)
{
    static const dibsx_yaml_limits limits = {.size = DIBS__JOB_FILE_MAX,
                                             .nodes = DIBS__JOB_FILE_NODES};
    static const dibsx_yaml_node nothing = {.kind = DIBSX_YAML_LIST,
                                            .line = 1,
                                            .column = 1};
    dibsx_yaml_node *root = NULL;
    dibsx_yaml_place place;
    dibs__job_reader rd;
    dibs_status rc;

    *out = (dibs__job_file){.board = "main"};
    name_set(path, out->set);
    dibs__job_reader_init(&rd, sink);
    rc = dibsx_yaml_parse_at(text, len, &limits, &root, &place, err);
    if (rc == DIBS_INVALID && place.line > 0) {
        const dibsx_yaml_node at = {.line = place.line, .column = place.column};

        dibs__job_mistake(&rd, &at, "%s", err ? err->message : "not YAML");
        rc = DIBS_OK;
    } else if (rc == DIBS_OK) {
        rc = read_root(&rd, root ? root : &nothing, out, err);
    }
    dibs__job_reader_fini(&rd);
    dibsx_yaml_free(root);
    out->mistakes = rd.mistakes;
    out->warnings = rd.warnings;
    if (rc == DIBS_OK && rd.nomem)
        rc = dibsx_nomem(err, "the jobs file");
    if (rc == DIBS_OK && rd.mistakes > 0)
        rc = dibsx_fail(err, DIBS_INVALID, "%.120s has %zu mistake%s", path,
                        rd.mistakes, rd.mistakes == 1 ? "" : "s");
    if (rc == DIBS_OK)
        rc = hash_file(out, err);
    if (rc != DIBS_OK)
        drop_entries(out);
    return rc;
}

static int compare_name(const void *name, const void *entry)
{
    return strcmp(name, (*(const dibs__job_entry *const *)entry)->job->name);
}

const dibs__job_entry *
dibs__job_file_find(const dibs__job_file *file, const char *name)
{
    const dibs__job_entry *const *found =
        file->count > 0 ? bsearch(name, file->by_name, file->count,
                                  sizeof(*file->by_name), compare_name)
                        : NULL;

    return found ? *found : NULL;
}
