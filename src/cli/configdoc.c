/* configdoc.c - docs/config.md from the option table. Pure. */
/* SPDX-License-Identifier: MIT */
#include "cli/docs.h"
#include "config/config.h"

static const char intro[] =
    "<!-- Made by `dibs config --doc`; a test compares. -->\n"
    "# Configuration\n"
    "\n"
    "The first of these that sets a value wins:\n"
    "\n"
    "1. a flag on the command line;\n"
    "2. an environment variable (an empty one counts as not set);\n"
    "3. the user's file, `$XDG_CONFIG_HOME/" DIBS__CONFIG_USER
    "` (`~/.config` when the variable is not set);\n"
    "4. the machine's file, `" DIBS__CONFIG_SYSTEM "`;\n"
    "5. the default.\n"
    "\n"
    "`--config FILE` or `DIBS_CONFIG` names one file to read instead of both. "
    "`dibs config` prints each\n"
    "value in force and its source, with passwords hidden.\n"
    "\n"
    "Files are YAML: one mapping of the keys below. An unknown or repeated "
    "key, an anchor, an alias or a\n"
    "tag is an error; dibs reports file, line and column and exits with 78. A "
    "key without a value counts as\n"
    "not set.\n"
    "\n"
    "```yaml\n"
    "url: sqlite:/var/lib/dibs/locks.db\n"
    "prefix: 'billing:'\n"
    "ttl: 1m\n"
    "retries: 3\n"
    "```\n"
    "\n"
    "Durations are written `500ms`, `30s`, `2m`, `1h` or `1h30m`; a bare "
    "number is seconds.\n"
    "\n"
    "If the value of a setting marked *secret* is `file:PATH`, dibs reads the "
    "first line of that file\n"
    "instead.\n"
    "\n"
    "## Settings\n"
    "\n"
    "| key | flag | variable | default | meaning |\n"
    "|---|---|---|---|---|\n";

static void cell(dibsx_buf *out, const char *before, const char *text)
{
    if (text)
        dibsx_buf_printf(out, " `%s%s` |", before, text);
    else
        dibsx_buf_puts(out, " |");
}

static void put_row(dibsx_buf *out, const dibs__option *option)
{
    dibsx_buf_putc(out, '|');
    cell(out, "", option->key);
    cell(out, "--", option->name);
    cell(out, "", option->env);
    if (option->otherwise)
        dibsx_buf_printf(out, " %s |", option->otherwise);
    else
        cell(out, "", option->initial);
    dibsx_buf_printf(out, " %s%s |\n", option->secret ? "*Secret.* " : "",
                     option->help);
}

void dibs__config_doc(dibsx_buf *out)
{
    dibsx_buf_puts(out, intro);
    for (size_t i = 0; i < dibs__option_count; i++) {
        if (dibs__options[i].env)
            put_row(out, &dibs__options[i]);
    }
    dibsx_buf_puts(out, "\nThe variables `NO_COLOR`, `TERM`, `HOME` and "
                        "`XDG_*` have their usual meaning.\n");
}
