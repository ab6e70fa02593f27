/* verb_job_resume.c - `dibs job resume RUN BOOKMARK [[--] COMMAND...]`: a run goes on, once,
 * by one of its callers, who may have work to do first. Main thread only. */
/* SPDX-License-Identifier: MIT */
#include "cli/changes.h"
#include "cli/job_board.h"
#include "cli/run/held_command.h"
#include "cli/verbs.h"
#include "jobs/board_start.h"

#include <stdlib.h>
#include <string.h>

/* The reason names the bookmark. */
static void note_resume(const dibs__command *cmd, const dibs__open_board *ob,
                        dibs_status rc)
{
    dibs__cli_change_made(cmd, ob->cl, "run-resume", dibs__operands(cmd)[0],
                          dibs__operands(cmd)[1], rc);
}

static int resume_with(const dibs__command *cmd, const char *data)
{
    dibs__open_board ob;
    dibs_error err = {0};
    dibs__resumption a = {.bookmark = dibs__operands(cmd)[1],
                          .who = ob.who,
                          .data = data,
                          .len = data ? strlen(data) : 0};
    dibs_status rc;
    int code = 0;

    if (a.len > DIBS__RUN_RESULT_MAX) {
        dibs__cli_say("the data has more than %d bytes; pass on where it is",
                      DIBS__RUN_RESULT_MAX);
        return DIBS__EXIT_USAGE;
    }
    code = dibs__board_open(cmd, &ob);
    if (!code) {
        rc = dibs__board_resume(&ob.board, dibs__operands(cmd)[0], &a, &err);
        note_resume(cmd, &ob, rc);
        code = rc == DIBS_OK ? 0 : dibs__cli_fail(cmd, &err);
    }
    dibs__board_close(&ob);
    return code;
}

/* ---- a command makes the data */

static dibs_status
make_data(void *arg, char *data, size_t *len, dibs_error *err)
{
    return dibs__held_command_run(arg, data, len, err);
}

static bool is_held(const void *hc)
{
    return dibs__held_command_held(hc);
}

/* Takes the lock of the bookmark, works, and resumes. */
static dibs_status
work_at(const dibs__command *cmd, dibs__open_board *ob, dibs__held_command *hc,
        char lock[DIBS_NAME_MAX + 1], dibs_error *err)
{
    const char *run = dibs__operands(cmd)[0];
    dibs__resumption a = {.bookmark = dibs__operands(cmd)[1],
                          .who = ob->who,
                          .work = make_data,
                          .arg = hc,
                          .held = is_held,
                          .lock = hc};
    dibs_status rc = dibs__bookmark_lock(run, a.bookmark, lock, err);

    if (rc == DIBS_OK)
        rc = dibs__held_command_lock(hc, ob->cl, lock, err);
    if (rc == DIBS_BUSY)
        return dibs__bookmark_busy(run, a.bookmark, err);
    (void)setenv("DIBS_RUN", run, 1);
    (void)setenv("DIBS_BOOKMARK", a.bookmark, 1);
    return rc == DIBS_OK ? dibs__board_resume_held(&ob->board, run, &a, err)
                         : rc;
}

static int resume_after(const dibs__command *cmd)
{
    char lock[DIBS_NAME_MAX + 1];
    dibs__open_board ob = {.cl = NULL};
    dibs__held_command *hc = NULL;
    dibs_error err = {0};
    dibs_status rc = DIBS_OK;
    int code = dibs__held_command_new(cmd, dibs__operands(cmd) + 2, &hc);

    if (!code)
        code = dibs__board_open(cmd, &ob);
    if (!code) {
        rc = work_at(cmd, &ob, hc, lock, &err);
        note_resume(cmd, &ob, rc);
    }
    if (rc == DIBS_CANCELLED) {
        code = dibs__held_command_code(hc);
        if (!dibs__opt_flag(cmd, "quiet"))
            dibs__cli_say("the run was not resumed: %s", err.message);
    } else if (rc != DIBS_OK) {
        code = dibs__cli_fail(cmd, &err);
    }
    dibs__held_command_free(hc);
    dibs__board_close(&ob);
    return code;
}

static int resume_run(const dibs__command *cmd)
{
    const char *data = dibs__opt_text(cmd, "data");

    if (dibs__operand_count(cmd) == 2)
        return resume_with(cmd, data);
    if (!data)
        return resume_after(cmd);
    dibs__cli_say("the data is given by --data or written by a command; give "
                  "one of them");
    return DIBS__EXIT_USAGE;
}

static const dibs__option options[] = {
    {DIBS__ROW_TEXT("data", "TEXT"), .otherwise = "none",
     .help = "The result of the step, for those that need it: up to 4 KiB."},
};

const dibs__option_rows dibs__options_job_resume =
    DIBS__OPTION_ROWS("job resume", options);

const dibs__verb dibs__verb_job_resume = {
    .name = "job resume",
    .operands = "RUN BOOKMARK [[--] COMMAND [ARG...]]",
    .summary = "resume a run that waits at a bookmark",
    .about =
        "One of several callers resumes the run, under the lock "
        "workflow:RUN:bookmark:BOOKMARK. A caller that finds the lock "
        "held exits with 75: the resume is already in progress.\n"
        "With COMMAND the lock is held while it runs. If it exits with "
        "0, the run goes on, and its standard output is the data. "
        "Otherwise the run still waits, and another caller can try. If "
        "the lock is lost, the whole process tree of the command is dead "
        "before another caller can begin. If the store stays away after "
        "the command until the lock ends, the run still waits, and "
        "another caller does the work again. The command finds DIBS_RUN and "
        "DIBS_BOOKMARK in its environment.\n",
    .examples = "  dibs job resume order.7f3a9c2e41d0 approval --data "
                "'{\"ok\":true}'\n"
                "Work that one caller does before the run goes on:\n"
                "  dibs job resume order.7f3a9c2e41d0 approval -- ./charge "
                "7\n",
    .exits = "N the command ended with N\n"
             "1 there is no such run or bookmark, or it was resumed before\n"
             "75 the resume is already in progress, or the run has not come "
             "to the bookmark\n"
             "122 the lock was lost, and the command was "
             "ended\n" DIBS__COMMAND_EXITS,
    .options = "ttl",
    .min_operands = 2,
    .max_operands = -1,
    .tail = true,
    .names = 2,
    .run = resume_run,
};
