/* confirm.c - asking before something is taken away. Main thread only. */
/* SPDX-License-Identifier: MIT */
#include "cli/confirm.h"

#include <stdio.h>
#include <unistd.h>

int dibs__confirm_possible(const dibs__command *cmd)
{
    if (dibs__opt_flag(cmd, "yes") || isatty(STDIN_FILENO))
        return 0;
    dibs__cli_say("there is no terminal to ask on: --yes is needed");
    return DIBS__EXIT_USAGE;
}

int dibs__confirm(const char *question)
{
    char answer[16];

    fprintf(stderr, "dibs: %s [y/N] ", question);
    if (fgets(answer, sizeof(answer), stdin) &&
        (answer[0] == 'y' || answer[0] == 'Y'))
        return 0;
    dibs__cli_say("nothing was changed");
    return 1;
}
