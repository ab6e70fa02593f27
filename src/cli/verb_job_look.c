/* verb_job_look.c - job ls, show, next and runs: a look at jobs and runs in a store. */
/* SPDX-License-Identifier: MIT */
#include "base/alloc.h"
#include "base/fail.h"
#include "cli/job_board.h"
#include "cli/print.h"
#include "cli/verbs.h"
#include "jobs/moment.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NEWEST = 16 }; /* runs of a job that say how it does */

/* A table or JSON, whichever --json says. */
typedef struct sheet {
    bool json;
    dibs__table table;
    dibs__report report;
    const char *run_state; /* runs: of this state; NULL: any */
} sheet;

static void begin_sheet(sheet *sh, const dibs__command *cmd, const char *key,
                        size_t columns, const char *const *heads)
{
    *sh = (sheet){.json = dibs__opt_flag(cmd, "json")};
    if (!sh->json) {
        dibs__table_init(&sh->table, columns, heads);
        return;
    }
    dibs__report_begin(&sh->report);
    dibsx_json_key(&sh->report.js, key);
    dibsx_json_open(&sh->report.js, '[');
}

static int end_sheet(sheet *sh, const dibs__command *cmd, int code)
{
    int printed = 0;

    if (sh->json) {
        dibsx_json_close(&sh->report.js, ']');
        printed = dibs__report_end(&sh->report);
    } else {
        if (!code)
            printed = dibs__table_print(&sh->table, dibs__colours_of(cmd));
        dibs__table_fini(&sh->table);
    }
    return code ? code : printed;
}

/* ---- ids of runs */

/* The ids of the newest runs of a job, the oldest first. */
typedef struct id_ring {
    char (*at)[DIBS__RUN_ID_SIZE];
    size_t room, count;
} id_ring;

static bool keep_id(const dibs_index_entry *entry, void *arg)
{
    id_ring *ring = arg;

    (void)snprintf(ring->at[ring->count++ % ring->room], DIBS__RUN_ID_SIZE,
                   "%s", entry->member);
    return true;
}

static dibs_status collect_ids(dibs__open_board *ob, const char *job,
                               id_ring *ring, dibs_error *err)
{
    char index[DIBS__JOB_NAME_SIZE + 8];

    (void)snprintf(index, sizeof(index), "runs/%s", job);
    return dibs__board_entries(&ob->board, index, keep_id, ring, err);
}

/* Calls `each` for the newest runs of a job, the newest first, until it returns false. Few
 * runs of a job live at a time, so that they and the last that has ended are among these. */
typedef bool run_fn(const dibs__run *run, void *arg);

static dibs_status each_newest(dibs__open_board *ob, const char *job,
                               run_fn *each, void *arg, dibs_error *err)
{
    char ids[NEWEST][DIBS__RUN_ID_SIZE];
    id_ring ring = {.at = ids, .room = NEWEST};
    bool goes_on = true;
    dibs_status rc = collect_ids(ob, job, &ring, err);
    size_t oldest = ring.count > ring.room ? ring.count - ring.room : 0;

    for (size_t i = ring.count; i > oldest && rc == DIBS_OK && goes_on; i--) {
        dibs__run run;

        rc = dibs__board_run(&ob->board, ids[(i - 1) % ring.room], &run, err);
        if (rc == DIBS_OK)
            goes_on = each(&run, arg);
        /* Its history may have been cut off meanwhile. One that cannot be read
         * hides no other, and no job. */
        rc = rc == DIBS_NOTFOUND || rc == DIBS_INVALID ? DIBS_OK : rc;
        dibs__run_fini(&run);
    }
    return rc;
}

/* The newest run that has ended, has failed. */
static bool note_failure(const dibs__run *run, void *arg)
{
    *(bool *)arg = run->state == DIBS__STATE_FAILED;
    return !dibs__state_final(run->state);
}

static bool note_living(const dibs__run *run, void *arg)
{
    *(bool *)arg = !dibs__state_final(run->state);
    return !*(bool *)arg;
}

/* ---- ls */

/* The state of a job without a limit does not say whether a run of it lives. */
static dibs_status
find_status(dibs__open_board *ob, const dibs__job_state *state,
            const dibs__job *job, const char **out, dibs_error *err)
{
    bool lives = state->live[0] || state->running > 0;
    dibs_status rc = DIBS_OK;

    if (state->paused) {
        *out = "paused";
        return DIBS_OK;
    }
    if (job && !job->enabled) {
        *out = "off";
        return DIBS_OK;
    }
    if (!lives && job && job->concurrency == DIBS__CONCURRENCY_ALLOW &&
        job->max_running == DIBS__JOB_NONE)
        rc = each_newest(ob, state->job, note_living, &lives, err);
    *out = lives ? "running" : state->next_s ? "due" : "on demand";
    return rc;
}

/* 0: none; a paused job is not due. */
static int64_t next_of(const dibs__job_state *state)
{
    return state->paused ? 0 : state->next_s;
}

/* The definition, and the status. A definition that is gone or unreadable is NULL; *lacks
 * says why. */
static dibs_status
read_job(dibs__open_board *ob, const dibs__job_state *state, dibs__job **job,
         const char **status, dibs_error *lacks, dibs_error *err)
{
    dibs_status rc =
        dibs__board_job(&ob->board, state->job, state->hash, job, lacks);

    if (rc == DIBS_OK || rc == DIBS_NOTFOUND || rc == DIBS_INVALID)
        rc = find_status(ob, state, *job, status, err);
    else
        *err = *lacks;
    if (rc != DIBS_OK) {
        dibs__job_free(*job);
        *job = NULL;
    }
    return rc;
}

static void json_state(dibsx_json *js, const dibs__job_state *state,
                       const dibs__job *job, const char *status)
{
    dibsx_json_pair_text(js, "name", state->job);
    dibsx_json_pair_text(js, "set", state->set);
    dibsx_json_pair_text(js, "hash", state->hash);
    dibsx_json_pair_text(js, "status", status);
    dibsx_json_key(js, "schedule");
    dibsx_json_open(js, '[');
    for (size_t i = 0; job && i < job->schedule.count; i++)
        dibsx_json_text(js, job->schedule.at[i].text);
    dibsx_json_close(js, ']');
    dibsx_json_pair_text(js, "zone", job ? job->zone : NULL);
    dibs__json_moment(js, "next", next_of(state));
    dibsx_json_pair_bool(js, "paused", state->paused);
    dibsx_json_pair_text(js, "paused_by",
                         state->paused ? state->paused_by : NULL);
    dibsx_json_pair_text(js, "note", state->paused ? state->note : NULL);
    dibs__json_moment(js, "paused_until", state->paused_until_us / 1000000);
    dibsx_json_pair_text(js, "live", state->live[0] ? state->live : NULL);
    dibsx_json_pair_text(js, "waits",
                         state->follows[0] ? state->follows : NULL);
    dibsx_json_pair_uint(js, "missed", state->missed);
    dibsx_json_pair_uint(js, "merged", state->merged);
    dibsx_json_pair_uint(js, "skipped", state->skipped);
}

static void row_of_job(dibs__table *table, const dibs__job_state *state,
                       const dibs__job *job, const char *status)
{
    char next[DIBS__MOMENT_SIZE + 1];

    dibs__moment_cell(next_of(state) * 1000000, next, sizeof(next));
    dibs__table_cell(table, state->job);
    dibs__table_cell(table, state->set);
    dibs__table_cell(table, status);
    dibs__table_cell(table, next);
    dibs__table_cell(table, job && job->schedule.count > 0
                                ? job->schedule.at[0].text
                                : "-");
    dibs__table_cell(table, job ? job->zone : "-");
}

static bool is_wanted(const dibs__command *cmd, const dibs__job_state *state,
                      const char *status)
{
    const char *set = dibs__opt_text(cmd, "set");

    return (!set || strcmp(set, state->set) == 0) &&
           (!dibs__opt_flag(cmd, "paused") || state->paused) &&
           (!dibs__opt_flag(cmd, "running") || strcmp(status, "running") == 0);
}

static int list_job(const dibs__command *cmd, dibs__open_board *ob,
                    const dibs__job_state *state, void *arg)
{
    sheet *sh = arg;
    dibs__job *job = NULL;
    dibs_error err = {0}, lacks;
    const char *status = NULL;
    bool wanted = !dibs__opt_flag(cmd, "failing");
    dibs_status rc = DIBS_OK;

    if (!wanted)
        rc = each_newest(ob, state->job, note_failure, &wanted, &err);
    if (rc == DIBS_OK && wanted)
        rc = read_job(ob, state, &job, &status, &lacks, &err);
    if (rc != DIBS_OK)
        return dibs__cli_fail(cmd, &err);
    if (wanted && is_wanted(cmd, state, status)) {
        if (sh->json) {
            dibsx_json_open(&sh->report.js, '{');
            json_state(&sh->report.js, state, job, status);
            dibsx_json_close(&sh->report.js, '}');
        } else {
            row_of_job(&sh->table, state, job, status);
        }
    }
    dibs__job_free(job);
    return 0;
}

static int list_jobs(const dibs__command *cmd)
{
    static const char *const heads[] = {"JOB",  "SET",      "STATUS",
                                        "NEXT", "SCHEDULE", "ZONE"};
    const char *match =
        dibs__operand_count(cmd) > 0 ? dibs__operands(cmd)[0] : NULL;
    dibs__open_board ob;
    sheet sh;
    int code = dibs__board_open(cmd, &ob);

    if (!code) {
        begin_sheet(&sh, cmd, "jobs", 6, heads);
        code = dibs__board_each(cmd, &ob, match, list_job, &sh);
        code = end_sheet(&sh, cmd, code);
    }
    dibs__board_close(&ob);
    return code;
}

/* ---- runs */

enum { RUN_COLUMNS = 6 };

static void row_of_run(dibs__table *table, const dibs__run *run)
{
    char begun[DIBS__MOMENT_SIZE + 1], ended[DIBS__MOMENT_SIZE + 1];

    dibs__moment_cell(run->begun_us, begun, sizeof(begun));
    dibs__moment_cell(run->ended_us, ended, sizeof(ended));
    dibs__table_cell(table, run->id);
    dibs__table_cell(table, dibs__run_state_name(run->state));
    dibs__table_cell(table, run->reason ? dibs__reason_name(run->reason) : "-");
    dibs__table_cell(table, dibs__cause_name(run->cause));
    dibs__table_cell(table, begun);
    dibs__table_cell(table, ended);
}

/* A record that another release wrote, or that is damaged, hides no other run. */
static void
put_unreadable(sheet *sh, const char *id, const char *job, const char *why)
{
    if (sh->json) {
        dibsx_json_open(&sh->report.js, '{');
        dibs__run_json_unreadable(&sh->report.js, id, job, why);
        dibsx_json_close(&sh->report.js, '}');
        return;
    }
    dibs__table_cell(&sh->table, id);
    dibs__table_cell(&sh->table, DIBS__RUN_UNREADABLE);
    for (size_t i = 2; i < RUN_COLUMNS; i++)
        dibs__table_cell(&sh->table, "-");
}

static int put_run(const dibs__command *cmd, dibs__open_board *ob,
                   const dibs__run *run, sheet *sh)
{
    dibs__job *job = NULL;
    int code = 0;

    if (!sh->json) {
        row_of_run(&sh->table, run);
        return 0;
    }
    code = dibs__board_definition(cmd, ob, run, &job);
    if (!code)
        dibs__json_run(&sh->report.js, run, job);
    dibs__job_free(job);
    return code;
}

static int show_ids(const dibs__command *cmd, dibs__open_board *ob,
                    const char *job, id_ring *ring, sheet *sh)
{
    size_t count = ring->count < ring->room ? ring->count : ring->room;
    int code = 0;

    for (size_t i = ring->count - count; i < ring->count && !code; i++) {
        const char *id = ring->at[i % ring->room];
        dibs__run run;
        dibs_error err = {0};
        dibs_status rc = dibs__board_run(&ob->board, id, &run, &err);

        /* Its history may have been cut off meanwhile. */
        if (rc == DIBS_INVALID && !sh->run_state)
            put_unreadable(sh, id, job, err.message);
        else if (rc != DIBS_OK && rc != DIBS_NOTFOUND && rc != DIBS_INVALID)
            code = dibs__cli_fail(cmd, &err);
        else if (rc == DIBS_OK &&
                 (!sh->run_state ||
                  strcmp(sh->run_state, dibs__run_state_name(run.state)) == 0))
            code = put_run(cmd, ob, &run, sh);
        dibs__run_fini(&run);
    }
    return code;
}

static int runs_of_job(const dibs__command *cmd, dibs__open_board *ob,
                       const dibs__job_state *state, void *arg)
{
    id_ring ring = {.room = (size_t)dibs__opt_int(cmd, "last")};
    dibs_error err = {0};
    int code = 0;

    ring.at = dibsx_zalloc_n(ring.room, sizeof(*ring.at));
    if (!ring.at)
        return dibs__cli_nomem("the ids of runs");
    if (collect_ids(ob, state->job, &ring, &err) != DIBS_OK)
        code = dibs__cli_fail(cmd, &err);
    else
        code = show_ids(cmd, ob, state->job, &ring, arg);
    dibsx_free(ring.at);
    return code;
}

static int list_runs(const dibs__command *cmd)
{
    static const char *const heads[RUN_COLUMNS] = {"RUN",   "STATE", "REASON",
                                                   "CAUSE", "BEGUN", "ENDED"};
    const char *name =
        dibs__operand_count(cmd) > 0 ? dibs__operands(cmd)[0] : NULL;
    dibs__job_state state;
    dibs__open_board ob;
    dibs_error err = {0};
    sheet sh;
    int code = dibs__board_open(cmd, &ob);

    if (!code && name &&
        dibs__board_state(&ob.board, name, &state, &err) != DIBS_OK)
        code = dibs__cli_fail(cmd, &err);
    if (!code) {
        begin_sheet(&sh, cmd, "runs", RUN_COLUMNS, heads);
        sh.run_state = dibs__opt_text(cmd, "state");
        code = name ? runs_of_job(cmd, &ob, &state, &sh)
                    : dibs__board_each(cmd, &ob, NULL, runs_of_job, &sh);
        code = end_sheet(&sh, cmd, code);
    }
    dibs__board_close(&ob);
    return code;
}

/* ---- show */

/* The wait of a step, and its limit. `own` may be NULL. */
static void print_wait(const dibs__run_step *step, const dibs__step *own)
{
    static const char *const waits[] = {"", "sleeps", "waits for bookmark ",
                                        "waits for batch ", "waits for job "};
    const char *what = NULL;
    char when[DIBS__MOMENT_SIZE + 1];

    if (own && step->waits == DIBS__WAIT_BOOKMARK)
        what = own->wait.bookmark;
    else if (own && step->waits == DIBS__WAIT_BATCH)
        what = own->wait.batch;
    else if (own && step->waits == DIBS__WAIT_CHILD)
        what = own->job;
    printf(", %s%s", waits[step->waits], what ? what : "");
    if (step->waits != DIBS__WAIT_SLEEP && step->until_us == 0)
        return;
    dibs__moment_cell(step->waits == DIBS__WAIT_SLEEP ? step->at_us
                                                      : step->until_us,
                      when, sizeof(when));
    printf(", until %s", when);
}

/* An attempt that has ended has one, if it did so by itself or by a signal. */
static bool has_exit_code(const dibs__run_step *step)
{
    if (!dibs__state_final(step->state) && step->state != DIBS__STATE_RETRY)
        return false;
    return step->exit_code != 0 ||
           (step->attempt > 0 &&
            (!step->reason || step->reason == DIBS__REASON_FAILED));
}

static void
print_step(const dibs__run *run, size_t index, const dibs__step *own)
{
    const dibs__run_step *step = &run->steps[index];
    const char *node = dibs__run_node_of(run, index);
    char when[DIBS__MOMENT_SIZE + 1];

    printf("step    %s %s%s%s, attempt %" PRIu32, step->name,
           dibs__run_state_name(step->state), step->reason ? ", " : "",
           step->reason ? dibs__reason_name(step->reason) : "", step->attempt);
    if (*node)
        printf(", node %s", node);
    if (has_exit_code(step))
        printf(", exit %" PRId32, step->exit_code);
    if (step->state == DIBS__STATE_RETRY) {
        dibs__moment_cell(step->at_us, when, sizeof(when));
        printf(", again at %s", when);
    }
    if (step->state == DIBS__STATE_WAITING && step->waits)
        print_wait(step, own);
    printf("\n");
}

static void print_run(const dibs__run *run, const dibs__job *job)
{
    char begun[DIBS__MOMENT_SIZE + 1], ended[DIBS__MOMENT_SIZE + 1],
        tick[DIBS__TICK_TEXT_SIZE];

    dibs__moment_cell(run->begun_us, begun, sizeof(begun));
    dibs__moment_cell(run->ended_us, ended, sizeof(ended));
    dibs__run_tick_text(run, tick);
    printf("run     %s\njob     %s\nstate   %s%s%s\ncause   %s%s%s\n", run->id,
           run->job, dibs__run_state_name(run->state), run->reason ? ", " : "",
           run->reason ? dibs__reason_name(run->reason) : "",
           dibs__cause_name(run->cause), run->origin[0] ? " " : "",
           run->origin);
    if (tick[0])
        printf("tick    %s\nzone    %s\n", tick, job ? job->zone : "-");
    printf("begun   %s\nended   %s\n", begun, ended);
    for (size_t i = 0; i < run->param_count; i++)
        printf("param   %s=%s\n", run->params[i].name, run->params[i].value);
    for (size_t i = 0; i < run->step_count; i++)
        print_step(run, i,
                   job ? dibs__job_step(job, run->steps[i].name) : NULL);
}

static int print_found(const dibs__command *cmd, dibs__open_board *ob,
                       const dibs__run *run)
{
    dibs__job *job = NULL;
    dibs__report report;
    int code = dibs__board_definition(cmd, ob, run, &job);

    if (!code && dibs__opt_flag(cmd, "json")) {
        dibs__report_begin(&report);
        dibsx_json_key(&report.js, "runs");
        dibsx_json_open(&report.js, '[');
        dibs__json_run(&report.js, run, job);
        dibsx_json_close(&report.js, ']');
        code = dibs__report_end(&report);
    } else if (!code) {
        print_run(run, job);
    }
    dibs__job_free(job);
    return code;
}

/* Without a run, or one that can be read, *err says why. */
static int show_run(const dibs__command *cmd, dibs__open_board *ob,
                    const char *id, bool *found, dibs_error *err)
{
    dibs__run run;
    dibs_status rc = dibs__board_run(&ob->board, id, &run, err);
    int code = 0;

    *found = rc == DIBS_OK;
    if (rc == DIBS_OK)
        code = print_found(cmd, ob, &run);
    else if (rc != DIBS_NOTFOUND && rc != DIBS_INVALID)
        code = dibs__cli_fail(cmd, err);
    dibs__run_fini(&run);
    return code;
}

/* `lacks` is why there is no definition. */
static void print_job(const dibs__job_state *state, const dibs__job *job,
                      const char *status, const char *lacks)
{
    char next[DIBS__MOMENT_SIZE + 1];

    dibs__moment_cell(next_of(state) * 1000000, next, sizeof(next));
    printf("job     %s\nset     %s\nstatus  %s\nnext    %s\nzone    %s\n",
           state->job, state->set[0] ? state->set : "none any more", status,
           next, job ? job->zone : "-");
    for (size_t i = 0; job && i < job->schedule.count; i++)
        printf("due     %s\n", job->schedule.at[i].text);
    if (job && job->description)
        printf("about   %s\n", job->description);
    if (state->paused)
        printf("paused  by %s%s%s\n", state->paused_by,
               state->note[0] ? ": " : "", state->note);
    if (state->paused && state->paused_until_us) {
        dibs__moment_cell(state->paused_until_us, next, sizeof(next));
        printf("until   %s\n", next);
    }
    if (state->live[0])
        printf("live    %s\n", state->live);
    if (state->follows[0])
        printf("waits   %s\n", state->follows);
    printf("late    %" PRIu64 " missed, %" PRIu64 " merged, %" PRIu64
           " skipped\n",
           state->missed, state->merged, state->skipped);
    for (size_t i = 0; job && i < job->step_count; i++)
        printf("step    %s\n", job->steps[i].name);
    if (!job)
        printf("note    %s\n", lacks);
}

static int show_job(const dibs__command *cmd, const dibs__job_state *state,
                    const dibs__job *job, const char *status, const char *lacks)
{
    dibs__report report;

    if (!dibs__opt_flag(cmd, "json")) {
        print_job(state, job, status, lacks);
        return dibs__out_done();
    }
    dibs__report_begin(&report);
    dibsx_json_key(&report.js, "job");
    dibsx_json_open(&report.js, '{');
    json_state(&report.js, state, job, status);
    dibsx_json_pair_text(&report.js, "unreadable", job ? NULL : lacks);
    dibsx_json_key(&report.js, "steps");
    dibsx_json_open(&report.js, '[');
    for (size_t i = 0; job && i < job->step_count; i++)
        dibsx_json_text(&report.js, job->steps[i].name);
    dibsx_json_close(&report.js, ']');
    dibsx_json_close(&report.js, '}');
    return dibs__report_end(&report);
}

/* `run_err` is why there is no run of that name. */
static int show_job_of(const dibs__command *cmd, dibs__open_board *ob,
                       const char *name, const dibs_error *run_err)
{
    const char *status = NULL;
    dibs__job_state state;
    dibs__job *job = NULL;
    dibs_error err = {0}, lacks = {0};
    dibs_status rc = dibs__board_state(&ob->board, name, &state, &err);
    int code;

    if (rc != DIBS_OK && run_err->status == DIBS_INVALID)
        return dibs__cli_fail(cmd, run_err);
    if (rc == DIBS_NOTFOUND)
        (void)dibsx_fail(&err, rc,
                         "there is no job and no run %s on the board %s", name,
                         ob->board.name);
    if (rc == DIBS_OK)
        rc = read_job(ob, &state, &job, &status, &lacks, &err);
    code = rc == DIBS_OK ? show_job(cmd, &state, job, status, lacks.message)
                         : dibs__cli_fail(cmd, &err);
    dibs__job_free(job);
    return code;
}

static int show_one(const dibs__command *cmd)
{
    const char *name = dibs__operands(cmd)[0];
    dibs__open_board ob;
    dibs_error err = {0};
    bool found = false;
    int code = dibs__board_open(cmd, &ob);

    if (!code)
        code = show_run(cmd, &ob, name, &found, &err);
    if (!code && !found)
        code = show_job_of(cmd, &ob, name, &err);
    dibs__board_close(&ob);
    return code;
}

/* ---- next */

static void print_tick(sheet *sh, const dibs__tick *tick)
{
    char instant[DIBS__MOMENT_SIZE + 1], local[DIBS__MOMENT_SIZE],
        offset[DIBS__OFFSET_SIZE];

    dibs__moment_cell(tick->at * 1000000, instant, sizeof(instant));
    dibs__moment_text(tick->at + tick->offset_s, local);
    dibs__offset_text(tick->offset_s, offset);
    if (!sh->json) {
        dibs__table_cell(&sh->table, instant);
        dibs__table_cellf(&sh->table, "%s%s", local, offset);
        return;
    }
    dibsx_json_open(&sh->report.js, '{');
    dibsx_json_pair_text(&sh->report.js, "instant", instant);
    dibsx_json_pair_text(&sh->report.js, "local", local);
    dibsx_json_pair_text(&sh->report.js, "offset", offset);
    dibsx_json_close(&sh->report.js, '}');
}

/* The store's next time, then those that follow it. */
static void
print_ticks(const dibs__command *cmd, sheet *sh, const dibs__job *job,
            const dibs__job_state *state, const dibs__zone *zone)
{
    int64_t after_s = state->mark_s, local_s = state->mark_local_s;
    dibs__tick tick;

    for (int64_t i = 0; i < dibs__opt_int(cmd, "count") && job->enabled; i++) {
        if (!dibs__job_next(job, state, zone, after_s, local_s, &tick))
            return;
        print_tick(sh, &tick);
        after_s = tick.at;
        local_s = tick.at + tick.offset_s;
    }
}

/* The times that follow the pause. Answers whether there may be any. */
static bool
end_pause(const dibs__job *job, dibs__job_state *state, const dibs__zone *zone)
{
    const dibs__ticker tk = {.zone = zone, .tzdata = ""};

    if (state->paused && !state->paused_until_us) {
        dibs__cli_say("%s is paused, and has no next time until it is unpaused",
                      state->job);
        return false;
    }
    if (state->paused)
        dibs__job_unpause(job, state, &tk, state->paused_until_us - 1);
    return true;
}

static int print_next(const dibs__command *cmd)
{
    static const char *const heads[] = {"UTC", "LOCAL"};
    const char *name = dibs__operands(cmd)[0];
    dibs__job_state state;
    dibs__job *job = NULL;
    dibs__zone *zone = NULL;
    dibs__open_board ob;
    dibs_error err = {0};
    sheet sh;
    int code = dibs__board_open(cmd, &ob);

    if (!code) {
        dibs_status rc = dibs__board_state(&ob.board, name, &state, &err);

        if (rc == DIBS_OK)
            rc = dibs__board_job(&ob.board, name, state.hash, &job, &err);
        if (rc == DIBS_OK)
            rc = dibs__zone_open(job->zone, &zone, &err);
        if (rc == DIBS_OK) {
            begin_sheet(&sh, cmd, "times", 2, heads);
            if (end_pause(job, &state, zone))
                print_ticks(cmd, &sh, job, &state, zone);
            code = end_sheet(&sh, cmd, 0);
        } else {
            code = dibs__cli_fail(cmd, &err);
        }
    }
    dibs__zone_free(zone);
    dibs__job_free(job);
    dibs__board_close(&ob);
    return code;
}

static const dibs__option options[] = {
    {DIBS__ROW_TEXT("set", "SET"), .verbs = "job ls",
     .help = "Only the jobs of this set."},
    {.name = "paused", .verbs = "job ls", .help = "Only jobs that are paused."},
    {.name = "failing",
     .verbs = "job ls",
     .help = "Only jobs whose newest run that has ended failed."},
    {.name = "running",
     .verbs = "job ls",
     .help = "Only jobs of which a run is known to live."},
    {DIBS__ROW_CHOICE("state", "STATE",
                      "QUEUED|ACTIVE|OK|FAILED|CANCELLED|MISSED|SKIPPED"),
     .verbs = "job runs", .help = "Only runs in this state."},
    {DIBS__ROW_INT("last", "N", 1, 10000), .letter = 'n', .initial = "20",
     .verbs = "job runs",
     .help = "Look at so many runs of each job, the "
             "newest."},
    {DIBS__ROW_INT("count", "N", 1, 1000), .letter = 'n', .initial = "5",
     .verbs = "job next", .help = "How many times to print."},
};

const dibs__option_rows dibs__options_job_look =
    DIBS__OPTION_ROWS("job ls", options);

const dibs__verb dibs__verb_job_ls = {
    .name = "job ls",
    .operands = "[GLOB]",
    .summary = "list jobs",
    .about = "Shows each job with its set, its next time in UTC, its schedule "
             "and the zone whose clocks count.\n",
    .examples = "  dibs job ls 'billing-*'\n"
                "Jobs to look after:\n"
                "  dibs job ls --failing\n",
    .exits = "0 the list was printed; it may be empty\n",
    .options = "json",
    .max_operands = 1,
    .run = list_jobs,
};

const dibs__verb dibs__verb_job_runs = {
    .name = "job runs",
    .operands = "[JOB]",
    .summary = "list runs",
    .about =
        "Shows the runs of a job, or of all jobs, job by job: those that "
        "ended in the order of their ends, those that live by when they "
        "were made. "
        "history in the jobs file says how long they are kept. A run whose "
        "record this release cannot read is UNREADABLE.\n",
    .examples = "  dibs job runs nightly --state FAILED\n",
    .exits = "1 there is no such job\n",
    .options = "json",
    .max_operands = 1,
    .run = list_runs,
};

const dibs__verb dibs__verb_job_show = {
    .name = "job show",
    .operands = "JOB|RUN",
    .summary = "show a job or a run",
    .about = "A run is known by its id, such as nightly@20261115T020000Z.\n",
    .examples = "  dibs job show nightly\n",
    .exits = "1 there is no such job or run\n",
    .options = "json",
    .min_operands = 1,
    .max_operands = 1,
    .run = show_one,
};

const dibs__verb dibs__verb_job_next = {
    .name = "job next",
    .operands = "JOB",
    .summary = "print the next times of a job",
    .about =
        "Counts from the last time that was dealt with, so a time that "
        "is late comes first; of a paused job, from the end of its pause. A "
        "job that is off, is paused without an end, or has no schedule, "
        "has none.\n",
    .examples = "  dibs job next nightly -n 3\n",
    .exits = "1 there is no such job\n",
    .options = "json",
    .min_operands = 1,
    .max_operands = 1,
    .run = print_next,
};
