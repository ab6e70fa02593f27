/* verb_help.c - help: for everything, or for one verb. */
/* SPDX-License-Identifier: MIT */
#include "cli/docs.h"
#include "cli/options.h"
#include "cli/parse.h"
#include "cli/print.h"

static int print_help(const dibs__command *cmd)
{
    char *const *words = dibs__operands(cmd);
    const dibs__verb *verb = NULL;
    const char *folder = dibs__opt_text(cmd, "man");
    dibs_error err = {0};
    dibsx_buf out;

    if (folder)
        return dibs__man_write(folder);
    for (int i = 0; i < dibs__operand_count(cmd); i++) {
        const char *group = verb ? verb->name : "";

        verb = dibs__verb_in(group, words[i]);
        if (!verb) {
            (void)dibs__refuse_verb(group, words[i], &err);
            dibs__cli_say("cannot show help: %s", err.message);
            return DIBS__EXIT_USAGE;
        }
    }
    dibsx_buf_init(&out, DIBS__DOC_MAX);
    if (verb)
        dibs__help_verb(&out, verb, dibs__colours_of(cmd));
    else
        dibs__help_overview(&out, dibs__colours_of(cmd));
    return dibs__doc_print(&out);
}

static const dibs__option options[] = {
    {DIBS__ROW_TEXT("man", "DIR"), .hidden = true,
     .help = "Write the man pages into this folder."},
};

const dibs__option_rows dibs__options_help = DIBS__OPTION_ROWS("help", options);

const dibs__verb dibs__verb_help = {
    .name = "help",
    .operands = "[VERB...]",
    .summary = "show help, for everything or for one verb",
    .exits = "0 shown\n",
    .max_operands = 2,
    .kind = DIBS__VERBS,
    .plain = true,
    .run = print_help,
};
