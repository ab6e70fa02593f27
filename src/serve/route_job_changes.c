/* route_job_changes.c - an operator's changes of jobs: run, pause and resume. Threads of
 * the server. */
/* SPDX-License-Identifier: MIT */
#include "base/alloc.h"
#include "base/fail.h"
#include "jobs/board_change.h"
#include "jobs/board_start.h"
#include "serve/ask.h"
#include "serve/audit.h"
#include "serve/bulk.h"
#include "serve/daemon.h"
#include "serve/job_ask.h"
#include "serve/problem.h"
#include "serve/routes.h"
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

/* ---- run */

/* The member "params": texts by name. False: it was refused. */
static bool read_params(dibs__http_exchange *ex, const dibsx_json_node *body,
                        dibs__pair *out, size_t *count)
{
    const dibsx_json_node *map = dibsx_json_get(body, "params");
    bool good = !map || map->kind == DIBSX_JSON_MAP;

    *count = 0;
    for (const dibsx_json_node *node = map && good ? map->child : NULL;
         node && good; node = node->next) {
        good = node->kind == DIBSX_JSON_TEXT && *count < DIBS__JOB_PARAMS_MAX;
        if (good)
            out[(*count)++] = (dibs__pair){node->key, node->text};
    }
    if (!good)
        (void)dibs__serve_refuse(ex, 400, "invalid",
                                 "params must be an object of at most %d "
                                 "texts: {\"region\": \"eu\"}",
                                 DIBS__JOB_PARAMS_MAX);
    return good;
}

/* 409 with the run that lives. */
static void fail_start(dibs__http_exchange *ex, const dibs__board *board,
                       const char *job, const dibs_error *err)
{
    dibs__job_state state;
    dibsx_json *js = dibs__serve_fail(ex, err);

    if (err->status == DIBS_BUSY &&
        dibs__board_state(board, job, &state, NULL) == DIBS_OK && state.live[0])
        dibsx_json_pair_text(js, "run", state.live);
}

void dibs__serve_post_job_run(dibs__http_exchange *ex)
{
    const char *job = dibs__http_param(ex, "job"), *reason = NULL;
    dibs__pair params[DIBS__JOB_PARAMS_MAX];
    char id[DIBS__RUN_ID_SIZE];
    const dibsx_json_node *body;
    dibs__board board;
    dibs_error err = {0};
    size_t count = 0;
    dibs_status rc;

    if (!dibs__serve_ask_change(ex, "reason params", &body, &reason) ||
        !read_params(ex, body, params, &count) ||
        !dibs__serve_ask_board(ex, &board))
        return;
    rc = dibs__run_id_of_hand(job, dibs__http_header(ex, "Idempotency-Key"), id,
                              &err);
    if (rc == DIBS_OK)
        rc = dibs__board_start(&board, job, id, params, count,
                               &(dibs__member_of){.batch = NULL}, &err);
    dibs__serve_audit_note(ex, "job-run", job, 0, reason, rc);
    dibs__serve_changed(ex);
    if (rc == DIBS_OK)
        dibs__serve_answer_run(ex, &board, id);
    else
        fail_start(ex, &board, job, &err);
}

/* ---- pause and resume */

typedef struct pause_ask {
    dibs__pause_order order;
    char by[DIBS__RUN_NOTE_SIZE];
} pause_ask;

static bool
read_pause(dibs__http_exchange *ex, const dibsx_json_node *body, pause_ask *ask)
{
    const char *until = NULL;
    int64_t until_s = 0;

    *ask = (pause_ask){.order = {.by = ask->by}};
    dibs__serve_who(ex, ask->by);
    if (!dibs__serve_ask_text(ex, body, "reason", DIBS__RUN_NOTE_SIZE - 1,
                              &ask->order.note) ||
        !dibs__serve_ask_text(ex, body, "until_at", 40, &until) ||
        !dibs__serve_ask_moment(ex, "until_at", until, &until_s))
        return false;
    ask->order.until_us = until_s * 1000000;
    if (!ask->order.note)
        ask->order.note = "";
    return true;
}

static const char *action_of(bool pause)
{
    return pause ? "job-pause" : "job-resume";
}

static dibs_status change_job(const dibs__board *board, const char *job,
                              bool pause, const pause_ask *ask, dibs_error *err)
{
    return pause ? dibs__board_pause(board, job, &ask->order, err)
                 : dibs__board_unpause(board, job, err);
}

static void change_one(dibs__http_exchange *ex, bool pause)
{
    const char *job = dibs__http_param(ex, "job");
    const dibsx_json_node *body;
    dibs__board board;
    dibs_error err = {0};
    pause_ask ask;
    dibs_status rc;

    if (!dibs__serve_ask_body(ex, pause ? "reason until_at" : "reason",
                              &body) ||
        !read_pause(ex, body, &ask) || !dibs__serve_ask_board(ex, &board))
        return;
    rc = change_job(&board, job, pause, &ask, &err);
    dibs__serve_audit_note(ex, action_of(pause), job, 0, ask.order.note, rc);
    if (rc == DIBS_OK) {
        dibsx_json *js = dibs__http_answer(ex, 200);

        dibsx_json_pair_text(js, "job", job);
        dibsx_json_pair_bool(js, "paused", pause);
    } else {
        (void)dibs__serve_fail(ex, &err);
    }
    dibs__serve_changed(ex);
}

void dibs__serve_post_job_pause(dibs__http_exchange *ex)
{
    change_one(ex, true);
}

void dibs__serve_post_job_resume(dibs__http_exchange *ex)
{
    change_one(ex, false);
}

/* One entry for all jobs: the trail keeps 1,000, and one each could push out all others.
 * Each job has its line of the log. */
static void note_many(dibs__http_exchange *ex, const char *match, bool pause,
                      const char *note, size_t changed, dibs_status rc)
{
    char reason[DIBS__SERVE_REASON_MAX];

    snprintf(reason, sizeof(reason), "%zu job%s%s%s%s%s", changed,
             changed == 1 ? "" : "s", rc == DIBS_OK ? "" : ", ended by ",
             rc == DIBS_OK ? "" : dibs_status_name(rc), *note ? ": " : "",
             note);
    dibs__serve_audit_note(ex, action_of(pause), match, 0, reason, DIBS_OK);
}

/* Changes the jobs of the picture that match, as long as there is time, and lists them.
 * Returns how many changed, or may have; *left are those that were not tried. */
static size_t
change_rows(dibs__http_exchange *ex, const dibs__board_picture *picture,
            const char *match, bool pause, const pause_ask *ask, dibsx_json *js,
            size_t *left, dibs_error *err)
{
    const dibsx_nsec end = dibs__bulk_end();
    dibs_status rc = DIBS_OK;
    size_t changed = 0;

    for (size_t i = 0; i < picture->count; i++) {
        const dibs__job_state *state = &picture->rows[i].state;

        if (fnmatch(match, state->job, 0) != 0 || state->paused == pause)
            continue;
        if (rc != DIBS_OK || dibs__bulk_over(end)) {
            ++*left;
            continue;
        }
        rc = change_job(&picture->board, state->job, pause, ask, err);
        dibs__serve_audit_log(ex, action_of(pause), state->job, 0,
                              ask->order.note, rc);
        changed += rc == DIBS_OK || rc == DIBS_UNKNOWN;
        if (rc == DIBS_OK)
            dibsx_json_text(js, state->job);
    }
    return changed;
}

/* All jobs that match; those that are as they are to be stay so. The first failure ends
 * it, and the answer names the jobs before it. Sent again, it goes on. */
static void change_many(dibs__http_exchange *ex, bool pause)
{
    const dibsx_json_node *body;
    const char *match = NULL;
    dibs__board_picture *picture;
    dibs_error err = {0};
    pause_ask ask;
    dibsx_json *js;
    size_t changed, left = 0;

    if (!dibs__serve_ask_body(ex,
                              pause ? "match reason until_at" : "match reason",
                              &body) ||
        !dibs__serve_ask_text(ex, body, "match", DIBS__JOB_NAME_MAX, &match) ||
        !read_pause(ex, body, &ask))
        return;
    if (!match) {
        (void)dibs__serve_refuse(ex, 400, "invalid",
                                 "match must say which jobs: \"billing-*\", or "
                                 "\"*\" for all");
        return;
    }
    picture = dibs__serve_take_board(ex);
    if (!picture)
        return;
    js = dibs__http_answer(ex, 200);
    dibsx_json_key(js, "jobs");
    dibsx_json_open(js, '[');
    changed = change_rows(ex, picture, match, pause, &ask, js, &left, &err);
    dibsx_json_close(js, ']');
    dibsx_json_pair_uint(js, "left", left);
    if (changed > 0)
        note_many(ex, match, pause, ask.order.note, changed, err.status);
    if (err.status != DIBS_OK)
        (void)dibs__serve_fail(ex, &err);
    dibs__serve_changed(ex);
    dibs__board_picture_drop(picture);
}

void dibs__serve_post_jobs_pause(dibs__http_exchange *ex)
{
    change_many(ex, true);
}

void dibs__serve_post_jobs_resume(dibs__http_exchange *ex)
{
    change_many(ex, false);
}
