/* route_jobs.c - jobs: lists, definitions, next ticks, as the look at the board or the
 * store has them. Threads of the server. */
/* SPDX-License-Identifier: MIT */
#include "base/alloc.h"
#include "base/fail.h"
#include "jobs/board_set.h"
#include "jobs/moment.h"
#include "jobs/places.h"
#include "serve/ask.h"
#include "serve/daemon.h"
#include "serve/job_ask.h"
#include "serve/job_row.h"
#include "serve/problem.h"
#include "serve/routes.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LIMIT_MAX = 1000, TICKS_MAX = 1000, RUNS_SHOWN = 20 };

/* ---- lists */

typedef struct job_list {
    const char *prefix, *q, *status, *set;
    bool by_next;
    const char *after; /* the last job of the part before, or NULL */
    int64_t after_s;   /* when it was due then, in the order of next ticks */
    int64_t limit;
} job_list;

static bool has_text(const char *text, const char *part)
{
    return text && strcasestr(text, part);
}

static bool is_shown(const job_list *list, const dibs__board_row *row)
{
    const dibs__job *job = dibs__board_row_job(row);

    return strncmp(row->state.job, list->prefix, strlen(list->prefix)) == 0 &&
           (!*list->status ||
            strcmp(list->status, dibs__job_row_status(row)) == 0) &&
           (!*list->set || strcmp(list->set, row->state.set) == 0) &&
           (!*list->q || has_text(row->state.job, list->q) ||
            has_text(row->state.set, list->q) ||
            has_text(job ? job->description : NULL, list->q));
}

/* Jobs that are never due are last. */
static int
compare_next(const dibs__board_row *row, int64_t next_s, const char *job)
{
    const uint64_t left = (uint64_t)row->state.next_s - 1;
    const uint64_t right = (uint64_t)next_s - 1;

    if (left != right)
        return left < right ? -1 : 1;
    return strcmp(row->state.job, job);
}

static int by_next(const void *a, const void *b)
{
    const dibs__board_row *one = *(const dibs__board_row *const *)a;
    const dibs__board_row *two = *(const dibs__board_row *const *)b;

    return compare_next(one, two->state.next_s, two->state.job);
}

/* "SECONDS:JOB" in the order of next ticks: a job that has run since then is elsewhere,
 * and those behind its old place still come. */
static bool read_cursor(dibs__http_exchange *ex, job_list *list)
{
    char *end;

    if (!list->after || !list->by_next)
        return true;
    errno = 0;
    list->after_s = strtoll(list->after, &end, 10);
    if (end != list->after && *end == ':' && errno == 0) {
        list->after = end + 1;
        return true;
    }
    (void)dibs__serve_refuse(ex, 400, "invalid",
                             "There is no such ?after: it is the text of "
                             "\"next\" of the last answer");
    return false;
}

static bool read_list(dibs__http_exchange *ex, job_list *list)
{
    const char *sort = dibs__serve_ask_word(ex, "sort");

    *list = (job_list){.prefix = dibs__serve_ask_word(ex, "prefix"),
                       .q = dibs__serve_ask_word(ex, "q"),
                       .status = dibs__serve_ask_word(ex, "status"),
                       .set = dibs__serve_ask_word(ex, "set"),
                       .after = dibs__http_query(ex, "after"),
                       .by_next = strcmp(sort, "next") == 0,
                       .limit = 100};
    if (*sort && !list->by_next && strcmp(sort, "name") != 0) {
        (void)dibs__serve_refuse(ex, 400, "invalid",
                                 "?sort= must be name or next");
        return false;
    }
    if (*list->status && !dibs__job_row_is_status(list->status)) {
        (void)dibs__serve_refuse(ex, 400, "invalid",
                                 "?status= must be paused, off, running, due "
                                 "or on demand");
        return false;
    }
    return dibs__serve_ask_query(ex, "limit", 1, LIMIT_MAX, &list->limit) &&
           read_cursor(ex, list);
}

static bool is_before(const job_list *list, const dibs__board_row *row)
{
    return list->after &&
           (list->by_next ? compare_next(row, list->after_s, list->after)
                          : strcmp(row->state.job, list->after)) <= 0;
}

static void answer_next(dibs__http_exchange *ex, dibsx_json *js,
                        const job_list *list, const dibs__board_row *last)
{
    char cursor[24 + DIBS__JOB_NAME_MAX + 1];

    if (last && list->by_next)
        snprintf(cursor, sizeof(cursor), "%" PRId64 ":%s", last->state.next_s,
                 last->state.job);
    else if (last)
        snprintf(cursor, sizeof(cursor), "%s", last->state.job);
    dibsx_json_pair_text(js, "next", last ? cursor : NULL);
    dibs__serve_link_next(ex, last ? cursor : NULL);
}

static void
answer_list(dibs__http_exchange *ex, const job_list *list,
            const dibs__board_picture *picture, const dibs__board_row **rows)
{
    dibsx_json *js = dibs__http_answer(ex, 200);
    size_t count = 0, first = 0, end;

    for (size_t i = 0; i < picture->count; i++)
        if (is_shown(list, &picture->rows[i]))
            rows[count++] = &picture->rows[i];
    if (list->by_next && count > 1)
        qsort(rows, count, sizeof(*rows), by_next);
    while (first < count && is_before(list, rows[first]))
        first++;
    end = count - first > (size_t)list->limit ? first + (size_t)list->limit
                                              : count;
    dibsx_json_key(js, "items");
    dibsx_json_open(js, '[');
    for (size_t i = first; i < end; i++) {
        dibsx_json_open(js, '{');
        dibs__job_row_json(js, rows[i], picture->now_us);
        dibsx_json_close(js, '}');
    }
    dibsx_json_close(js, ']');
    answer_next(ex, js, list, end < count ? rows[end - 1] : NULL);
    dibsx_json_pair_uint(js, "total", count);
    dibsx_json_pair_text(js, "total_is",
                         picture->complete ? "exact" : "at_least");
    dibsx_json_pair_text(js, "board", picture->board.name);
    dibsx_json_pair_int(js, "as_of_ms",
                        (dibsx_now() - picture->seen_at) / DIBSX_MS);
    dibsx_json_pair_bool(js, "complete", picture->complete);
}

void dibs__serve_get_jobs(dibs__http_exchange *ex)
{
    dibs__board_picture *picture;
    const dibs__board_row **rows;
    job_list list;

    if (!read_list(ex, &list))
        return;
    picture = dibs__serve_take_board(ex);
    if (!picture)
        return;
    rows = dibsx_zalloc_n(picture->count + 1, sizeof(*rows));
    if (rows)
        answer_list(ex, &list, picture, rows);
    else
        (void)dibs__serve_refuse(ex, 503, "nomem", "there is no memory left");
    dibsx_free(rows);
    dibs__board_picture_drop(picture);
}

/* ---- one job */

/* The state and the definition as the store has them now. A definition that is gone or
 * unreadable is NULL; *lacks says why, or is NULL for a caller that needs it. False after
 * an answer. */
static bool
read_row(dibs__http_exchange *ex, const dibs__board *board, const char *name,
         dibs__board_row *row, dibs__board_def *def, dibs_error *lacks)
{
    dibs_error err = {0};
    dibs_status rc = dibs__board_state(board, name, &row->state, &err);

    if (rc == DIBS_OK && !row->state.set[0])
        rc = dibsx_fail(&err, DIBS_NOTFOUND,
                        "the job %s is in no set any more; load a file that "
                        "has it",
                        name);
    if (rc == DIBS_OK) {
        rc = dibs__board_job(board, name, row->state.hash, &def->job, &err);
        if (lacks && (rc == DIBS_NOTFOUND || rc == DIBS_INVALID)) {
            *lacks = err;
            rc = DIBS_OK;
        }
    }
    row->def = def;
    if (rc != DIBS_OK)
        (void)dibs__serve_fail(ex, &err);
    return rc == DIBS_OK;
}

/* The latest runs of a job, the newest first. */
typedef struct latest_runs {
    dibs__run at[RUNS_SHOWN];
    dibs_error lacks[RUNS_SHOWN]; /* why a record cannot be read, or none */
    size_t count;
} latest_runs;

/* Its history may have removed one since. */
static dibs_status
read_latest(const dibs__board *board, const dibs__board_row *row,
            latest_runs *latest, dibs_error *err)
{
    dibs_status rc = DIBS_OK;

    for (size_t i = 0; rc == DIBS_OK && i < RUNS_SHOWN && i < row->run_count;
         i++) {
        const char *id = row->runs[row->run_count - 1 - i].id;
        dibs__run *run = &latest->at[latest->count];

        rc = dibs__board_run(board, id, run, err);
        if (rc == DIBS_INVALID)
            latest->lacks[latest->count] = *err;
        if (rc == DIBS_OK || rc == DIBS_INVALID)
            latest->count++;
        else
            dibs__run_fini(run);
        if (rc == DIBS_NOTFOUND || rc == DIBS_INVALID)
            rc = DIBS_OK;
    }
    return rc;
}

/* Whether a node has a step of one of them. */
static bool has_work(const latest_runs *latest)
{
    for (size_t i = 0; i < latest->count; i++)
        for (size_t k = 0; k < latest->at[i].step_count; k++)
            if (dibs__step_place(&latest->at[i].steps[k]).kind ==
                DIBS__PLACE_LIVE)
                return true;
    return false;
}

/* The same of the runs that are not among the latest, as the look at the daemon's own board
 * saw it. */
static bool has_more_work(dibs__http_exchange *ex, const dibs__board *board,
                          const dibs__board_row *row)
{
    dibs__serve *sv = dibs__http_arg(ex);
    dibs__board_picture *picture = NULL;
    const dibs__board_row *seen;
    bool works;

    if (row->run_count > RUNS_SHOWN &&
        strcmp(board->name, sv->engine.board) == 0)
        picture = dibs__board_look_take(&sv->board_look, 0);
    seen = picture ? dibs__board_picture_find(picture, row->state.job) : NULL;
    works = seen && seen->works;
    dibs__board_picture_drop(picture);
    return works;
}

static void put_runs(dibsx_json *js, const char *job, const latest_runs *latest)
{
    dibsx_json_key(js, "runs");
    dibsx_json_open(js, '[');
    for (size_t i = 0; i < latest->count; i++) {
        dibsx_json_open(js, '{');
        if (latest->lacks[i].status == DIBS_OK)
            dibs__run_row_json(js, &latest->at[i], NULL, false);
        else
            dibs__run_json_unreadable(js, latest->at[i].id, job,
                                      latest->lacks[i].message);
        dibsx_json_close(js, '}');
    }
    dibsx_json_close(js, ']');
}

/* Where the definition came from. */
static void put_set(dibsx_json *js, const dibs__board *board, const char *name)
{
    dibs__stored_set set;

    dibsx_json_key(js, "loaded");
    if (dibs__board_set(board, name, &set, NULL) == DIBS_OK) {
        dibsx_json_open(js, '{');
        dibsx_json_pair_int(js, "version", set.set.version);
        dibsx_json_pair_text(js, "from", set.set.origin);
        dibsx_json_pair_text(js, "by", set.set.by);
        dibsx_json_close(js, '}');
    } else {
        dibsx_json_null(js);
    }
    dibs__stored_set_fini(&set);
}

void dibs__serve_get_job(dibs__http_exchange *ex)
{
    dibs__board_def def = {.job = NULL};
    dibs__board_row row = {.run_count = 0};
    dibs__board board;
    dibs_error err = {0}, lacks = {0};
    latest_runs *latest;
    int64_t now_us = 0;
    dibs_status rc;

    if (!dibs__serve_ask_board(ex, &board) ||
        !read_row(ex, &board, dibs__http_param(ex, "job"), &row, &def, &lacks))
        return;
    latest = dibsx_zalloc(sizeof(*latest));
    rc = latest ? dibs__board_row_read_runs(&board, &row, 1, &now_us, &err)
                : dibsx_nomem(&err, "the runs of a job");
    if (rc == DIBS_OK)
        rc = read_latest(&board, &row, latest, &err);
    if (rc == DIBS_OK) {
        dibsx_json *js = dibs__http_answer(ex, 200);

        row.works = has_work(latest) || has_more_work(ex, &board, &row);
        dibs__job_row_json(js, &row, now_us);
        dibsx_json_pair_text(js, "unreadable", def.job ? NULL : lacks.message);
        if (def.job)
            dibs__job_definition_json(js, def.job);
        put_set(js, &board, row.state.set);
        put_runs(js, row.state.job, latest);
    } else {
        (void)dibs__serve_fail(ex, &err);
    }
    for (size_t i = 0; latest && i < latest->count; i++)
        dibs__run_fini(&latest->at[i]);
    dibsx_free(latest);
    dibs__board_row_drop_runs(&row);
    dibs__job_free(def.job);
}

/* ---- ticks */

static void
put_tick(dibsx_json *js, const dibs__tick *tick, const dibs__zone *shown)
{
    static const char *const rules[] = {NULL, "gap", "first pass"};
    char local[DIBS__MOMENT_SIZE], offset[DIBS__OFFSET_SIZE];
    const int32_t offset_s =
        shown ? dibs__zone_offset(shown, tick->at) : tick->offset_s;

    dibs__moment_text(tick->at + offset_s, local);
    dibs__offset_text(offset_s, offset);
    dibsx_json_open(js, '{');
    dibs__json_at(js, "at", tick->at * 1000000);
    dibsx_json_pair_text(js, "local", local);
    dibsx_json_pair_text(js, "offset", offset);
    dibsx_json_pair_text(js, "rule", rules[tick->rule]);
    dibsx_json_close(js, '}');
}

static void put_next(dibsx_json *js, const dibs__board_row *row,
                     const dibs__zone *zone, const dibs__zone *shown, int64_t n)
{
    int64_t after_s = row->state.mark_s, local_s = row->state.mark_local_s;
    const dibs__job *job = dibs__board_row_job(row);
    dibs__tick tick;

    for (int64_t i = 0; i < n && job->enabled && !row->state.paused; i++) {
        if (!dibs__job_next(job, &row->state, zone, after_s, local_s, &tick))
            return;
        put_tick(js, &tick, shown);
        after_s = tick.at;
        local_s = tick.at + tick.offset_s;
    }
}

void dibs__serve_get_next(dibs__http_exchange *ex)
{
    const char *tz = dibs__http_query(ex, "tz");
    dibs__board_def def = {.job = NULL};
    dibs__board_row row = {.run_count = 0};
    dibs__zone *zone = NULL, *shown = NULL;
    dibs__board board;
    dibs_error err = {0};
    int64_t n = 10;
    dibs_status rc = DIBS_OK;

    if (!dibs__serve_ask_query(ex, "n", 1, TICKS_MAX, &n) ||
        !dibs__serve_ask_board(ex, &board) ||
        !read_row(ex, &board, dibs__http_param(ex, "job"), &row, &def, NULL))
        return;
    rc = dibs__zone_open(def.job->zone, &zone, &err);
    if (rc == DIBS_OK && tz) {
        rc = dibs__zone_open(tz, &shown, &err);
        if (rc == DIBS_NOTFOUND)
            err.status = DIBS_INVALID;
    }
    if (rc == DIBS_OK) {
        dibsx_json *js = dibs__http_answer(ex, 200);

        dibsx_json_pair_text(js, "job", row.state.job);
        dibsx_json_pair_text(js, "zone", tz ? tz : def.job->zone);
        dibsx_json_key(js, "items");
        dibsx_json_open(js, '[');
        put_next(js, &row, zone, shown, n);
        dibsx_json_close(js, ']');
    } else {
        (void)dibs__serve_fail(ex, &err);
    }
    dibs__zone_free(shown);
    dibs__zone_free(zone);
    dibs__job_free(def.job);
}
