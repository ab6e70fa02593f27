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

/* A change of all jobs that match. */
typedef struct bulk {
    dibs__http_exchange *ex;
    const dibs__board_picture *picture;
    const char *match;
    bool pause;
    const pause_ask *ask;
    dibsx_json *js; /* lists those that were changed */
    dibsx_nsec end;
    size_t done;    /* listed */
    size_t changed; /* or may be */
    size_t left;    /* that were not tried, or at which the store failed */
    dibs_error err; /* of the first failure, which ends it */
} bulk;

static void change_next(bulk *bk, const char *job)
{
    dibs_status rc;

    if (bk->err.status != DIBS_OK || dibs__bulk_over(bk->end)) {
        bk->left++;
        return;
    }
    rc = change_job(&bk->picture->board, job, bk->pause, bk->ask, &bk->err);
    dibs__serve_audit_log(bk->ex, action_of(bk->pause), job, 0,
                          bk->ask->order.note, rc);
    bk->done += rc == DIBS_OK;
    bk->changed += rc == DIBS_OK || rc == DIBS_UNKNOWN;
    bk->left += rc != DIBS_OK;
    if (rc == DIBS_OK)
        dibsx_json_text(bk->js, job);
}

/* The store says which of them are to be changed. False: they were not tried. */
static bool change_some(bulk *bk, const char *const *jobs, size_t count)
{
    dibs__job_state states[DIBS_GET_MANY_MAX];

    if (count == 0)
        return true;
    if (bk->err.status != DIBS_OK || dibs__bulk_over(bk->end))
        return false;
    if (dibs__board_states(&bk->picture->board, jobs, count, states,
                           &bk->err) != DIBS_OK) {
        bk->left += count;
        return true;
    }
    for (size_t i = 0; i < count; i++)
        if (states[i].set[0] && states[i].paused != bk->pause)
            change_next(bk, jobs[i]);
    return true;
}

/* Jobs that are paused in the picture, or that are not. Returns how many were not
 * tried. */
static size_t change_rows(bulk *bk, bool paused)
{
    const dibs__board_picture *picture = bk->picture;
    const char *jobs[DIBS_GET_MANY_MAX];
    size_t count = 0, untried = 0;

    for (size_t i = 0; i < picture->count; i++) {
        const dibs__job_state *state = &picture->rows[i].state;

        if (state->paused == paused && fnmatch(bk->match, state->job, 0) == 0)
            jobs[count++] = state->job;
        if (count == DIBS_GET_MANY_MAX || i + 1 == picture->count) {
            untried += change_some(bk, jobs, count) ? 0 : count;
            count = 0;
        }
    }
    return untried;
}

/* The picture may be older than the last change. Jobs that seem to be as they should are
 * looked at last, and are not left if there was no time for it. */
static void change_matching(bulk *bk)
{
    bk->left += change_rows(bk, !bk->pause);
    (void)change_rows(bk, bk->pause);
}

/* All jobs that match; those that are as they are to be stay so. The first failure ends
 * it. If jobs were changed before, the answer names them, and counts the others as left.
 * Sent again, it goes on. */
static void change_many(dibs__http_exchange *ex, bool pause)
{
    const dibsx_json_node *body;
    const char *match = NULL;
    dibs__board_picture *picture;
    pause_ask ask;
    bulk bk;

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
    bk = (bulk){.ex = ex,
                .picture = picture,
                .match = match,
                .pause = pause,
                .ask = &ask,
                .js = dibs__http_answer(ex, 200),
                .end = dibs__bulk_end()};
    dibsx_json_key(bk.js, "jobs");
    dibsx_json_open(bk.js, '[');
    change_matching(&bk);
    dibsx_json_close(bk.js, ']');
    dibsx_json_pair_uint(bk.js, "left", bk.left);
    if (bk.changed > 0)
        note_many(ex, match, pause, ask.order.note, bk.changed, bk.err.status);
    if (bk.err.status != DIBS_OK && bk.done == 0)
        (void)dibs__serve_fail(ex, &bk.err);
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
