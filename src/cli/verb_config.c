/* verb_config.c - config: what is in force, and who said so. */
/* SPDX-License-Identifier: MIT */
#include "base/url.h"
#include "cli/docs.h"
#include "cli/option_values.h"
#include "cli/options.h"
#include "cli/print.h"
#include "config/default_url.h"
#include "config/path_url.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void add_source(dibsx_buf *out, const dibs__option *option,
                       const dibs__option_value *setting)
{
    switch (setting->source) {
    case DIBS__FROM_FLAG:
        dibsx_buf_printf(out, "--%s", option->name);
        break;
    case DIBS__FROM_ENV:
        dibsx_buf_puts(out, setting->place ? setting->place : option->env);
        break;
    case DIBS__FROM_FILE:
        dibsx_buf_puts(out, setting->place);
        break;
    case DIBS__FROM_DEFAULT:
    case DIBS__FROM_NOTHING:
        dibsx_buf_puts(out, "default");
        break;
    }
}

/* "default", "DIBS_TTL", "--ttl" or "path:line:column"; for a secret that a file
 * has, "DIBS_URL, file:PATH". */
static void
source_text(const dibs__option *option, const dibs__option_value *setting,
            char *out, size_t size)
{
    dibsx_buf text;

    dibsx_buf_init(&text, size - 1);
    add_source(&text, option, setting);
    if (setting->file)
        dibsx_buf_printf(&text, ", %s", setting->file);
    snprintf(out, size, "%s", dibsx_buf_text(&text));
    dibsx_buf_fini(&text);
}

/* The part of a setting that may be shown; `room` holds it when it had to be
 * changed. NULL when there is nothing. */
static const char *
value_text(const dibs__option *option, const dibs__option_value *setting,
           char *room, size_t size)
{
    if (!setting->text || !option->secret)
        return setting->text;
    dibsx_url_redact(setting->text, room, size);
    return room;
}

/* The store in force. */
typedef struct store_shown {
    char url[DIBSX_URL_MAX]; /* redacted */
    char source[DIBSX_URL_MAX];
} store_shown;

static const char *read_variable(const char *name)
{
    const char *value = getenv(name);

    return value && *value ? value : NULL;
}

/* "redis:" leaves the server to the variables of other programs. */
static void find_redis(store_shown *shown)
{
    const char *url = read_variable("REDIS_URL");
    const char *host = read_variable("REDIS_HOST");
    const char *port = read_variable("REDIS_PORT");
    size_t len = strlen(shown->source);

    if (url)
        dibsx_url_redact(url, shown->url, sizeof(shown->url));
    else
        snprintf(shown->url, sizeof(shown->url), "redis://%s:%s",
                 host ? host : "localhost", port ? port : "6379");
    snprintf(shown->source + len, sizeof(shown->source) - len, "%s%s%s%s",
             url ? ", REDIS_URL" : "", !url && host ? ", REDIS_HOST" : "",
             !url && port ? ", REDIS_PORT" : "",
             url || host || port ? "" : ", default");
}

static void find_default(store_shown *shown)
{
    dibs_error err;
    dibsx_buf path;

    dibsx_buf_init(&path, sizeof(shown->url) - sizeof(DIBS__DEFAULT_URL));
    if (dibs__store_default_path(&path, &err) == DIBS_OK)
        snprintf(shown->url, sizeof(shown->url), DIBS__DEFAULT_URL "%s",
                 dibsx_buf_text(&path));
    else
        snprintf(shown->url, sizeof(shown->url), "none: %s", err.message);
    dibsx_buf_fini(&path);
}

static void find_path(const char *path, store_shown *shown)
{
    dibsx_buf url;

    dibsx_buf_init(&url, sizeof(shown->url) - 1);
    dibs__store_path_url(&url, path);
    snprintf(shown->url, sizeof(shown->url), "%s", dibsx_buf_text(&url));
    dibsx_buf_fini(&url);
}

static void find_store(const dibs__command *cmd, store_shown *shown)
{
    const dibs__option *option = dibs__option_find("config", "url", 3);
    const char *url = dibs__cli_url(cmd);

    source_text(option, dibs__option_value_of(cmd, option), shown->source,
                sizeof(shown->source));
    if (strcmp(url, DIBS__DEFAULT_URL) == 0)
        find_default(shown);
    else if (strcmp(url, "redis:") == 0)
        find_redis(shown);
    else if (dibs__store_is_path(url))
        find_path(url, shown);
    else
        dibsx_url_redact(url, shown->url, sizeof(shown->url));
}

static int print_json(const dibs__command *cmd)
{
    char room[DIBSX_URL_MAX], source[DIBSX_URL_MAX];
    dibs__report report;
    store_shown store;

    find_store(cmd, &store);
    dibs__report_begin(&report);
    dibsx_json_key(&report.js, "store");
    dibsx_json_open(&report.js, '{');
    dibsx_json_pair_text(&report.js, "url", store.url);
    dibsx_json_pair_text(&report.js, "source", store.source);
    dibsx_json_close(&report.js, '}');
    dibsx_json_key(&report.js, "settings");
    dibsx_json_open(&report.js, '[');
    for (size_t i = 0; i < dibs__option_count(); i++) {
        const dibs__option *option = dibs__option_at(i);
        const dibs__option_value *setting = dibs__option_value_of(cmd, option);

        if (!option->env)
            continue;
        source_text(option, setting, source, sizeof(source));
        dibsx_json_open(&report.js, '{');
        dibsx_json_pair_text(&report.js, "name", option->name);
        dibsx_json_pair_text(&report.js, "value",
                             value_text(option, setting, room, sizeof(room)));
        dibsx_json_pair_text(&report.js, "source", source);
        dibsx_json_close(&report.js, '}');
    }
    dibsx_json_close(&report.js, ']');
    return dibs__report_end(&report);
}

static int print_table(const dibs__command *cmd)
{
    static const char *const heads[] = {"SETTING", "VALUE", "FROM"};
    char room[DIBSX_URL_MAX], source[DIBSX_URL_MAX];
    dibs__table table;
    store_shown store;
    int code;

    find_store(cmd, &store);
    dibs__table_init(&table, sizeof(heads) / sizeof(heads[0]), heads);
    dibs__table_cell(&table, "(store)");
    dibs__table_cell(&table, store.url);
    dibs__table_cell(&table, store.source);
    for (size_t i = 0; i < dibs__option_count(); i++) {
        const dibs__option *option = dibs__option_at(i);
        const dibs__option_value *setting = dibs__option_value_of(cmd, option);
        const char *value;

        if (!option->env)
            continue;
        value = value_text(option, setting, room, sizeof(room));
        source_text(option, setting, source, sizeof(source));
        dibs__table_cell(&table, option->name);
        dibs__table_cell(&table, value ? value : "");
        dibs__table_cell(&table, source);
    }
    code = dibs__table_print(&table, dibs__colours_of(cmd));
    dibs__table_fini(&table);
    return code;
}

static int show_config(const dibs__command *cmd)
{
    dibsx_buf out;

    if (dibs__opt_flag(cmd, "doc")) {
        dibsx_buf_init(&out, DIBS__DOC_MAX);
        dibs__config_doc(&out);
        return dibs__doc_print(&out);
    }
    return dibs__opt_flag(cmd, "json") ? print_json(cmd) : print_table(cmd);
}

static const dibs__option options[] = {
    {.name = "doc",
     .help = "Print every key of the file with its option and variable, in "
             "Markdown."},
};

const dibs__option_rows dibs__options_config =
    DIBS__OPTION_ROWS("config", options);

const dibs__verb dibs__verb_config = {
    .name = "config",
    .summary = "print the configuration in force and where it comes from",
    .about = "Flags win over DIBS_* variables, these over configuration "
             "files, these over defaults. Passwords are not shown.\n"
             "The first line, (store), is the store in force: the file of the "
             "embedded store, or the server. Programs that call "
             "dibs_open(NULL, ...) use it too.\n",
    .examples = "Is this file right?\n"
                "  dibs config --config ./dibs.yaml\n",
    .exits = "0 printed\n"
             "78 a setting is wrong; the message says where\n",
    .options = "json",
    .run = show_config,
};
