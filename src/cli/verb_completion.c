/* verb_completion.c - completion: the script of a shell. */
/* SPDX-License-Identifier: MIT */
#include "cli/docs.h"
#include "cli/print.h"

static int print_completion(const dibs__command *cmd)
{
    const char *shell = dibs__operands(cmd)[0];
    dibsx_buf out;

    dibsx_buf_init(&out, DIBS__DOC_MAX);
    if (dibs__completion(&out, shell))
        return dibs__doc_print(&out);
    dibsx_buf_fini(&out);
    dibs__cli_say(
        "there is no completion for '%.60s'; choose bash, zsh or fish", shell);
    return DIBS__EXIT_USAGE;
}

const dibs__verb dibs__verb_completion = {
    .name = "completion",
    .operands = "bash|zsh|fish",
    .summary = "print the completion script of a shell",
    .examples = "In ~/.bashrc:\n"
                "  source <(dibs completion bash)\n",
    .exits = "0 printed\n",
    .min_operands = 1,
    .max_operands = 1,
    .kind = DIBS__SHELLS,
    .plain = true,
    .run = print_completion,
};
