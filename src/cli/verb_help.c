/* verb_help.c - help: for everything, or for one verb. */
/* SPDX-License-Identifier: MIT */
#include "cli/docs.h"
#include "cli/print.h"

static int print_help(const dibs__command *cmd)
{
    char *const *words = dibs__operands(cmd);
    const dibs__verb *verb = NULL;
    const char *folder = dibs__opt_text(cmd, "man");
    dibsx_buf out;

    if (folder)
        return dibs__man_write(folder);
    for (int i = 0; i < dibs__operand_count(cmd); i++) {
        verb = dibs__verb_in(verb ? verb->name : "", words[i]);
        if (!verb) {
            dibs__cli_say("no help for '%.60s': there is no such verb",
                          words[i]);
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
