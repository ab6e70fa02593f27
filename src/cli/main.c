/* main.c - the command `dibs`: parse, configure, dispatch, flush. */
/* SPDX-License-Identifier: MIT */
#include "base/forget.h"
#include "cli/docs.h"
#include "cli/parse.h"
#include "cli/print.h"
#include "exec/executor_main.h"
#include "exec/no_core_dump.h"
#include "exec/signals.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

/* Descriptors 0 to 2 must be taken, or the store's file could become one of
 * them. They are opened the wrong way round, so that using them still fails. */
static bool standard_fds_open(void)
{
    for (int fd = 0; fd <= 2; fd++) {
        if (fcntl(fd, F_GETFD) < 0 &&
            open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY) != fd)
            return false;
    }
    return true;
}

static int usage_error(const dibs__command *cmd, const dibs_error *err)
{
    const char *verb = cmd->verb ? cmd->verb->name : NULL;

    dibs__cli_say("%s", err->message);
    dibs__cli_say("try 'dibs %s%s--help'", verb ? verb : "", verb ? " " : "");
    return DIBS__EXIT_USAGE;
}

static int show_help(const dibs__command *cmd)
{
    dibsx_buf out;

    dibsx_buf_init(&out, DIBS__DOC_MAX);
    if (cmd->verb)
        dibs__help_verb(&out, cmd->verb, dibs__colours_of(cmd));
    else
        dibs__help_overview(&out, dibs__colours_of(cmd));
    return dibs__doc_print(&out);
}

/* `dibs` alone: what there is, as an error. */
static int no_verb(void)
{
    static const dibs__colours plain = {"", "", "", "", "", ""};
    dibsx_buf out;

    dibsx_buf_init(&out, DIBS__DOC_MAX);
    dibs__help_brief(&out, &plain);
    fputs(dibsx_buf_text(&out), stderr);
    dibsx_buf_fini(&out);
    return DIBS__EXIT_USAGE;
}

static int dispatch(dibs__command *cmd, int argc, char **argv)
{
    dibs_error err = {0};

    if (dibs__parse(cmd, argc, argv, &err) != DIBS_OK)
        return usage_error(cmd, &err);
    if (dibs__opt_flag(cmd, "help"))
        return show_help(cmd);
    if (dibs__opt_flag(cmd, "version"))
        cmd->verb = dibs__verb_find("version");
    else if (!cmd->verb)
        return no_verb();
    else if (dibs__parse_operands(cmd, &err) != DIBS_OK)
        return usage_error(cmd, &err);
    if (!cmd->verb->plain && dibs__command_configure(cmd, &err) != DIBS_OK) {
        dibs__cli_say("%s", err.message);
        return DIBS__EXIT_CONFIG;
    }
    dibsx_forget();
    return cmd->verb->run(cmd);
}

int main(int argc, char **argv)
{
    dibs__command cmd;
    int code, flushed;

    dibs__executor_play(argc, argv);
    if (!standard_fds_open())
        return DIBS__EXIT_INTERNAL;
    dibs__core_dump_forbid();
    dibs__command_init(&cmd);
    code = dispatch(&cmd, argc, argv);
    dibs__command_fini(&cmd);
    flushed = dibs__out_done();
    if (flushed == DIBS__EXIT_SIGNAL + SIGPIPE)
        dibs__signal_die(SIGPIPE);
    return code ? code : flushed;
}
