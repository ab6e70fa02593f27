/* verb_config.c - config: what is in force, and who said so. */
/* SPDX-License-Identifier: MIT */
#include "base/url.h"
#include "cli/docs.h"
#include "cli/option_values.h"
#include "cli/print.h"

#include <stdio.h>

/* "default", "DIBS_TTL", "--ttl" or "path:line:column". */
static void
source_text(const dibs__option *option, const dibs__option_value *setting,
            char *out, size_t size)
{
    switch (setting->source) {
    case DIBS__FROM_FLAG:
        snprintf(out, size, "--%s", option->name);
        break;
    case DIBS__FROM_ENV:
        snprintf(out, size, "%s", option->env);
        break;
    case DIBS__FROM_FILE:
        snprintf(out, size, "%s", setting->place);
        break;
    case DIBS__FROM_DEFAULT:
    case DIBS__FROM_NOTHING:
        snprintf(out, size, "default");
        break;
    }
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

static int print_json(const dibs__command *cmd)
{
    char room[DIBSX_URL_MAX], source[DIBSX_URL_MAX];
    dibs__report report;

    dibs__report_begin(&report);
    dibsx_json_key(&report.js, "settings");
    dibsx_json_open(&report.js, '[');
    for (size_t i = 0; i < dibs__option_count; i++) {
        const dibs__option *option = &dibs__options[i];
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
    int code;

    dibs__table_init(&table, sizeof(heads) / sizeof(heads[0]), heads);
    for (size_t i = 0; i < dibs__option_count; i++) {
        const dibs__option *option = &dibs__options[i];
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

const dibs__verb dibs__verb_config = {
    .name = "config",
    .summary = "print the configuration in force and where it comes from",
    .about = "Flags win over DIBS_* variables, these over configuration "
             "files, these over defaults. Passwords are not shown.\n",
    .examples = "Is this file right?\n"
                "  dibs config --config ./dibs.yaml\n",
    .exits = "0 printed\n"
             "78 a setting is wrong; the message says where\n",
    .options = "json",
    .run = show_config,
};
