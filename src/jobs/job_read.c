/* job_read.c - reads maps of a jobs file into structs, by the tables of their keys. */
/* SPDX-License-Identifier: MIT */
#include "jobs/job_read.h"

#include "base/suggest.h"
#include "jobs/definition.h"
#include "jobs/params.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static size_t count_items(const dibsx_yaml_node *node)
{
    size_t count = 0;

    for (node = node->child; node; node = node->next)
        count++;
    return count;
}

/* The first word of a list, or the scalar that stands for a list of one. */
static const dibsx_yaml_node *first_word(const dibsx_yaml_node *value)
{
    return value->kind == DIBSX_YAML_LIST ? value->child : value;
}

static const dibsx_yaml_node *
next_word(const dibsx_yaml_node *value, const dibsx_yaml_node *word)
{
    return word == value ? NULL : word->next;
}

/* Whether a value is a list of at most row->max words, or one word. */
static bool check_words(dibs__job_reader *rd, const dibs__key *row,
                        const dibsx_yaml_node *value, size_t max)
{
    if (value->kind == DIBSX_YAML_MAP) {
        dibs__job_mistake(rd, value, "%s takes a list, such as [a, b]",
                          row->name);
        return false;
    }
    if (value->kind == DIBSX_YAML_LIST && count_items(value) > max) {
        dibs__job_mistake(rd, value, "%s has more than %zu entries", row->name,
                          max);
        return false;
    }
    for (const dibsx_yaml_node *word = first_word(value); word;
         word = next_word(value, word)) {
        if (word->kind != DIBSX_YAML_SCALAR) {
            dibs__job_mistake(rd, word, "%s: an entry is one word here",
                              row->name);
            return false;
        }
    }
    return true;
}

static void read_scalar(dibs__job_reader *rd, const dibs__key *row,
                        const dibsx_yaml_node *value, void *base)
{
    dibs_error err = {0};

    if (value->kind != DIBSX_YAML_SCALAR)
        dibs__job_mistake(rd, value, "%s takes one value%s", row->name,
                          value->kind == DIBSX_YAML_MAP
                              ? "; put text with a colon in it in quotes"
                              : "");
    else if (dibs__key_read(row, value->text, &rd->ctx, base, &err) != DIBS_OK)
        dibs__job_failure(rd, value, row->name, &err);
}

/* A set of choices or of exit codes replaces the one that was there. */
static void read_set(dibs__job_reader *rd, const dibs__key *row,
                     const dibsx_yaml_node *value, void *base)
{
    dibs__key empty = *row;
    const dibsx_yaml_node *word = first_word(value);

    if (!check_words(rd, row, value, 256))
        return;
    if (!word) {
        dibs__job_mistake(rd, value, "%s is empty", row->name);
        return;
    }
    empty.initial = NULL;
    dibs__key_reset(&empty, &rd->ctx, base);
    for (; word; word = next_word(value, word))
        read_scalar(rd, row, word, base);
}

/* ---- lists of texts */

static dibs__texts take_texts(dibs__job_reader *rd, size_t count)
{
    return (dibs__texts){
        .at = dibs__arena_take(rd->ctx.arena, count + 1, sizeof(const char *))};
}

static void add_text(dibs__job_reader *rd, dibs__texts *texts, const char *text)
{
    if (texts->at)
        texts->at[texts->count++] = dibs__arena_text(rd->ctx.arena, text);
}

static void read_words(dibs__job_reader *rd, const dibs__key *row,
                       const dibsx_yaml_node *value, void *base)
{
    dibs__texts *out = dibs__key_place(row, base);

    if (value->kind == DIBSX_YAML_SCALAR) {
        dibs__job_mistake(rd, value,
                          "%s takes a list of words, such as [echo, hello]; "
                          "shell takes a text",
                          row->name);
        return;
    }
    if (!check_words(rd, row, value, (size_t)row->max))
        return;
    if (!value->child || !value->child->text[0]) {
        dibs__job_mistake(rd, value, "%s names no command", row->name);
        return;
    }
    *out = take_texts(rd, count_items(value));
    for (const dibsx_yaml_node *word = value->child; word; word = word->next)
        add_text(rd, out, word->text);
}

static bool has_text(const dibs__texts *texts, const char *text)
{
    for (size_t i = 0; i < texts->count; i++)
        if (texts->at[i] && strcmp(texts->at[i], text) == 0)
            return true;
    return false;
}

static void read_names(dibs__job_reader *rd, const dibs__key *row,
                       const dibsx_yaml_node *value, void *base)
{
    dibs__texts *out = dibs__key_place(row, base);

    if (!check_words(rd, row, value, (size_t)row->max))
        return;
    *out =
        take_texts(rd, value->kind == DIBSX_YAML_LIST ? count_items(value) : 1);
    for (const dibsx_yaml_node *word = first_word(value); word;
         word = next_word(value, word)) {
        if (!dibs__job_name_ok(word->text))
            dibs__job_mistake(rd, word, "%s: '%.40s' is no name", row->name,
                              word->text);
        else if (has_text(out, word->text))
            dibs__job_mistake(rd, word, "%s: '%.40s' was given before",
                              row->name, word->text);
        else
            add_text(rd, out, word->text);
    }
}

static void read_schedules(dibs__job_reader *rd, const dibs__key *row,
                           const dibsx_yaml_node *value, void *base)
{
    dibs__schedules *out = dibs__key_place(row, base);
    size_t count = value->kind == DIBSX_YAML_LIST ? count_items(value) : 1;

    if (!check_words(rd, row, value, (size_t)row->max))
        return;
    *out = (dibs__schedules){
        .at = dibs__arena_take(rd->ctx.arena, count + 1, sizeof(*out->at))};
    if (!out->at)
        return;
    for (const dibsx_yaml_node *word = first_word(value); word;
         word = next_word(value, word)) {
        dibs__schedule *one = &out->at[out->count];
        char message[sizeof(((dibs_error *)0)->message) + 16];
        dibs_error err = {0};
        int column = 1;

        if (dibs__cron_parse(word->text, &one->cron, &column, &err) !=
            DIBS_OK) {
            (void)snprintf(message, sizeof(message), "schedule: %s",
                           err.message);
            dibs__job_mistake_within(rd, word, (size_t)column, message);
            continue;
        }
        if (one->cron.day_numbers)
            dibs__job_warn(rd, word,
                           "a weekday is a number here: 0 and 7 are Sunday, "
                           "but 1 is Sunday in Quartz; write a name, such as "
                           "MON");
        one->text = dibs__arena_text(rd->ctx.arena, word->text);
        out->count++;
    }
}

/* ---- pairs and params */

static int compare_pairs(const void *a, const void *b)
{
    return strcmp(((const dibs__pair *)a)->name, ((const dibs__pair *)b)->name);
}

static bool variable_ok(const char *name)
{
    size_t len = strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                              "abcdefghijklmnopqrstuvwxyz0123456789_");

    return len > 0 && name[len] == '\0' && (name[0] < '0' || name[0] > '9');
}

/* A variable that each attempt has from dibs. Others, such as DIBS_URL, are the
 * settings of a dibs that the command runs. */
static bool is_own_variable(const char *name)
{
    static const char *const begins[] = {"DIBS_PARAM_", "DIBS_NEEDS",
                                         "DIBS_RUN",    "DIBS_JOB",
                                         "DIBS_STEP",   "DIBS_TICK",
                                         "DIBS_BATCH",  "DIBS_ATTEMPT",
                                         "DIBS_RESULT", "DIBS_BOARD",
                                         "DIBS_NODE",   "DIBS_FENCE"};

    for (size_t i = 0; i < sizeof(begins) / sizeof(begins[0]); i++)
        if (strncmp(name, begins[i], strlen(begins[i])) == 0)
            return true;
    return false;
}

static bool check_pair(dibs__job_reader *rd, const dibs__key *row,
                       const dibsx_yaml_node *key)
{
    bool env = row->type == DIBS__KEY_ENV;

    if (env ? !variable_ok(key->text) : !dibs__param_name_ok(key->text))
        dibs__job_mistake(rd, key, "%s: '%.40s' is no name of a %s", row->name,
                          key->text, env ? "variable" : "param");
    else if (env && is_own_variable(key->text))
        dibs__job_mistake(rd, key,
                          "%s: '%.40s' is set by dibs itself; use another name",
                          row->name, key->text);
    else if (key->value->kind != DIBSX_YAML_SCALAR)
        dibs__job_mistake(rd, key->value, "%s: a value is one text here",
                          row->name);
    else
        return true;
    return false;
}

static dibs__pair *find_pair(const dibs__pairs *pairs, const char *name)
{
    for (size_t i = 0; i < pairs->count; i++)
        if (strcmp(pairs->at[i].name, name) == 0)
            return &pairs->at[i];
    return NULL;
}

/* Whether the entries of defaults and job together, each name once, are not too many. */
static bool has_room(dibs__job_reader *rd, const dibs__key *row,
                     const dibsx_yaml_node *value, size_t count)
{
    if (count <= (size_t)row->max)
        return true;
    dibs__job_mistake(rd, value, "%s has more than %lld entries", row->name,
                      (long long)row->max);
    return false;
}

/* Beside what is there already; a name that is there gets the new value. */
static void read_pairs(dibs__job_reader *rd, const dibs__key *row,
                       const dibsx_yaml_node *value, void *base)
{
    dibs__pairs *out = dibs__key_place(row, base), old = *out;

    if (value->kind != DIBSX_YAML_MAP) {
        dibs__job_mistake(rd, value, "%s takes a map, such as {NAME: value}",
                          row->name);
        return;
    }
    *out =
        (dibs__pairs){.at = dibs__arena_take(rd->ctx.arena,
                                             old.count + count_items(value) + 1,
                                             sizeof(*out->at))};
    if (!out->at)
        return;
    for (; out->count < old.count; out->count++)
        out->at[out->count] = old.at[out->count];
    for (const dibsx_yaml_node *key = value->child; key; key = key->next) {
        dibs__pair *pair;

        if (!check_pair(rd, row, key))
            continue;
        pair = find_pair(out, key->text);
        if (!pair) {
            pair = &out->at[out->count++];
            pair->name = dibs__arena_text(rd->ctx.arena, key->text);
        }
        pair->value =
            dibs__arena_text(rd->ctx.arena, dibsx_yaml_is_null(key->value)
                                                ? ""
                                                : key->value->text);
        if (!pair->name || !pair->value) {
            *out = old;
            return;
        }
    }
    if (!has_room(rd, row, value, out->count)) {
        *out = old;
        return;
    }
    qsort(out->at, out->count, sizeof(out->at[0]), compare_pairs);
}

static int compare_params(const void *a, const void *b)
{
    return strcmp(((const dibs__param *)a)->name,
                  ((const dibs__param *)b)->name);
}

/* The place of a param of this name; a new one after those that are there. */
static dibs__param *find_place(dibs__param_list *list, const char *name)
{
    size_t i = 0;

    while (i < list->count && strcmp(list->at[i].name, name) != 0)
        i++;
    return &list->at[i];
}

/* Two whose variables are the same. */
static bool check_case(dibs__job_reader *rd, const dibs__param_list *list,
                       const dibsx_yaml_node *key)
{
    for (size_t i = 0; i < list->count; i++) {
        if (strcasecmp(list->at[i].name, key->text) == 0 &&
            strcmp(list->at[i].name, key->text) != 0) {
            dibs__job_mistake(rd, key,
                              "the params '%s' and '%s' have one variable; "
                              "name them apart",
                              list->at[i].name, key->text);
            return false;
        }
    }
    return true;
}

static void read_param(dibs__job_reader *rd, dibs__param_list *list,
                       const dibsx_yaml_node *key)
{
    dibs__param *param = find_place(list, key->text);
    const dibs__key_scope scope = {&dibs__param_keys, param};
    dibs_error err = {0};

    if (!dibs__param_name_ok(key->text)) {
        dibs__job_mistake(rd, key,
                          "'%.40s' is no name of a param: a letter, then "
                          "letters, digits and _",
                          key->text);
        return;
    }
    if (!check_case(rd, list, key))
        return;
    if (param == &list->at[list->count]) {
        param->name = dibs__arena_text(rd->ctx.arena, key->text);
        if (!param->name)
            return;
        list->count++;
    }
    dibs__keys_reset(&dibs__param_keys, &rd->ctx, param);
    if (!dibsx_yaml_is_null(key->value))
        dibs__keys_read(rd, &scope, 1, "a param", NULL, key->value);
    if (param->required && param->initial)
        dibs__job_mistake(rd, key,
                          "the param '%s' is required and has a default; "
                          "leave one of them out",
                          param->name);
    else if (param->initial) {
        const dibs__param_list alone = {param, 1};
        dibs__pairs filled;

        if (dibs__params_fill(&alone, NULL, 0, rd->ctx.arena, &filled, &err) !=
            DIBS_OK)
            dibs__job_failure(rd, key->value, NULL, &err);
    }
}

static void read_params(dibs__job_reader *rd, const dibs__key *row,
                        const dibsx_yaml_node *value, void *base)
{
    dibs__param_list *out = dibs__key_place(row, base), old = *out;

    if (value->kind != DIBSX_YAML_MAP) {
        dibs__job_mistake(
            rd, value, "params takes a map, such as {region: {default: eu}}");
        return;
    }
    *out = (dibs__param_list){.at = dibs__arena_take(rd->ctx.arena,
                                                     old.count +
                                                         count_items(value) + 1,
                                                     sizeof(*out->at)),
                              .count = old.count};
    if (!out->at) {
        out->count = 0;
        return;
    }
    for (size_t i = 0; i < old.count; i++)
        out->at[i] = old.at[i];
    for (const dibsx_yaml_node *key = value->child; key; key = key->next)
        read_param(rd, out, key);
    if (!has_room(rd, row, value, out->count)) {
        *out = old;
        return;
    }
    qsort(out->at, out->count, sizeof(out->at[0]), compare_params);
}

/* ---- rows */

static void read_group(dibs__job_reader *rd, const dibs__key *row,
                       const dibsx_yaml_node *value, void *base)
{
    const dibs__key_scope scope = {row->group, dibs__key_place(row, base)};

    dibs__keys_read(rd, &scope, 1, row->name, NULL, value);
}

void dibs__row_read(dibs__job_reader *rd, const dibs__key *row,
                    const dibsx_yaml_node *value, void *base)
{
    bool adds = row->type == DIBS__KEY_ENV || row->type == DIBS__KEY_WITH ||
                row->type == DIBS__KEY_PARAMS || row->type == DIBS__KEY_STEPS;

    if (dibsx_yaml_is_null(value)) {
        if (!adds)
            dibs__key_reset(row, &rd->ctx, base);
        return;
    }
    switch (row->type) {
    case DIBS__KEY_CHOICES:
    case DIBS__KEY_CODES:
        read_set(rd, row, value, base);
        return;
    case DIBS__KEY_WORDS:
        read_words(rd, row, value, base);
        return;
    case DIBS__KEY_NAMES:
        read_names(rd, row, value, base);
        return;
    case DIBS__KEY_ENV:
    case DIBS__KEY_WITH:
        read_pairs(rd, row, value, base);
        return;
    case DIBS__KEY_SCHEDULES:
        read_schedules(rd, row, value, base);
        return;
    case DIBS__KEY_PARAMS:
        read_params(rd, row, value, base);
        return;
    case DIBS__KEY_GROUP:
        read_group(rd, row, value, base);
        return;
    case DIBS__KEY_STEPS:
        return;
    default:
        read_scalar(rd, row, value, base);
    }
}

static void
unknown_key(dibs__job_reader *rd, const dibs__key_scope *scopes, size_t count,
            const char *of, const dibsx_yaml_node *key)
{
    dibsx_suggest sg = {.typed = key->text};
    bool elsewhere = dibs__keys_find(&dibs__job_keys, key->text) ||
                     dibs__keys_find(&dibs__work_keys, key->text);

    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < scopes[i].keys->count; j++)
            dibsx_suggest_offer(&sg, scopes[i].keys->rows[j].name);
    if (sg.best)
        dibs__job_mistake(rd, key, "%s has no key '%.60s'; did you mean '%s'?",
                          of, key->text, sg.best);
    else if (elsewhere)
        dibs__job_mistake(rd, key, "%s has no key '%.60s'; a job has it", of,
                          key->text);
    else
        dibs__job_mistake(rd, key,
                          "%s has no key '%.60s'; docs/jobs.md lists them", of,
                          key->text);
}

void dibs__keys_read(dibs__job_reader *rd, const dibs__key_scope *scopes,
                     size_t count, const char *of, const char *besides,
                     const dibsx_yaml_node *map)
{
    if (map->kind != DIBSX_YAML_MAP) {
        dibs__job_mistake(rd, map, "%s takes a map, with lines such as %s: ...",
                          of, scopes[0].keys->rows[0].name);
        return;
    }
    for (const dibsx_yaml_node *key = map->child; key; key = key->next) {
        const dibs__key *row = NULL;

        if (besides && strcmp(key->text, besides) == 0)
            continue;
        for (size_t i = 0; i < count && !row; i++) {
            row = dibs__keys_find(scopes[i].keys, key->text);
            if (row)
                dibs__row_read(rd, row, key->value, scopes[i].base);
        }
        if (!row)
            unknown_key(rd, scopes, count, of, key);
    }
}
