/* verb_job_pause.c - job pause, unpause and rm: an operator's changes of jobs. */
/* SPDX-License-Identifier: MIT */
#include "base/fail.h"
#include "cli/changes.h"
#include "cli/job_board.h"
#include "cli/verbs.h"
#include "jobs/board_change.h"
#include "jobs/board_set.h"
#include "jobs/moment.h"

#include <stdio.h>
#include <string.h>

/* Changes one job of a board; `order` is that of a pause. */
typedef dibs_status change_fn(const dibs__board *board, const char *job,
                              const dibs__pause_order *order, dibs_error *err);

static dibs_status unpause_one(const dibs__board *board, const char *job,
                               const dibs__pause_order *order, dibs_error *err)
{
    (void)order;
    return dibs__board_unpause(board, job, err);
}

typedef struct change {
    const char *action; /* for the trail */
    change_fn *fn;
    const dibs__pause_order *order;
    size_t changed; /* of many: jobs that have, or may have */
} change;

static const char *reason_of(const dibs__command *cmd, const change *c)
{
    return c->order ? c->order->note : dibs__cli_change_reason(cmd);
}

static int change_one(const dibs__command *cmd, dibs__open_board *ob,
                      const char *name, const change *c)
{
    dibs_error err = {0};
    dibs_status rc = c->fn(&ob->board, name, c->order, &err);

    dibs__cli_change_made(cmd, ob->cl, c->action, name, reason_of(cmd, c), rc);
    return rc == DIBS_OK ? 0 : dibs__cli_fail(cmd, &err);
}

static int change_listed(const dibs__command *cmd, dibs__open_board *ob,
                         const dibs__job_state *state, void *arg)
{
    change *c = arg;
    dibs_error err = {0};
    dibs_status rc = c->fn(&ob->board, state->job, c->order, &err);

    c->changed += rc == DIBS_OK || rc == DIBS_UNKNOWN;
    return rc == DIBS_OK ? 0 : dibs__cli_fail(cmd, &err);
}

/* One entry for all jobs, as the daemon has it: the trail keeps 1,000, and one each
 * could push out all others. */
static int change_matching(const dibs__command *cmd, dibs__open_board *ob,
                           const char *match, change *c)
{
    const char *why = reason_of(cmd, c);
    char reason[DIBS__RUN_NOTE_SIZE + 32];
    int code = dibs__board_each(cmd, ob, match, change_listed, c);

    if (c->changed == 0)
        return code;
    (void)snprintf(reason, sizeof(reason), "%zu job%s%s%s", c->changed,
                   c->changed == 1 ? "" : "s", why && *why ? ": " : "",
                   why ? why : "");
    dibs__cli_change_made(cmd, ob->cl, c->action, match ? match : "*", reason,
                          DIBS_OK);
    return code;
}

/* The jobs that are named, or all that match. */
static int
change_jobs(const dibs__command *cmd, dibs__open_board *ob, change *c)
{
    char *const *names = dibs__operands(cmd);
    const char *match = dibs__opt_text(cmd, "match");
    bool all = dibs__opt_flag(cmd, "all");
    int first = 0;

    if ((names[0] != NULL) + (match != NULL) + all != 1) {
        dibs__cli_say("give names of jobs, or --match GLOB, or --all");
        return DIBS__EXIT_USAGE;
    }
    if (match && strlen(match) > DIBS__JOB_NAME_MAX) {
        dibs__cli_say("--match has more than %d bytes, which no name has",
                      DIBS__JOB_NAME_MAX);
        return DIBS__EXIT_USAGE;
    }
    if (!names[0])
        return change_matching(cmd, ob, match, c);
    for (size_t i = 0; names[i]; i++) {
        int one = change_one(cmd, ob, names[i], c);

        first = first ? first : one;
    }
    return first;
}

static int pause_jobs(const dibs__command *cmd)
{
    const char *until = dibs__opt_text(cmd, "until");
    const char *note = dibs__opt_text(cmd, "note");
    dibs__open_board ob;
    dibs__pause_order o = {.by = ob.who, .note = note ? note : ""};
    change c = {"job-pause", dibs__board_pause, &o, 0};
    dibs__zone *utc = NULL;
    dibs_error err = {0};
    int64_t until_s = 0;
    int code = 0;

    if (strlen(o.note) >= DIBS__RUN_NOTE_SIZE) {
        dibs__cli_say("the note has more than %d bytes",
                      DIBS__RUN_NOTE_SIZE - 1);
        return DIBS__EXIT_USAGE;
    }
    if (dibs__zone_open("UTC", &utc, &err) != DIBS_OK)
        return dibs__cli_fail(cmd, &err);
    if (until && !dibs__moment_parse(until, utc, &until_s)) {
        dibs__cli_say("'%s' is no time; 2026-11-15T02:00:00Z is one", until);
        code = DIBS__EXIT_USAGE;
    }
    dibs__zone_free(utc);
    if (code)
        return code;
    o.until_us = until_s * 1000000;
    code = dibs__board_open(cmd, &ob);
    if (!code)
        code = change_jobs(cmd, &ob, &c);
    dibs__board_close(&ob);
    return code;
}

static int unpause_jobs(const dibs__command *cmd)
{
    change c = {"job-resume", unpause_one, NULL, 0};
    dibs__open_board ob;
    int code = dibs__board_open(cmd, &ob);

    if (!code)
        code = change_jobs(cmd, &ob, &c);
    dibs__board_close(&ob);
    return code;
}

static int remove_job(const dibs__command *cmd)
{
    const char *name = dibs__operands(cmd)[0];
    dibs__open_board ob;
    dibs_error err = {0};
    int code = dibs__board_open(cmd, &ob);

    if (!code)
        code = dibs__cli_change_begin(cmd, ob.cl, "job-rm", name);
    if (!code) {
        dibs_status rc = dibs__board_remove(&ob.board, name, &err);

        dibs__cli_change_end(cmd, ob.cl, "job-rm", name, rc);
        code = rc == DIBS_OK ? 0 : dibs__cli_fail(cmd, &err);
    }
    dibs__board_close(&ob);
    return code;
}

static const dibs__option options[] = {
    {.name = "all", .help = "All jobs of the board."},
    {DIBS__ROW_TEXT("match", "GLOB"),
     .help = "The jobs whose names match, such as 'billing-*'."},
    {DIBS__ROW_TEXT("note", "TEXT"), .verbs = "job pause",
     .help = "Why, for others to read."},
    {DIBS__ROW_TEXT("until", "TIME"), .verbs = "job pause",
     .otherwise = "until it is unpaused",
     .help = "The end of the pause: 2026-11-15T02:00:00Z, or 2026-11-15 02:00 "
             "in UTC."},
};

const dibs__option_rows dibs__options_job_pause =
    DIBS__OPTION_ROWS("job pause,job unpause", options);

const dibs__verb dibs__verb_job_pause = {
    .name = "job pause",
    .operands = "[JOB...]",
    .summary = "pause jobs",
    .about = "A paused job is not due; times in the pause are not made up "
             "for. Runs that live go on, and the job can be started by "
             "hand.\n",
    .examples = "  dibs job pause nightly --note 'disk is full' --until "
                "2026-11-15T06:00:00Z\n",
    .exits = "1 there is no such job\n",
    .max_operands = -1,
    .run = pause_jobs,
};

const dibs__verb dibs__verb_job_unpause = {
    .name = "job unpause",
    .operands = "[JOB...]",
    .summary = "end a pause of jobs",
    .about = "A job is due at its next time from now on. A job that is not "
             "paused stays as it is.\n",
    .examples = "  dibs job unpause --match 'billing-*'\n",
    .exits = "1 there is no such job\n",
    .options = "reason",
    .max_operands = -1,
    .run = unpause_jobs,
};

const dibs__verb dibs__verb_job_rm = {
    .name = "job rm",
    .operands = "JOB",
    .summary = "remove a job from its set",
    .about = "It is never due again. Its runs go on, and its history is kept "
             "as long as it would be. A load of a file that still has the job "
             "brings it back, with a higher version or --force.\n",
    .examples = "  dibs job rm nightly\n",
    .exits = "1 there is no such job\n",
    .options = "reason",
    .min_operands = 1,
    .max_operands = 1,
    .run = remove_job,
};
