/* route_runs.c - runs: lists, records, and changes by an operator. Threads of the
 * server. */
/* SPDX-License-Identifier: MIT */
#include "base/alloc.h"
#include "base/fail.h"
#include "jobs/board_change.h"
#include "jobs/board_start.h"
#include "serve/ask.h"
#include "serve/audit.h"
#include "serve/daemon.h"
#include "serve/job_ask.h"
#include "serve/job_row.h"
#include "serve/problem.h"
#include "serve/routes.h"
#include "serve/run_fetch.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum {
    LIMIT_MAX = 2000,
    READS_MAX = 2048,
    PAGE_BYTES = 8 * 1024 * 1024, /* an answer has 16 MiB at most */
    CURSOR_MAX = DIBS__RUN_ID_SIZE + 24
};

/* ---- lists */

typedef struct run_list {
    const char *job;   /* "": all */
    const char *state; /* "": all; "live": those that have not ended */
    int64_t limit;
    int64_t latest; /* so many of each job, the newest */
    bool begun;     /* there is a cursor: */
    int64_t after_us;
    char after_id[DIBS__RUN_ID_SIZE];
} run_list;

/* "NUMBER-ID", of the last run that was shown. */
static bool read_cursor(run_list *list, const char *text)
{
    char *end;

    list->begun = true;
    list->after_us = strtoll(text, &end, 10);
    if (end == text || *end != '-' || strlen(end + 1) >= DIBS__RUN_ID_SIZE)
        return false;
    (void)snprintf(list->after_id, sizeof(list->after_id), "%s", end + 1);
    return true;
}

static bool is_state(const char *text)
{
    if (!*text || strcasecmp(text, "live") == 0)
        return true;
    for (int i = 0; i < DIBS__STATES; i++)
        if (strcasecmp(text, dibs__run_state_name((dibs__run_state)i)) == 0)
            return true;
    return false;
}

static bool read_list(dibs__http_exchange *ex, run_list *list)
{
    const char *job = dibs__http_query(ex, "job");
    const char *state = dibs__http_query(ex, "state");
    const char *after = dibs__http_query(ex, "after");

    *list = (run_list){.job = job ? job : "",
                       .state = state ? state : "",
                       .limit = 100,
                       .latest = INT64_MAX};
    if (!is_state(list->state)) {
        (void)dibs__serve_refuse(ex, 400, "invalid",
                                 "?state= must be live, queued, active, ok, "
                                 "failed, cancelled, missed or skipped");
        return false;
    }
    if (after && !read_cursor(list, after)) {
        (void)dibs__serve_refuse(ex, 400, "invalid",
                                 "?after= must be \"next\" of an answer");
        return false;
    }
    return dibs__serve_ask_query(ex, "limit", 1, LIMIT_MAX, &list->limit) &&
           dibs__serve_ask_query(ex, "latest", 1, LIMIT_MAX, &list->latest);
}

/* The newest first. */
static int compare_ids(const void *a, const void *b)
{
    const dibs__board_run_id *one = *(const dibs__board_run_id *const *)a;
    const dibs__board_run_id *two = *(const dibs__board_run_id *const *)b;

    if (one->at_us != two->at_us)
        return one->at_us > two->at_us ? -1 : 1;
    return strcmp(two->id, one->id);
}

static bool is_after(const run_list *list, const dibs__board_run_id *id)
{
    if (!list->begun || id->at_us != list->after_us)
        return !list->begun || id->at_us < list->after_us;
    return strcmp(id->id, list->after_id) < 0;
}

/* The ids that the list may show, in order; NULL: no memory. */
static const dibs__board_run_id **
sort_ids(const run_list *list, const dibs__board_picture *picture,
         size_t *count)
{
    const dibs__board_run_id **ids;
    size_t total = 0;

    *count = 0;
    for (size_t i = 0; i < picture->count; i++)
        total += picture->rows[i].run_count;
    ids = dibsx_zalloc_n(total + 1, sizeof(*ids));
    for (size_t i = 0; ids && i < picture->count; i++) {
        const dibs__board_row *row = &picture->rows[i];

        if (*list->job && strcmp(list->job, row->state.job) != 0)
            continue;
        /* The oldest come first. */
        for (size_t k = row->run_count > (uint64_t)list->latest
                            ? row->run_count - (size_t)list->latest
                            : 0;
             k < row->run_count; k++)
            if (is_after(list, &row->runs[k]))
                ids[(*count)++] = &row->runs[k];
    }
    if (*count > 1)
        qsort(ids, *count, sizeof(*ids), compare_ids);
    return ids;
}

static bool is_shown(const run_list *list, const dibs__run *run)
{
    if (!*list->state)
        return true;
    if (strcasecmp(list->state, "live") == 0)
        return !dibs__state_final(run->state);
    return strcasecmp(list->state, dibs__run_state_name(run->state)) == 0;
}

typedef struct page {
    const run_list *list;
    dibsx_json *js;
    int64_t shown;
    size_t at; /* ids that were dealt with */
} page;

/* A record that is gone is left out. One that cannot be read is named where any state is
 * asked for. */
static void
put_value(page *pg, const dibs__board_run_id *id, const dibs_value *value)
{
    dibs__run run;
    dibs_error err = {0};
    dibs_status rc = DIBS_NOTFOUND;

    dibs__run_init(&run, id->id);
    if (value->version != 0)
        rc = dibs__run_read(&run, id->id, value->data, value->len, &err);
    if (rc == DIBS_OK ? is_shown(pg->list, &run)
                      : rc == DIBS_INVALID && !*pg->list->state) {
        dibsx_json_open(pg->js, '{');
        if (rc == DIBS_OK)
            dibs__run_row_json(pg->js, &run, NULL, false);
        else
            dibs__run_json_unreadable(pg->js, id->id, id->job, err.message);
        dibsx_json_close(pg->js, '}');
        pg->shown++;
    }
    dibs__run_fini(&run);
}

/* Runs with many steps or long params fill a page before the limit. */
static bool is_full(const page *pg)
{
    return pg->shown >= pg->list->limit || pg->js->out->len >= PAGE_BYTES;
}

static dibs_status
put_runs(page *pg, const dibs__board_picture *picture,
         const dibs__board_run_id **ids, size_t count, dibs_error *err)
{
    dibs_value values[DIBS_GET_MANY_MAX];
    dibs_status rc = DIBS_OK;

    while (rc == DIBS_OK && pg->at < count && pg->at < READS_MAX &&
           !is_full(pg)) {
        const size_t first = pg->at;
        const size_t n = count - first < DIBS_GET_MANY_MAX ? count - first
                                                           : DIBS_GET_MANY_MAX;

        rc = dibs__run_fetch(&picture->board, ids + first, n, values, err);
        for (size_t i = 0; rc == DIBS_OK && i < n; i++) {
            if (!is_full(pg)) {
                put_value(pg, ids[first + i], &values[i]);
                pg->at++;
            }
            dibs_value_free(&values[i]);
        }
    }
    return rc;
}

static void answer_list(dibs__http_exchange *ex, const run_list *list,
                        const dibs__board_picture *picture)
{
    const dibs__board_run_id **ids;
    char cursor[CURSOR_MAX] = "";
    page pg = {.list = list};
    dibs_error err = {0};
    size_t count;

    ids = sort_ids(list, picture, &count);
    if (!ids) {
        (void)dibs__serve_refuse(ex, 503, "nomem", "there is no memory left");
        return;
    }
    pg.js = dibs__http_answer(ex, 200);
    dibsx_json_key(pg.js, "items");
    dibsx_json_open(pg.js, '[');
    if (put_runs(&pg, picture, ids, count, &err) != DIBS_OK) {
        (void)dibs__serve_fail(ex, &err);
        dibsx_free(ids);
        return;
    }
    dibsx_json_close(pg.js, ']');
    if (pg.at > 0 && pg.at < count)
        (void)snprintf(cursor, sizeof(cursor), "%lld-%s",
                       (long long)ids[pg.at - 1]->at_us, ids[pg.at - 1]->id);
    dibsx_json_pair_text(pg.js, "next", *cursor ? cursor : NULL);
    dibs__serve_link_next(ex, *cursor ? cursor : NULL);
    dibsx_json_pair_text(pg.js, "board", picture->board.name);
    dibsx_json_pair_int(pg.js, "as_of_ms",
                        (dibsx_now() - picture->seen_at) / DIBSX_MS);
    dibsx_json_pair_bool(pg.js, "complete", picture->complete);
    dibsx_free(ids);
}

void dibs__serve_get_runs(dibs__http_exchange *ex)
{
    dibs__board_picture *picture;
    run_list list;

    if (!read_list(ex, &list))
        return;
    picture = dibs__serve_take_board(ex);
    if (!picture)
        return;
    if (*list.job && !dibs__board_picture_find(picture, list.job))
        (void)dibs__serve_refuse(ex, 404, "notfound",
                                 "there is no job %.100s on the board %s",
                                 list.job, picture->board.name);
    else
        answer_list(ex, &list, picture);
    dibs__board_picture_drop(picture);
}

/* ---- one run */

void dibs__serve_get_run(dibs__http_exchange *ex)
{
    dibs__job *job = NULL;
    dibs__board board;
    dibs__run run;
    dibs_error err = {0};
    char etag[32];

    if (!dibs__serve_ask_board(ex, &board))
        return;
    if (dibs__board_run(&board, dibs__http_param(ex, "run"), &run, &err) !=
        DIBS_OK) {
        (void)dibs__serve_fail(ex, &err);
        dibs__run_fini(&run);
        return;
    }
    (void)snprintf(etag, sizeof(etag), "\"v%llu\"",
                   (unsigned long long)run.version);
    if (!dibs__http_not_modified(ex, etag)) {
        dibsx_json *js = dibs__http_answer(ex, 200);

        /* Without its definition a run is shown all the same. */
        (void)!dibs__board_job(&board, run.job, run.hash, &job, NULL);
        dibs__run_row_json(js, &run, job, true);
        dibsx_json_pair_text(js, "zone", job ? job->zone : NULL);
    }
    dibs__job_free(job);
    dibs__run_fini(&run);
}

void dibs__serve_post_run_cancel(dibs__http_exchange *ex)
{
    const char *id = dibs__http_param(ex, "run"), *reason = NULL;
    const dibsx_json_node *body;
    dibs__board board;
    dibs_error err = {0};
    dibs_status rc;

    if (!dibs__serve_ask_change(ex, "reason", &body, &reason) ||
        !dibs__serve_ask_board(ex, &board))
        return;
    rc = dibs__board_cancel(&board, id, &err);
    dibs__serve_audit_note(ex, "run-cancel", id, 0, reason, rc);
    dibs__serve_changed(ex);
    if (rc == DIBS_OK)
        dibs__serve_answer_run(ex, &board, id);
    else
        (void)dibs__serve_fail(ex, &err);
}

void dibs__serve_post_run_rerun(dibs__http_exchange *ex)
{
    const char *id = dibs__http_param(ex, "run"), *reason = NULL, *from = NULL;
    char made[DIBS__RUN_ID_SIZE];
    const dibsx_json_node *body;
    dibs__board board;
    dibs__run older;
    dibs_error err = {0};
    dibs_status rc;

    if (!dibs__serve_ask_change(ex, "reason from", &body, &reason) ||
        !dibs__serve_ask_text(ex, body, "from", DIBS__JOB_NAME_MAX, &from) ||
        !dibs__serve_ask_board(ex, &board))
        return;
    rc = dibs__board_run(&board, id, &older, &err);
    if (rc == DIBS_OK)
        rc = dibs__run_id_of_hand(older.job,
                                  dibs__http_header(ex, "Idempotency-Key"),
                                  made, &err);
    if (rc == DIBS_OK)
        rc = dibs__board_rerun(&board, &older, made, from, &err);
    dibs__serve_audit_note(ex, "run-rerun", id, 0, reason, rc);
    dibs__serve_changed(ex);
    if (rc == DIBS_OK)
        dibs__serve_answer_run(ex, &board, made);
    else
        (void)dibs__serve_fail(ex, &err);
    dibs__run_fini(&older);
}

void dibs__serve_post_run_resume(dibs__http_exchange *ex)
{
    const char *id = dibs__http_param(ex, "run");
    const char *bookmark = NULL, *reason = NULL;
    const dibsx_json_node *body, *data;
    char who[DIBS__RUN_NOTE_SIZE];
    dibs__board board;
    dibs_error err = {0};
    dibs_status rc;

    if (!dibs__serve_ask_body(ex, "bookmark data reason", &body) ||
        !dibs__serve_ask_text(ex, body, "bookmark", DIBS__JOB_NAME_MAX,
                              &bookmark) ||
        !dibs__serve_ask_text(ex, body, "reason", DIBS__SERVE_REASON_MAX,
                              &reason) ||
        !dibs__serve_ask_board(ex, &board))
        return;
    data = dibsx_json_get(body, "data");
    if (!bookmark || (data && data->kind != DIBSX_JSON_TEXT &&
                      data->kind != DIBSX_JSON_NULL)) {
        (void)dibs__serve_refuse(ex, 400, "invalid",
                                 bookmark ? "data must be a text"
                                          : "bookmark must say which one");
        return;
    }
    dibs__serve_who(ex, who);
    rc = dibs__board_resume(
        &board, id,
        &(dibs__resumption){.bookmark = bookmark,
                            .who = who,
                            .data = data ? data->text : NULL,
                            .len = data && data->text ? data->len : 0},
        &err);
    dibs__serve_audit_note(ex, "run-resume", id, 0, reason, rc);
    dibs__serve_changed(ex);
    if (rc == DIBS_OK)
        dibs__serve_answer_run(ex, &board, id);
    else
        (void)dibs__serve_fail(ex, &err);
}
