/* configdoc.c - docs/config.md from the option table. Pure. */
/* SPDX-License-Identifier: MIT */
#include "cli/docs.h"

#include "config/config.h"
#include <string.h>

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
    "not set. Text that ends in a colon needs quotes: `prefix: 'workflow:'`.\n"
    "\n"
    "```yaml\n"
    "url: sqlite:/var/lib/dibs/locks.db\n"
    "prefix: 'billing:'\n"
    "ttl: 1m\n"
    "retries: 3\n"
    "serve:\n"
    "  listen: 127.0.0.1:3427\n"
    "```\n"
    "\n"
    "A key with a dot below, `serve.listen`, is a key in a group: the file has "
    "the group as a line of its own.\n"
    "\n"
    "## Readers\n"
    "\n"
    "`dibs` reads all of it. A program whose client is opened without a URL, "
    "`dibs_open(NULL, ...)`, reads the\n"
    "same variables and the same files, so that programs and commands exclude "
    "each other. It takes the\n"
    "settings marked *program* below, unless the program sets them itself; "
    "a lock inherits `ttl`, `durability`\n"
    "and `owner` from its client. It checks the others and leaves them alone: "
    "how long to wait, and what to do\n"
    "without a store or without locks, is for the program to say. A client "
    "that is opened "
    "with a URL reads nothing of this.\n"
    "\n"
    "A program that runs with rights of another user than its caller "
    "(setuid, setgid, capabilities) reads the\n"
    "machine's file only.\n"
    "\n"
    "The URL `sqlite:` selects the embedded store in its default file, "
    "whatever a file says.\n"
    "\n"
    "## Values\n"
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
    "| key | flag | variable | read by | default | meaning |\n"
    "|---|---|---|---|---|---|\n";

static void cell(dibsx_buf *out, const char *before, const char *text)
{
    if (text)
        dibsx_buf_printf(out, " `%s%s` |", before, text);
    else
        dibsx_buf_puts(out, " |");
}

/* The verbs that have it, and whether programs do. */
static void put_readers(dibsx_buf *out, const dibs__option *option)
{
    const char *before = " ";

    if (dibs__option_global(option))
        dibsx_buf_puts(out, " every verb");
    for (size_t v = 0; v < dibs__verb_count; v++) {
        const char *verb = dibs__verbs[v]->name;

        if (dibs__option_global(option) || !dibs__option_has_verb(option, verb))
            continue;
        dibsx_buf_printf(out, "%s`%s`", before, verb);
        before = ", ";
    }
    dibsx_buf_puts(out, option->library ? ", *program* |" : " |");
}

static void put_row(dibsx_buf *out, const dibs__option *option)
{
    dibsx_buf_putc(out, '|');
    cell(out, "", option->key);
    cell(out, "--", option->name);
    cell(out, "", option->env);
    put_readers(out, option);
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
    for (size_t i = 0; i < dibs__option_count(); i++) {
        if (dibs__option_at(i)->env)
            put_row(out, dibs__option_at(i));
    }
    dibsx_buf_puts(out, "\nThe variables `NO_COLOR`, `TERM`, `HOME` and "
                        "`XDG_*` have their usual meaning. If none of the "
                        "above gives a URL,\n"
                        "`REDIS_ENABLED=true` stands for `DIBS_URL=redis:`: "
                        "the server of `REDIS_URL`, or of `REDIS_HOST` and\n"
                        "`REDIS_PORT`. `REDIS_ENABLED=false` leaves the "
                        "embedded store, which excludes on one machine.\n");
}
