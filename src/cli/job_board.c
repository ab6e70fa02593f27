/* job_board.c - see job_board.h. */
/* SPDX-License-Identifier: MIT */
#include "cli/job_board.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/json_data.h"
#include "cli/options.h"
#include "jobs/board_name.h"
#include "jobs/moment.h"
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int dibs__board_open(const dibs__command *cmd, dibs__open_board *out)
{
    dibs_error err = {0};
    int code;

    *out = (dibs__open_board){.cl = NULL};
    dibs__board_whoami(out->who, sizeof(out->who));
    code = dibs__cli_open(cmd, &out->cl);
    if (!code &&
        dibs__board_init(&out->board, out->cl, dibs__opt_text(cmd, "board"),
                         &err) != DIBS_OK)
        code = dibs__cli_fail(cmd, &err);
    if (!code)
        out->board.cache = dibs__job_cache_new(DIBS__JOB_CACHE_BYTES);
    return code;
}

void dibs__board_close(dibs__open_board *ob)
{
    dibs__job_cache_free(ob->board.cache);
    ob->board.cache = NULL;
    dibs_close(ob->cl);
    ob->cl = NULL;
}

/* ---- all jobs */

typedef struct name_list {
    const char *match;
    size_t cut; /* the part of keys before the name */
    char **at;
    size_t count, room;
    bool failed;
} name_list;

static bool keep_name(const dibs_state_item *item, void *arg)
{
    name_list *list = arg;
    const char *name = item->key + list->cut;

    if (list->match && fnmatch(list->match, name, 0) != 0)
        return true;
    if (list->count == list->room) {
        size_t room = list->room ? list->room * 2 : 64;
        char **more = dibsx_realloc_n(list->at, room, sizeof(*list->at));

        list->failed = list->failed || !more;
        if (!more)
            return false;
        list->at = more;
        list->room = room;
    }
    list->at[list->count] = dibsx_strdup(name);
    list->failed = list->failed || !list->at[list->count];
    list->count += !list->failed;
    return !list->failed;
}

static int
list_names(const dibs__command *cmd, dibs__open_board *ob, name_list *list)
{
    char begins[DIBS_NAME_MAX + 1];
    dibs_error err = {0};
    dibs_status rc = dibs__board_key(&ob->board, "state/", begins, &err);

    list->cut = strlen(begins);
    if (rc == DIBS_OK)
        rc = dibs_state_list(ob->cl, begins, keep_name, list, &err);
    if (rc == DIBS_OK && list->failed)
        rc = dibsx_nomem(&err, "the names of jobs");
    return rc == DIBS_OK ? 0 : dibs__cli_fail(cmd, &err);
}

int dibs__board_each(const dibs__command *cmd, dibs__open_board *ob,
                     const char *match, dibs__job_fn *each, void *arg)
{
    name_list list = {.match = match};
    int code = list_names(cmd, ob, &list);

    for (size_t i = 0; i < list.count; i++) {
        dibs__job_state state;
        dibs_error err = {0};
        dibs_status rc = DIBS_OK;

        if (!code)
            rc = dibs__board_state(&ob->board, list.at[i], &state, &err);
        if (!code && rc != DIBS_OK && rc != DIBS_NOTFOUND)
            code = dibs__cli_fail(cmd, &err);
        if (!code && rc == DIBS_OK && state.set[0])
            code = each(cmd, ob, &state, arg);
        dibsx_free(list.at[i]);
    }
    dibsx_free(list.at);
    return code;
}

int dibs__board_definition(const dibs__command *cmd, dibs__open_board *ob,
                           const dibs__run *run, dibs__job **out)
{
    dibs_error err = {0};
    dibs_status rc =
        dibs__board_job(&ob->board, run->job, run->hash, out, &err);

    return rc == DIBS_OK || rc == DIBS_NOTFOUND || rc == DIBS_INVALID
               ? 0
               : dibs__cli_fail(cmd, &err);
}

/* ---- printing */

void dibs__moment_cell(int64_t wall_us, char *out, size_t size)
{
    char text[DIBS__MOMENT_SIZE];

    if (wall_us <= 0) {
        (void)snprintf(out, size, "-");
        return;
    }
    dibs__moment_text(wall_us / 1000000, text);
    (void)snprintf(out, size, "%sZ", text);
}

void dibs__json_moment(dibsx_json *js, const char *key, int64_t at_s)
{
    char text[DIBS__MOMENT_SIZE + 1];

    dibsx_json_key(js, key);
    if (at_s <= 0) {
        dibsx_json_null(js);
        return;
    }
    dibs__moment_cell(at_s * 1000000, text, sizeof(text));
    dibsx_json_text(js, text);
}

static void pair_or_null(dibsx_json *js, const char *key, const char *text)
{
    dibsx_json_pair_text(js, key, text && *text ? text : NULL);
}

static void json_step(dibsx_json *js, const dibs__run *run, size_t index)
{
    const dibs__run_step *step = &run->steps[index];

    dibsx_json_open(js, '{');
    dibsx_json_pair_text(js, "name", step->name);
    dibsx_json_pair_text(js, "state", dibs__run_state_name(step->state));
    pair_or_null(js, "reason",
                 step->reason ? dibs__reason_name(step->reason) : NULL);
    dibsx_json_pair_uint(js, "attempt", step->attempt);
    pair_or_null(js, "node", dibs__run_node_of(run, index));
    dibsx_json_pair_int(js, "exit", step->exit_code);
    dibsx_json_pair_int(js, "started_us", step->begun_us);
    dibsx_json_pair_int(js, "ended_us", step->ended_us);
    if (step->result)
        dibsx_json_data(js, "result", step->result, step->result_len);
    else
        dibsx_json_pair_text(js, "result", NULL);
    dibsx_json_close(js, '}');
}

void dibs__json_run(dibsx_json *js, const dibs__run *run, const dibs__job *job)
{
    dibsx_json_open(js, '{');
    dibsx_json_pair_text(js, "id", run->id);
    dibsx_json_pair_text(js, "job", run->job);
    dibsx_json_pair_text(js, "state", dibs__run_state_name(run->state));
    pair_or_null(js, "reason",
                 run->reason ? dibs__reason_name(run->reason) : NULL);
    dibsx_json_pair_text(js, "cause", dibs__cause_name(run->cause));
    pair_or_null(js, "origin", run->origin);
    dibs__json_moment(js, "tick", run->tick_s);
    pair_or_null(js, "zone", job ? job->zone : NULL);
    dibsx_json_pair_text(js, "hash", run->hash);
    dibsx_json_pair_uint(js, "cancels", run->cancels);
    dibsx_json_pair_int(js, "made_us", run->made_us);
    dibsx_json_pair_int(js, "started_us", run->begun_us);
    dibsx_json_pair_int(js, "ended_us", run->ended_us);
    dibsx_json_key(js, "params");
    dibsx_json_open(js, '{');
    for (size_t i = 0; i < run->param_count; i++)
        dibsx_json_pair_text(js, run->params[i].name, run->params[i].value);
    dibsx_json_close(js, '}');
    dibsx_json_key(js, "steps");
    dibsx_json_open(js, '[');
    for (size_t i = 0; i < run->step_count; i++)
        json_step(js, run, i);
    dibsx_json_close(js, ']');
    dibsx_json_close(js, '}');
}

static const dibs__option options[] = {
    {DIBS__ROW_TEXT("board", "BOARD"), .letter = 'b', .initial = "main",
     .help = "The board whose jobs are meant. A jobs file names its own."},
};

const dibs__option_rows dibs__options_job_board = DIBS__OPTION_ROWS(
    "job ls,job show,job next,job runs,job logs,job start,job wait,job cancel,"
    "job rerun,job resume,job pause,job unpause,job reset,"
    "job rm,job nodes,job drain,work",
    options);
