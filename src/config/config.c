/* config.c - DIBS_* variables and YAML files, checked against a table of options.
 *
 * A program that runs with the rights of another user than its caller's ignores
 * the environment, and with it the user's file. Any thread, while none changes
 * the environment. */
/* SPDX-License-Identifier: MIT */
#include "config/config.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/suggest.h"
#include "base/yaml.h"
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *read_variable(const char *name)
{
    const char *value = secure_getenv(name);

    return value && *value ? value : NULL;
}

/* An empty variable counts as not set. */
static dibs_status
load_environment(const dibs__option_set *set, dibs_error *err)
{
    for (size_t i = 0; i < set->count; i++) {
        const dibs__option *option = set->row(i);
        const char *value = option->env ? read_variable(option->env) : NULL;
        dibs_status rc;

        if (!value)
            continue;
        rc = dibs__value_put(&set->values[i], option, value, DIBS__FROM_ENV,
                             option->env, NULL, err);
        if (rc != DIBS_OK)
            return rc;
    }
    return DIBS_OK;
}

/* The part of a row's key that stands in the group: "listen" of "serve.listen" in
 * "serve". NULL: the row has no key there. */
static const char *key_in(const dibs__option *option, const char *group)
{
    const size_t len = strlen(group);
    const char *key = option->key;

    if (!key || len == 0)
        return key && strchr(key, '.') ? NULL : key;
    return strncmp(key, group, len) == 0 && key[len] == '.' ? key + len + 1
                                                            : NULL;
}

/* The row with this key in the group ("" is the top), or the number of rows. */
static size_t
find_key(const dibs__option_set *set, const char *group, const char *key)
{
    size_t i = 0;

    while (i < set->count) {
        const char *own = key_in(set->row(i), group);

        if (own && strcmp(own, key) == 0)
            break;
        i++;
    }
    return i;
}

static bool is_group(const dibs__option_set *set, const char *name)
{
    for (size_t i = 0; i < set->count; i++) {
        if (*name && key_in(set->row(i), name))
            return true;
    }
    return false;
}

/* If no URL is given, REDIS_ENABLED=true selects the server that the variables of
 * other programs name. It ranks below all that is meant for dibs. */
static dibs_status
heed_redis_enabled(const dibs__option_set *set, dibs_error *err)
{
    static const char name[] = "REDIS_ENABLED";
    const char *text = read_variable(name);
    size_t at = find_key(set, "", "url");
    bool enabled = false;
    dibs_status rc = DIBS_OK;

    if (!text || at == set->count ||
        set->values[at].source > DIBS__FROM_DEFAULT)
        return DIBS_OK;
    rc = dibs__flag_parse(text, name, &enabled, err);
    if (rc != DIBS_OK || !enabled)
        return rc;
    return dibs__value_put(&set->values[at], set->row(at),
                           "redis:", DIBS__FROM_ENV, name, name, err);
}

/* Whether it is a key as the documentation has it, GROUP.KEY; in the file the group is a
 * line of its own. */
static bool has_dotted(const dibs__option_set *set, const char *text)
{
    for (size_t i = 0; i < set->count; i++) {
        const char *key = set->row(i)->key;

        if (key && strcmp(key, text) == 0)
            return strchr(key, '.') != NULL;
    }
    return false;
}

static dibs_status
unknown_key(const dibs__option_set *set, const char *group,
            const dibsx_yaml_node *key, const char *file, dibs_error *err)
{
    dibsx_suggest sg = {.typed = key->text};

    if (has_dotted(set, key->text)) {
        size_t len = strcspn(key->text, ".");

        return dibsx_fail(err, DIBS_INVALID,
                          "%s:%zu:%zu: '%s' is not one key in the file; write "
                          "a line '%.*s:' and, indented below it, '%s: ...'",
                          file, key->line, key->column, key->text, (int)len,
                          key->text, key->text + len + 1);
    }
    for (size_t i = 0; i < set->count; i++) {
        const char *own = key_in(set->row(i), group);

        if (own)
            dibsx_suggest_offer(&sg, own);
    }
    if (sg.best)
        return dibsx_fail(err, DIBS_INVALID,
                          "%s:%zu:%zu: there is no key '%.60s'; did you mean "
                          "'%s'?",
                          file, key->line, key->column, key->text, sg.best);
    return dibsx_fail(
        err, DIBS_INVALID,
        "%s:%zu:%zu: there is no key '%.60s'; `dibs config --doc` "
        "lists them",
        file, key->line, key->column, key->text);
}

static dibs_status
take_key(const dibs__option_set *set, const char *group,
         const dibsx_yaml_node *key, const char *file, dibs_error *err)
{
    size_t at = find_key(set, group, key->text);
    const dibs__option *option;
    const dibsx_yaml_node *value = key->value;
    char place[PATH_MAX + 48], name[PATH_MAX + 96];

    if (at == set->count)
        return unknown_key(set, group, key, file, err);
    option = set->row(at);
    snprintf(place, sizeof(place), "%s:%zu:%zu", file, value->line,
             value->column);
    snprintf(name, sizeof(name), "%s: %s", place, option->key);
    if (dibsx_yaml_is_null(value))
        return DIBS_OK;
    if (value->kind != DIBSX_YAML_SCALAR)
        return dibsx_fail(err, DIBS_INVALID, "%s takes one value%s", name,
                          value->kind == DIBSX_YAML_MAP
                              ? "; put text with a colon in it in quotes"
                              : "");
    return dibs__value_put(&set->values[at], option, value->text,
                           DIBS__FROM_FILE, name, place, err);
}

/* The keys of a mapping: all of them at the top, or those of a group. */
static dibs_status
take_keys(const dibs__option_set *set, const char *group,
          const dibsx_yaml_node *map, const char *file, dibs_error *err)
{
    dibs_status rc = DIBS_OK;

    for (const dibsx_yaml_node *key = map->child; key && rc == DIBS_OK;
         key = key->next) {
        if (*group || !is_group(set, key->text))
            rc = take_key(set, group, key, file, err);
        else if (key->value->kind == DIBSX_YAML_MAP)
            rc = take_keys(set, key->text, key->value, file, err);
        else if (!dibsx_yaml_is_null(key->value))
            rc = dibsx_fail(err, DIBS_INVALID,
                            "%s:%zu:%zu: '%.60s' has settings of its own below "
                            "it; write them as 'key: value', indented",
                            file, key->value->line, key->value->column,
                            key->text);
    }
    return rc;
}

dibs_status dibs__config_text(const dibs__option_set *set, const char *text,
                              size_t len, const char *file, dibs_error *err)
{
    dibsx_yaml_node *root = NULL;
    dibs_status rc = dibsx_yaml_parse(text, len, file, NULL, &root, err);

    if (rc != DIBS_OK || !root)
        return rc;
    if (root->kind == DIBSX_YAML_MAP) {
        rc = take_keys(set, "", root, file, err);
    } else if (!dibsx_yaml_is_null(root)) {
        rc = dibsx_fail(
            err, DIBS_INVALID,
            "%s:%zu:%zu: this is no mapping; write lines of the form "
            "'key: value'",
            file, root->line, root->column);
    }
    dibsx_yaml_free(root);
    return rc;
}

/* A missing file is an error only if the caller named it. */
static dibs_status load_file(const dibs__option_set *set, const char *path,
                             bool asked, dibs_error *err)
{
    size_t len = 0;
    char *text = NULL;
    dibs_status rc =
        dibs__read_file(path, DIBSX_YAML_SIZE_MAX, &text, &len, err);

    if (rc == DIBS_NOTFOUND)
        return asked ? dibsx_fail(err, DIBS_INVALID,
                                  "there is no configuration file %s", path)
                     : DIBS_OK;
    if (rc == DIBS_OK)
        rc = dibs__config_text(set, text, len, path, err);
    if (text)
        explicit_bzero(text, len);
    dibsx_free(text);
    return rc;
}

/* The standard has a relative path ignored. */
static const char *folder_variable(const char *name)
{
    const char *value = secure_getenv(name);

    return value && value[0] == '/' ? value : NULL;
}

bool dibs__config_user_path(char *out, size_t size)
{
    const char *base = folder_variable("XDG_CONFIG_HOME");
    const char *home = folder_variable("HOME");
    int len;

    if (base)
        len = snprintf(out, size, "%s/" DIBS__CONFIG_USER, base);
    else if (home)
        len = snprintf(out, size, "%s/.config/" DIBS__CONFIG_USER, home);
    else
        return false;
    return len > 0 && (size_t)len < size;
}

/* The file that a flag or DIBS_CONFIG names, or NULL. */
static const char *asked_file(const dibs__option_set *set)
{
    for (size_t i = 0; i < set->count; i++)
        if (strcmp(set->row(i)->name, "config") == 0)
            return set->values[i].text;
    return NULL;
}

static dibs_status load_files(const dibs__option_set *set, dibs_error *err)
{
    const char *asked = asked_file(set);
    char user[PATH_MAX];
    dibs_status rc;

    if (asked)
        return load_file(set, asked, true, err);
    rc = load_file(set, DIBS__CONFIG_SYSTEM, false, err);
    if (rc == DIBS_OK && dibs__config_user_path(user, sizeof(user)))
        rc = load_file(set, user, false, err);
    return rc;
}

dibs_status dibs__config_load(const dibs__option_set *set, dibs_error *err)
{
    dibs_status rc = load_environment(set, err);

    if (rc == DIBS_OK)
        rc = load_files(set, err);
    if (rc == DIBS_OK)
        rc = heed_redis_enabled(set, err);
    return rc;
}
