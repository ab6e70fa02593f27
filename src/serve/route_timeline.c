/* route_timeline.c - runs of the past and ticks of the future: each of them, or how many
 * there are in each cell of a calendar. Threads of the server. */
/* SPDX-License-Identifier: MIT */
#include "base/alloc.h"
#include "serve/ask.h"
#include "serve/bulk.h"
#include "serve/daemon.h"
#include "serve/job_ask.h"
#include "serve/job_row.h"
#include "serve/problem.h"
#include "serve/routes.h"
#include "serve/run_fetch.h"
#include "serve/timeline.h"

enum {
    LISTED_MAX = 2000,
    READS_MAX = 4096,     /* records of runs */
    COUNTED_MAX = 300000, /* counted ticks take no room in the answer */
    CELLS_MAX = 1000,
    STEP_MIN_S = 60,
    HOUR_S = 3600,
    DAY_S = 86400
};

typedef struct cell {
    uint32_t ok, failed, other; /* runs that have ended */
    uint32_t live;
    uint32_t ticks;
} cell;

typedef struct span {
    int64_t from_s, to_s;
    int64_t step_s; /* 0: each run and tick is listed */
    cell *cells;
    size_t cell_count;
    size_t left; /* runs or ticks that the answer may still have */
    bool complete;
} span;

/* NULL: the moment is in no cell. */
static cell *find_cell(const span *sp, int64_t at_s)
{
    const int64_t index = (at_s - sp->from_s) / sp->step_s;

    return at_s >= sp->from_s && (size_t)index < sp->cell_count
               ? &sp->cells[index]
               : NULL;
}

static void
put_tick(dibsx_json *js, const span *sp, const char *job, int64_t at_s)
{
    cell *in = sp->step_s ? find_cell(sp, at_s) : NULL;

    if (in)
        in->ticks++;
    if (sp->step_s)
        return;
    dibsx_json_open(js, '{');
    dibsx_json_pair_text(js, "job", job);
    dibs__json_at(js, "at", at_s * 1000000);
    dibsx_json_close(js, '}');
}

static void put_future(dibsx_json *js, const dibs__board_row *row,
                       const dibs__board_picture *picture, span *sp)
{
    const dibs__job *job = dibs__board_row_job(row);
    const int64_t now_s = picture->now_us / 1000000;
    int64_t after_s = row->state.mark_s, local_s = row->state.mark_local_s;
    dibs__zone *zone = NULL;
    dibs__tick tick;

    if (!job || !job->enabled || row->state.paused || !row->state.next_s ||
        dibs__zone_open(job->zone, &zone, NULL) != DIBS_OK)
        return;
    /* Ticks before the span are not counted through. */
    if (after_s < (now_s > sp->from_s ? now_s : sp->from_s) - 1) {
        after_s = (now_s > sp->from_s ? now_s : sp->from_s) - 1;
        local_s = after_s + dibs__zone_offset(zone, after_s);
    }
    while (dibs__job_next(job, &row->state, zone, after_s, local_s, &tick) &&
           tick.at <= sp->to_s) {
        if (sp->left == 0) {
            sp->complete = false;
            break;
        }
        sp->left--;
        put_tick(js, sp, row->state.job, tick.at);
        after_s = tick.at;
        local_s = tick.at + tick.offset_s;
    }
    dibs__zone_free(zone);
}

static void count_run(const span *sp, const dibs__run *run, int64_t began_us)
{
    cell *in = find_cell(sp, began_us / 1000000);

    if (!in)
        return;
    if (!dibs__state_final(run->state))
        in->live++;
    else if (run->state == DIBS__STATE_OK)
        in->ok++;
    else if (run->state == DIBS__STATE_FAILED)
        in->failed++;
    else
        in->other++;
}

static void put_run(dibsx_json *js, const dibs__run *run)
{
    dibsx_json_open(js, '{');
    dibsx_json_pair_text(js, "id", run->id);
    dibsx_json_pair_text(js, "job", run->job);
    dibsx_json_pair_text(js, "state", dibs__run_state_name(run->state));
    dibs__json_at(js, "made_at", run->made_us);
    dibs__json_at(js, "begun_at", run->begun_us);
    dibs__json_at(js, "ended_at", run->ended_us);
    dibsx_json_close(js, '}');
}

static void put_or_count(dibsx_json *js, const dibs__run *run, span *sp)
{
    const int64_t began_us = run->begun_us ? run->begun_us : run->made_us;

    if (began_us > sp->to_s * 1000000)
        return;
    if (sp->left == 0) {
        sp->complete = false;
        return;
    }
    sp->left--;
    if (sp->step_s)
        count_run(sp, run, began_us);
    else
        put_run(js, run);
}

/* A record that is gone, or that another program wrote badly, is left out. */
static void
put_value(dibsx_json *js, const char *id, const dibs_value *value, span *sp)
{
    dibs__run run;

    dibs__run_init(&run, id);
    if (value->version != 0 &&
        dibs__run_read(&run, id, value->data, value->len, NULL) == DIBS_OK)
        put_or_count(js, &run, sp);
    dibs__run_fini(&run);
}

/* Ends when the time of a request is over. */
static dibs_status
put_past(dibsx_json *js, const dibs__board_picture *picture,
         const dibs__timeline_ids *ids, span *sp, dibs_error *err)
{
    const dibsx_nsec end = dibs__bulk_end();
    dibs_value values[DIBS_GET_MANY_MAX];
    dibs_status rc = DIBS_OK;
    size_t first = 0;

    while (rc == DIBS_OK && first < ids->count && sp->left > 0 &&
           !dibs__bulk_over(end)) {
        const size_t n = ids->count - first < DIBS_GET_MANY_MAX
                             ? ids->count - first
                             : DIBS_GET_MANY_MAX;

        rc = dibs__run_fetch(&picture->board, ids->at + first, n, values, err);
        for (size_t i = 0; rc == DIBS_OK && i < n; i++) {
            put_value(js, ids->at[first + i]->id, &values[i], sp);
            dibs_value_free(&values[i]);
        }
        first += n;
    }
    sp->complete = sp->complete && ids->complete && first == ids->count;
    return rc;
}

/* Leaves out cells with nothing in them. */
static void put_cells(dibsx_json *js, const span *sp)
{
    dibsx_json_pair_int(js, "step_s", sp->step_s);
    dibsx_json_key(js, "cells");
    dibsx_json_open(js, '[');
    for (size_t i = 0; i < sp->cell_count; i++) {
        const cell *at = &sp->cells[i];

        if (!(at->ok | at->failed | at->other | at->live | at->ticks))
            continue;
        dibsx_json_open(js, '{');
        dibs__json_at(js, "at",
                      (sp->from_s + (int64_t)i * sp->step_s) * 1000000);
        dibsx_json_pair_uint(js, "ok", at->ok);
        dibsx_json_pair_uint(js, "failed", at->failed);
        dibsx_json_pair_uint(js, "other", at->other);
        dibsx_json_pair_uint(js, "live", at->live);
        dibsx_json_pair_uint(js, "ticks", at->ticks);
        dibsx_json_close(js, '}');
    }
    dibsx_json_close(js, ']');
}

static void open_list(dibsx_json *js, const span *sp, const char *key)
{
    if (sp->step_s)
        return;
    dibsx_json_key(js, key);
    dibsx_json_open(js, '[');
}

static void close_list(dibsx_json *js, const span *sp)
{
    if (!sp->step_s)
        dibsx_json_close(js, ']');
}

static void
answer_timeline(dibs__http_exchange *ex, const dibs__board_picture *picture,
                const dibs__timeline_ids *ids, span *sp)
{
    dibsx_json *js = dibs__http_answer(ex, 200);
    dibs_error err = {0};

    dibs__json_at(js, "from", sp->from_s * 1000000);
    dibs__json_at(js, "to", sp->to_s * 1000000);
    dibs__json_at(js, "now", picture->now_us);
    sp->complete = true;
    sp->left = sp->step_s ? READS_MAX : LISTED_MAX;
    open_list(js, sp, "runs");
    if (put_past(js, picture, ids, sp, &err) != DIBS_OK) {
        (void)dibs__serve_fail(ex, &err);
        return;
    }
    close_list(js, sp);
    sp->left = sp->step_s ? COUNTED_MAX : LISTED_MAX;
    open_list(js, sp, "ticks");
    for (size_t i = 0; i < picture->count; i++)
        put_future(js, &picture->rows[i], picture, sp);
    close_list(js, sp);
    if (sp->step_s)
        put_cells(js, sp);
    dibsx_json_pair_bool(js, "complete", sp->complete);
}

/* False: it was refused. */
static bool
read_span(dibs__http_exchange *ex, const dibs__board_picture *picture, span *sp)
{
    sp->from_s = picture->now_us / 1000000 - HOUR_S;
    sp->to_s = picture->now_us / 1000000 + HOUR_S;
    if (!dibs__serve_ask_moment(ex, "?from=", dibs__http_query(ex, "from"),
                                &sp->from_s) ||
        !dibs__serve_ask_moment(ex, "?to=", dibs__http_query(ex, "to"),
                                &sp->to_s) ||
        !dibs__serve_ask_query(ex, "step_s", STEP_MIN_S, DAY_S, &sp->step_s))
        return false;
    if (sp->to_s < sp->from_s || sp->to_s - sp->from_s > 31 * DAY_S) {
        (void)dibs__serve_refuse(ex, 400, "invalid",
                                 "?to= must be after ?from=, by 31 days at "
                                 "most");
        return false;
    }
    if (sp->step_s)
        sp->cell_count =
            (size_t)((sp->to_s - sp->from_s + sp->step_s - 1) / sp->step_s);
    if (sp->cell_count <= CELLS_MAX)
        return true;
    (void)dibs__serve_refuse(ex, 400, "invalid",
                             "?step_s= makes %zu cells; it must be so long "
                             "that there are %d at most",
                             sp->cell_count, CELLS_MAX);
    return false;
}

void dibs__serve_get_timeline(dibs__http_exchange *ex)
{
    dibs__board_picture *picture = dibs__serve_take_board(ex);
    dibs__timeline_ids ids = {.count = 0};
    span sp = {.step_s = 0};

    if (!picture)
        return;
    if (read_span(ex, picture, &sp)) {
        sp.cells = dibsx_zalloc_n(sp.cell_count + 1, sizeof(*sp.cells));
        if (sp.cells && dibs__timeline_pick(picture, sp.from_s * 1000000,
                                            sp.to_s * 1000000, READS_MAX, &ids))
            answer_timeline(ex, picture, &ids, &sp);
        else
            (void)dibs__serve_refuse(ex, 503, "nomem",
                                     "there is no memory left");
    }
    dibsx_free(sp.cells);
    dibsx_free(ids.at);
    dibs__board_picture_drop(picture);
}
