/* verb_job_runs.c - job start, cancel and rerun: changes of runs in a store. */
/* SPDX-License-Identifier: MIT */
#include "base/fail.h"
#include "cli/changes.h"
#include "cli/job_board.h"
#include "cli/print.h"
#include "cli/verbs.h"
#include "jobs/board_start.h"
#include "jobs/params.h"

#include <stdio.h>

/* Prints the id, and with --wait waits for the end. */
static int
report_run(const dibs__command *cmd, dibs__open_board *ob, const char *id)
{
    dibs__report report;
    bool ended;
    int code = 0;

    if (dibs__opt_flag(cmd, "json")) {
        dibs__report_begin(&report);
        dibsx_json_pair_text(&report.js, "id", id);
        code = dibs__report_end(&report);
    } else if (!dibs__opt_flag(cmd, "quiet")) {
        printf("%s\n", id);
        code = dibs__out_done();
    }
    if (!code && dibs__opt_flag(cmd, "wait"))
        code = dibs__board_await(cmd, ob, id, -1, &ended);
    return code;
}

/* Starts a run with the params of the command line. */
static dibs_status
start_run(const dibs__command *cmd, const dibs__board *board, const char *id,
          const dibs__member_of *member, dibs_error *err)
{
    dibs__pair params[DIBS__JOB_PARAMS_MAX];
    size_t count = 0;
    dibs__arena *arena = dibs__arena_new();
    dibs_status rc = arena ? dibs__params_split(dibs__opt_all(cmd, "param"),
                                                arena, params, &count, err)
                           : dibsx_nomem(err, "params");

    if (rc == DIBS_OK)
        rc = dibs__board_start(board, dibs__operands(cmd)[0], id, params, count,
                               member, err);
    dibs__arena_free(arena);
    return rc;
}

static int start_job(const dibs__command *cmd)
{
    char id[DIBS__RUN_ID_SIZE];
    const dibs__member_of member = {.batch = dibs__opt_text(cmd, "batch"),
                                    .of =
                                        dibs__opt_given(cmd, "of")
                                            ? (uint64_t)dibs__opt_int(cmd, "of")
                                            : 0};
    dibs__open_board ob;
    dibs_error err = {0};
    int code = 0;

    if (member.of && !member.batch) {
        dibs__cli_say("--of is for runs of a batch; name it with --batch");
        return DIBS__EXIT_USAGE;
    }
    code = dibs__board_open(cmd, &ob);
    if (!code) {
        dibs_status rc =
            dibs__run_id_of_hand(dibs__operands(cmd)[0],
                                 dibs__opt_text(cmd, "id"), id, &err);

        if (rc == DIBS_OK)
            rc = start_run(cmd, &ob.board, id, &member, &err);
        code = rc == DIBS_OK ? report_run(cmd, &ob, id)
                             : dibs__cli_fail(cmd, &err);
    }
    dibs__board_close(&ob);
    return code;
}

static int rerun_run(const dibs__command *cmd)
{
    dibs__run older;
    char id[DIBS__RUN_ID_SIZE];
    dibs__open_board ob;
    dibs_error err = {0};
    int code = dibs__board_open(cmd, &ob);

    dibs__run_init(&older, "");
    if (!code) {
        dibs_status rc =
            dibs__board_run(&ob.board, dibs__operands(cmd)[0], &older, &err);

        if (rc == DIBS_OK)
            rc = dibs__run_id_of_hand(older.job, NULL, id, &err);
        if (rc == DIBS_OK)
            rc = dibs__board_rerun(&ob.board, &older, id,
                                   dibs__opt_text(cmd, "from"), &err);
        dibs__cli_change_made(cmd, ob.cl, "run-rerun", dibs__operands(cmd)[0],
                              dibs__cli_change_reason(cmd), rc);
        code = rc == DIBS_OK ? report_run(cmd, &ob, id)
                             : dibs__cli_fail(cmd, &err);
    }
    dibs__run_fini(&older);
    dibs__board_close(&ob);
    return code;
}

/* ---- cancel */

static int cancel_runs(const dibs__command *cmd)
{
    char *const *ids = dibs__operands(cmd);
    dibs__open_board ob;
    int code = dibs__board_open(cmd, &ob), first = code;

    for (size_t i = 0; ids[i] && !code; i++) {
        dibs_error err = {0};
        dibs_status rc = dibs__board_cancel(&ob.board, ids[i], &err);
        int one = rc == DIBS_OK ? 0 : dibs__cli_fail(cmd, &err);

        dibs__cli_change_made(cmd, ob.cl, "run-cancel", ids[i],
                              dibs__cli_change_reason(cmd), rc);
        first = first ? first : one;
    }
    dibs__board_close(&ob);
    return first;
}

static const dibs__option options[] = {
    {DIBS__ROW_TEXT("param", "NAME=VALUE"), .letter = 'p', .many = true,
     .verbs = "job start", .help = "A param of the run. Repeat it for more."},
    {DIBS__ROW_TEXT("id", "ID"), .verbs = "job start",
     .otherwise = "a random one",
     .help = "The id of the run, behind the name of its job. A second start "
             "with the same id starts nothing."},
    {DIBS__ROW_TEXT("batch", "BATCH"), .verbs = "job start,job wait",
     .otherwise = "none",
     .help = "start: the run is a member of this batch, for which a step with "
             "wait.batch waits. wait: wait for all members of this batch."},
    {DIBS__ROW_INT("of", "N", 1, 1000000), .verbs = "job start,job wait",
     .otherwise = "another start says it",
     .help = "How many members the batch has. A start beyond them is "
             "refused."},
    {.name = "wait",
     .letter = 'w',
     .verbs = "job start,job rerun",
     .help = "Wait until the run has ended; the exit code tells how."},
    {DIBS__ROW_WAIT_LONG, .verbs = "job wait",
     .help = "How long to wait for the end of the run."},
    {DIBS__ROW_TEXT("from", "STEP"), .verbs = "job rerun",
     .otherwise = "all steps run again",
     .help = "Run this step and those below it again; the others keep their "
             "results."},
};

const dibs__option_rows dibs__options_job_runs =
    DIBS__OPTION_ROWS("job start", options);

#define RUN_EXITS                                                              \
    "75 a run of the job lives, and the job allows one; all members of the "   \
    "batch were started; with --wait: the run "                                \
    "was missed or skipped\n"                                                  \
    "122 with --wait: the run was lost\n"                                      \
    "124 with --wait: the run timed out\n"                                     \
    "125 with --wait: the run was cancelled\n"

const dibs__verb dibs__verb_job_start = {
    .name = "job start",
    .also = "run",
    .operands = "JOB",
    .summary = "start a run of a job now",
    .about = "Prints the id of the run. A node executes it as soon as one has "
             "room. concurrency in the jobs file holds for it too. A paused "
             "job can be started. dibs job run does the same.\n",
    .examples = "  dibs job start report -p region=eu --wait\n"
                "Forty runs, and a run that waits for all of them:\n"
                "  dibs job start part -p n=1 --batch b7 --of 40\n",
    .exits = "1 there is no such job; with --wait: the run failed\n" RUN_EXITS,
    .options = "json",
    .min_operands = 1,
    .max_operands = 1,
    .run = start_job,
};

const dibs__verb dibs__verb_job_rerun = {
    .name = "job rerun",
    .also = "retry",
    .operands = "RUN",
    .summary = "run a run again, or from a step on",
    .about = "Makes a new run with the definition and the params of the old "
             "one, which must have ended, and prints its id. dibs job retry "
             "does the same.\n",
    .examples = "  dibs job rerun etl@20261115T020000Z --from load\n",
    .exits = "1 there is no such run or step; with --wait: the run "
             "failed\n" RUN_EXITS,
    .options = "json,reason",
    .min_operands = 1,
    .max_operands = 1,
    .run = rerun_run,
};

const dibs__verb dibs__verb_job_cancel = {
    .name = "job cancel",
    .operands = "RUN...",
    .summary = "cancel runs",
    .about = "Steps that have not begun end at once; those that run are asked "
             "to end, and killed when their kill_after is over. Steps with "
             "when: always still run after that; a second cancel ends them "
             "too.\n",
    .examples = "  dibs job cancel nightly@20261115T020000Z\n",
    .exits = "1 there is no such run, or it has ended\n",
    .options = "reason",
    .min_operands = 1,
    .max_operands = -1,
    .run = cancel_runs,
};
