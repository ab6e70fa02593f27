/* verb_job_wait.c - job wait: the end of a run, or of all members of a batch. */
/* SPDX-License-Identifier: MIT */
#include "base/clock.h"
#include "base/fail.h"
#include "cli/job_board.h"
#include "cli/print.h"
#include "cli/verbs.h"
#include <dibs/jobs.h>

#include <stdio.h>

enum { LOST_CODE = 122, TIMEOUT_CODE = 124, CANCELLED_CODE = 125 };

static int code_of_run(const dibs__run *run)
{
    if (run->state == DIBS__STATE_OK)
        return 0;
    if (run->state == DIBS__STATE_CANCELLED)
        return CANCELLED_CODE;
    if (run->state == DIBS__STATE_MISSED || run->state == DIBS__STATE_SKIPPED)
        return DIBS__EXIT_BUSY;
    if (run->reason == DIBS__REASON_LOST)
        return LOST_CODE;
    return run->reason == DIBS__REASON_TIMEOUT ? TIMEOUT_CODE : 1;
}

/* *code is that of the run, once it has ended. */
static dibs_status look_at_run(const char *id, const dibs_value *value,
                               bool *ended, int *code, dibs_error *err)
{
    dibs__run run;
    dibs_status rc = DIBS_OK;

    dibs__run_init(&run, id);
    if (value->version == 0)
        rc = dibsx_fail(err, DIBS_NOTFOUND,
                        "the run %s is not in the store, or is gone from it",
                        id);
    else
        rc = dibs__run_read(&run, id, value->data, value->len, err);
    *ended = rc == DIBS_OK && dibs__state_final(run.state);
    if (*ended)
        *code = code_of_run(&run);
    dibs__run_fini(&run);
    return rc;
}

int dibs__board_await(const dibs__command *cmd, dibs__open_board *ob,
                      const char *id, int64_t wait_ms, bool *ended)
{
    dibsx_nsec until = dibsx_after_ms(dibsx_now(), wait_ms);
    char inner[DIBS__RUN_ID_SIZE + 8], key[DIBS_NAME_MAX + 1];
    dibs_watch *watch = NULL;
    dibs_error err = {0};
    int code = 0;
    dibs_status rc = DIBS_OK;

    *ended = false;
    (void)snprintf(inner, sizeof(inner), "run/%s", id);
    rc = dibs__board_key(&ob->board, inner, key, &err);
    if (rc == DIBS_OK)
        rc = dibs_state_watch(ob->cl, key, &watch, &err);
    while (rc == DIBS_OK && !*ended) {
        dibs_change change = {0};

        rc = dibs_watch_next(watch, dibsx_wait_ms(until, dibsx_now()), &change,
                             &err);
        if (rc == DIBS_OK)
            rc = look_at_run(id, &change.value, ended, &code, &err);
        dibs_value_free(&change.value);
    }
    dibs_watch_free(watch);
    if (rc == DIBS_TIMEOUT)
        rc = dibsx_fail(&err, rc, "the run %s has not ended in time", id);
    return rc == DIBS_OK ? code : dibs__cli_fail(cmd, &err);
}

/* ---- the verb */

static int
print_run(const dibs__command *cmd, dibs__open_board *ob, const char *id)
{
    dibs_error err = {0};
    dibs__report report;
    dibs__job *job = NULL;
    dibs__run run;
    dibs_status rc = dibs__board_run(&ob->board, id, &run, &err);
    int code = rc == DIBS_OK ? dibs__board_definition(cmd, ob, &run, &job)
                             : dibs__cli_fail(cmd, &err);

    if (!code) {
        dibs__report_begin(&report);
        dibsx_json_key(&report.js, "runs");
        dibsx_json_open(&report.js, '[');
        dibs__json_run(&report.js, &run, job);
        dibsx_json_close(&report.js, ']');
        code = dibs__report_end(&report);
    }
    dibs__job_free(job);
    dibs__run_fini(&run);
    return code;
}

static int
wait_run(const dibs__command *cmd, dibs__open_board *ob, int64_t wait_ms)
{
    const char *id = dibs__operands(cmd)[0];
    bool ended;
    int code = dibs__board_await(cmd, ob, id, wait_ms, &ended), printed = 0;

    if (ended && dibs__opt_flag(cmd, "json"))
        printed = print_run(cmd, ob, id);
    return printed ? printed : code;
}

static int report_batch(const dibs__command *cmd, const char *batch,
                        const dibs_batch_sum *sum)
{
    dibs__report report;

    if (dibs__opt_flag(cmd, "json")) {
        dibs__report_begin(&report);
        dibsx_json_pair_text(&report.js, "batch", batch);
        dibsx_json_pair_uint(&report.js, "of", sum->of);
        dibsx_json_pair_uint(&report.js, "ended", sum->ended);
        dibsx_json_pair_uint(&report.js, "failed", sum->failed);
        return dibs__report_end(&report);
    }
    return 0;
}

static int
wait_batch(const dibs__command *cmd, dibs__open_board *ob, int64_t wait_ms)
{
    const char *batch = dibs__opt_text(cmd, "batch");
    uint32_t of =
        dibs__opt_given(cmd, "of") ? (uint32_t)dibs__opt_int(cmd, "of") : 0;
    char name[DIBS_RUN_SIZE];
    dibs_batch_sum sum = {.of = 0};
    dibs_error err = {0};
    dibs_status rc;
    int code = 0;

    (void)snprintf(name, sizeof(name), "%s/%s", ob->board.name, batch);
    rc = dibs_batch_wait(ob->cl, name, of, wait_ms, &sum, &err);
    if (rc == DIBS_OK || rc == DIBS_TIMEOUT)
        code = report_batch(cmd, batch, &sum);
    if (code)
        return code;
    if (rc != DIBS_OK)
        return dibs__cli_fail(cmd, &err);
    if (sum.failed > 0)
        dibs__cli_say("%u of the %u members of the batch %s did not end well",
                      (unsigned)sum.failed, (unsigned)sum.of, batch);
    return sum.failed > 0 ? 1 : 0;
}

static int wait_for(const dibs__command *cmd)
{
    int64_t wait_ms =
        dibs__opt_given(cmd, "wait") ? dibs__opt_ms(cmd, "wait") : -1;
    bool is_batch = dibs__opt_text(cmd, "batch") != NULL;
    dibs__open_board ob;
    int code;

    if (is_batch == (dibs__operands(cmd)[0] != NULL) ||
        (dibs__opt_given(cmd, "of") && !is_batch)) {
        dibs__cli_say("dibs job wait takes a RUN, or a batch by --batch, to "
                      "which --of belongs");
        return DIBS__EXIT_USAGE;
    }
    code = dibs__board_open(cmd, &ob);
    if (!code)
        code = is_batch ? wait_batch(cmd, &ob, wait_ms)
                        : wait_run(cmd, &ob, wait_ms);
    dibs__board_close(&ob);
    return code;
}

const dibs__verb dibs__verb_job_wait = {
    .name = "job wait",
    .operands = "[RUN]",
    .summary = "wait until a run or a batch has ended",
    .about = "The exit code tells how the run ended. With --batch it waits "
             "until all members of a batch have ended: as many as --of says, "
             "or as the "
             "starts of members have said. --json prints the run as dibs job "
             "show does; or the numbers of members, of those that have ended, "
             "and of those that did not end well.\n",
    .examples = "  dibs job wait report.7f3a9c2e41d0 -w 10m\n"
                "  dibs job wait --batch b7 -w 1h\n",
    .exits = "1 there is no such run or batch, or it failed; a member did not "
             "end well\n"
             "75 not ended in time; or the run was missed or skipped\n"
             "122 the run was lost\n"
             "124 the run timed out\n"
             "125 the run was cancelled\n",
    .options = "json",
    .min_operands = 0,
    .max_operands = 1,
    .run = wait_for,
};
