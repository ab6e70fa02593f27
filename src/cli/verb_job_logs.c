/* verb_job_logs.c - job logs: what the commands of a run have written. */
/* SPDX-License-Identifier: MIT */
#include "base/clock.h"
#include "base/fail.h"
#include "cli/job_board.h"
#include "cli/print.h"
#include "cli/verbs.h"
#include "jobs/board_change.h"
#include "jobs/kept_output.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LOOK_MS = 500, FOLLOW_AGAIN_MS = DIBS__FOLLOW_MS / 3 };

/* RUN[/STEP[/ATTEMPT]]; "" and 0 for what is not given. */
typedef struct place {
    char run[DIBS__RUN_ID_SIZE];
    char step[DIBS__JOB_NAME_SIZE];
    uint32_t attempt;
} place;

static bool read_place(const char *text, place *out)
{
    const char *slash = strchr(text, '/'), *second = NULL;
    char *end = NULL;
    unsigned long attempt;

    *out = (place){.attempt = 0};
    if (!slash) {
        (void)snprintf(out->run, sizeof(out->run), "%.127s", text);
        return strlen(text) < sizeof(out->run);
    }
    second = strchr(slash + 1, '/');
    if (!second)
        return dibs__step_split(text, out->run, out->step) && out->step[0];
    attempt = strtoul(second + 1, &end, 10);
    out->attempt = (uint32_t)attempt;
    if (*end || attempt == 0 || attempt > 99999 ||
        slash - text >= DIBS__RUN_ID_SIZE ||
        second - slash > DIBS__JOB_NAME_SIZE || second == slash + 1)
        return false;
    (void)snprintf(out->run, sizeof(out->run), "%.*s", (int)(slash - text),
                   text);
    (void)snprintf(out->step, sizeof(out->step), "%.*s",
                   (int)(second - slash - 1), slash + 1);
    return true;
}

/* Prints what is behind the bytes that were printed before. */
static void print_rest(const dibs__kept_output *out, uint64_t *printed)
{
    uint64_t tail_at = out->head_len + out->left_out;

    if (*printed < out->head_len) {
        (void)fwrite(out->head + *printed, 1, out->head_len - *printed, stdout);
        *printed = out->head_len;
    }
    if (*printed < tail_at) {
        printf("\n[%" PRIu64 " bytes were left out]\n", tail_at - *printed);
        *printed = tail_at;
    }
    if (*printed < tail_at + out->tail_len) {
        (void)fwrite(out->tail + (*printed - tail_at), 1,
                     out->tail_len - (*printed - tail_at), stdout);
        *printed = tail_at + out->tail_len;
    }
}

static dibs_status print_attempt(dibs__open_board *ob, const dibs__run *run,
                                 const dibs__run_step *step, uint32_t attempt,
                                 uint64_t *printed, dibs_error *err)
{
    dibs__kept_output out;
    dibs_status rc =
        dibs__kept_output_read(&ob->board, run, step, attempt, &out, err);

    if (rc == DIBS_OK)
        print_rest(&out, printed);
    dibs__kept_output_fini(&out);
    return rc == DIBS_NOTFOUND ? DIBS_OK : rc;
}

/* ---- one look */

/* How far the last attempt of each step was printed; and whether the store was away at
 * the last look. */
typedef struct progress {
    bool away;
    uint32_t attempt[DIBS__JOB_STEPS_MAX];
    uint64_t printed[DIBS__JOB_STEPS_MAX];
} progress;

static dibs_status
print_step(dibs__open_board *ob, const dibs__run *run, size_t i,
           const place *at, progress *done, dibs_error *err)
{
    const dibs__run_step *step = &run->steps[i];
    uint32_t attempt = at->attempt ? at->attempt : step->attempt;
    dibs_status rc = DIBS_OK;

    if (attempt == 0)
        return DIBS_OK;
    /* The rest of an attempt that has ended meanwhile. */
    if (done->attempt[i] && done->attempt[i] != attempt)
        rc = print_attempt(ob, run, step, done->attempt[i], &done->printed[i],
                           err);
    if (rc != DIBS_OK)
        return rc;
    if (done->attempt[i] != attempt)
        done->printed[i] = 0;
    done->attempt[i] = attempt;
    return print_attempt(ob, run, step, attempt, &done->printed[i], err);
}

/* *ended: nothing will come any more. */
static dibs_status print_run(dibs__open_board *ob, const place *at,
                             progress *done, bool *ended, dibs_error *err)
{
    dibs__run run;
    bool found = false;
    dibs_status rc = dibs__board_run(&ob->board, at->run, &run, err);

    for (size_t i = 0; rc == DIBS_OK && i < run.step_count; i++) {
        if (at->step[0] && strcmp(at->step, run.steps[i].name) != 0)
            continue;
        found = true;
        rc = print_step(ob, &run, i, at, done, err);
    }
    if (rc == DIBS_OK && !found)
        rc = dibsx_fail(err, DIBS_NOTFOUND, "the run %s has no step %s",
                        at->run, at->step);
    *ended = dibs__state_final(run.state);
    dibs__run_fini(&run);
    return rc;
}

/* Output comes soon while its node knows that somebody waits for it; otherwise it comes
 * later, so that a failure here is none of the caller's. */
static void follow_run(dibs__open_board *ob, const char *id, dibsx_nsec *at)
{
    dibsx_nsec now = dibsx_now();

    if (now < *at)
        return;
    *at = dibsx_after_ms(now, FOLLOW_AGAIN_MS);
    (void)!dibs__board_follow(&ob->board, id, NULL);
}

/* While the store is away the run goes on, so that who follows it (`ended` is theirs)
 * hears of that once and looks again. */
static int look(const dibs__command *cmd, dibs__open_board *ob, const place *at,
                progress *done, bool *ended)
{
    bool over, away = done->away;
    dibs_error err = {0};
    dibs_status rc = print_run(ob, at, done, &over, &err);

    done->away = rc != DIBS_OK;
    if (rc != DIBS_OK && !(ended && err.retriable))
        return dibs__cli_fail(cmd, &err);
    if (done->away && !away)
        (void)dibs__cli_fail(cmd, &err);
    if (ended)
        *ended = over && !done->away;
    return dibs__out_done();
}

static int print_logs(const dibs__command *cmd)
{
    const char *operand = dibs__operands(cmd)[0];
    bool follow = dibs__opt_flag(cmd, "follow"), ended = false;
    progress done = {0};
    dibsx_nsec follow_at = 0;
    dibs__open_board ob;
    place at;
    int code = 0;

    if (!read_place(operand, &at)) {
        dibs__cli_say("'%.60s' is no RUN[/STEP[/ATTEMPT]]", operand);
        return DIBS__EXIT_USAGE;
    }
    code = dibs__board_open(cmd, &ob);
    while (!code) {
        code = look(cmd, &ob, &at, &done, follow ? &ended : NULL);
        if (ended || !follow)
            break;
        follow_run(&ob, at.run, &follow_at);
        (void)poll(NULL, 0, LOOK_MS);
    }
    dibs__board_close(&ob);
    return code;
}

static const dibs__option options[] = {
    {.name = "follow",
     .letter = 'f',
     .help = "Print what comes until the run has ended. A node writes output "
             "down every half second while somebody follows it."},
};

const dibs__option_rows dibs__options_job_logs =
    DIBS__OPTION_ROWS("job logs", options);

const dibs__verb dibs__verb_job_logs = {
    .name = "job logs",
    .operands = "RUN[/STEP[/ATTEMPT]]",
    .summary = "print the output of a run",
    .about = "Prints what the commands of the run wrote, of each step its last "
             "attempt. output in the jobs file says how much is kept; bytes "
             "that were left out are counted. Output goes with its run.\n",
    .examples = "  dibs job logs report@20261115T020000Z\n"
                "The first attempt of a step:\n"
                "  dibs job logs etl@20261115T020000Z/transform/1\n",
    .exits = "1 there is no such run or step\n",
    .min_operands = 1,
    .max_operands = 1,
    .run = print_logs,
};
