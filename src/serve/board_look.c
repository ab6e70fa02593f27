/* board_look.c - see board_look.h. */
/* SPDX-License-Identifier: MIT */
#include "serve/board_look.h"
#include "base/alloc.h"
#include "base/cond.h"
#include "base/fail.h"
#include "serve/job_row.h"
#include "serve/run_fetch.h"
#include <string.h>

enum {
    REST_MS = 10000, /* nobody has asked for so long: */
    SLOW_MS = 20000, /* ... it looks so often */
    EVENT_MAX = 60 * 1024
};

/* ---- what has changed */

typedef void put_fn(dibsx_json *js, const void *what, int64_t now_us);

/* {"changed":[...],"removed":[...]}: one of the two has one member. */
static void write_change(dibsx_buf *text, const char *name, put_fn *put,
                         const void *what, int64_t now_us)
{
    dibsx_json js;

    dibsx_json_init(&js, text);
    dibsx_json_open(&js, '{');
    dibsx_json_key(&js, "changed");
    dibsx_json_open(&js, '[');
    if (put) {
        dibsx_json_open(&js, '{');
        put(&js, what, now_us);
        dibsx_json_close(&js, '}');
    }
    dibsx_json_close(&js, ']');
    dibsx_json_key(&js, "removed");
    dibsx_json_open(&js, '[');
    if (!put)
        dibsx_json_text(&js, name);
    dibsx_json_close(&js, ']');
    dibsx_json_pair_text(&js, "seen", "look");
    dibsx_json_close(&js, '}');
}

/* `brief` (may be NULL) is for one that is longer than an event may be. */
static void publish_change(dibs__board_look *look, uint32_t topic,
                           const char *event, const char *name, put_fn *put,
                           put_fn *brief, const void *what, int64_t now_us)
{
    dibsx_buf text;

    dibsx_buf_init(&text, EVENT_MAX);
    write_change(&text, name, put, what, now_us);
    if (!dibsx_buf_ok(&text) && brief) {
        dibsx_buf_reset(&text);
        write_change(&text, name, brief, what, now_us);
    }
    if (dibsx_buf_ok(&text))
        dibs__hub_publish(look->hub, topic, event, name, dibsx_buf_text(&text),
                          text.len);
    dibsx_buf_fini(&text);
}

static void put_job(dibsx_json *js, const void *what, int64_t now_us)
{
    dibs__job_row_json(js, what, now_us);
}

static void put_run(dibsx_json *js, const void *what, int64_t now_us)
{
    (void)now_us;
    dibs__run_row_json(js, what, NULL, false);
}

static void put_run_brief(dibsx_json *js, const void *what, int64_t now_us)
{
    (void)now_us;
    dibs__run_brief_json(js, what);
    dibsx_json_pair_bool(js, "brief", true);
}

/* Whether the row has this run at the same place. *cursor, 0 at first, moves along the
 * row: both are in order, and a row may have thousands. */
static bool find_run(const dibs__board_row *row, const dibs__board_run_id *run,
                     size_t *cursor)
{
    const size_t count = row ? row->run_count : 0;

    while (*cursor < count && row->runs[*cursor].at_us < run->at_us)
        (*cursor)++;
    for (size_t i = *cursor; i < count && row->runs[i].at_us == run->at_us; i++)
        if (strcmp(row->runs[i].id, run->id) == 0)
            return true;
    return false;
}

static bool
has_live(const dibs__board_picture *picture, const dibs__board_live *live)
{
    for (size_t i = 0; i < picture->live_count; i++)
        if (picture->live[i].fence == live->fence &&
            strcmp(picture->live[i].run, live->run) == 0 &&
            strcmp(picture->live[i].step, live->step) == 0)
            return true;
    return false;
}

/* Runs that have changed, read as many to a call as the store takes. */
typedef struct batch {
    dibs__board_look *look;
    dibs__board_run_id ids[DIBS_GET_MANY_MAX]; /* of the pictures */
    bool moved[DIBS_GET_MANY_MAX]; /* to another place of the index */
    size_t count;
    const char *live; /* the latest that compare_live() added */
    bool failed; /* the store did not answer: it is not asked for the rest */
} batch;

/* The run as it is now: its end counts when the index shows it for the first time. */
static void tell_run(dibs__board_look *look, const char *id, bool moved,
                     const dibs_value *value)
{
    dibs__run run;

    dibs__run_init(&run, id);
    if (value->version != 0 &&
        dibs__run_read(&run, id, value->data, value->len, NULL) == DIBS_OK) {
        dibs__run_noted(&run, value->version);
        publish_change(look, DIBS__HUB_RUNS, "runs", id, put_run, put_run_brief,
                       &run, 0);
        if (moved && dibs__state_final(run.state))
            dibs__job_sums_add(&look->sums, &run);
    }
    dibs__run_fini(&run);
}

static bool is_stopping(dibs__board_look *look)
{
    bool stop;

    pthread_mutex_lock(&look->life.mutex);
    stop = look->life.stop;
    pthread_mutex_unlock(&look->life.mutex);
    return stop;
}

/* Where the store does not answer, each is a gap. */
static void tell_runs(batch *ba)
{
    const dibs__board_run_id *ids[DIBS_GET_MANY_MAX];
    dibs_value values[DIBS_GET_MANY_MAX];
    dibs__board_look *look = ba->look;

    for (size_t i = 0; i < ba->count; i++)
        ids[i] = &ba->ids[i];
    ba->failed = ba->failed || is_stopping(look) ||
                 (ba->count > 0 && dibs__run_fetch(&look->board, ids, ba->count,
                                                   values, NULL) != DIBS_OK);
    for (size_t i = 0; i < ba->count; i++) {
        if (ba->failed) {
            dibs__hub_gap(look->hub, DIBS__HUB_RUNS, ids[i]->id);
            continue;
        }
        tell_run(look, ids[i]->id, ba->moved[i], &values[i]);
        dibs_value_free(&values[i]);
    }
    ba->count = 0;
}

static void add_run(batch *ba, const char *id, bool moved)
{
    ba->ids[ba->count].id = (char *)id;
    ba->moved[ba->count++] = moved;
    if (ba->count == DIBS_GET_MANY_MAX)
        tell_runs(ba);
}

static void compare_runs(batch *ba, const dibs__board_row *before,
                         const dibs__board_row *now)
{
    size_t cursor = 0;

    for (size_t i = 0; i < now->run_count; i++)
        if (!find_run(before, &now->runs[i], &cursor))
            add_run(ba, now->runs[i].id, true);
}

/* Steps that are in one picture and not in the other. */
static void compare_live(batch *ba, const dibs__board_picture *one,
                         const dibs__board_picture *other)
{
    for (size_t i = 0; i < one->live_count; i++)
        if (!has_live(other, &one->live[i]) &&
            strcmp(ba->live, one->live[i].run) != 0) {
            ba->live = one->live[i].run;
            add_run(ba, ba->live, false);
        }
}

/* Without a picture before there is nothing to compare: a listener fetches the lists
 * after it has begun to listen. */
static void
tell_changes(dibs__board_look *look, const dibs__board_picture *before,
             const dibs__board_picture *now)
{
    batch ba = {.look = look, .live = ""};

    if (!before || now->rc != DIBS_OK)
        return;
    for (size_t i = 0; i < now->count; i++) {
        const dibs__board_row *row = &now->rows[i];
        const dibs__board_row *was =
            dibs__board_picture_find(before, row->state.job);

        if (!was || was->state.version != row->state.version ||
            was->run_count != row->run_count || was->works != row->works)
            publish_change(look, DIBS__HUB_JOBS, "jobs", row->state.job,
                           put_job, NULL, row, now->now_us);
        compare_runs(&ba, was, row);
    }
    for (size_t i = 0; i < before->count; i++)
        if (!dibs__board_picture_find(now, before->rows[i].state.job))
            publish_change(look, DIBS__HUB_JOBS, "jobs",
                           before->rows[i].state.job, NULL, NULL, NULL, 0);
    /* Steps that a node has taken or given back, of runs that are where they were. */
    compare_live(&ba, now, before);
    compare_live(&ba, before, now);
    tell_runs(&ba);
}

/* ---- the thread */

/* When the next picture is made: if somebody wants one, if somebody waits for a change to be
 * in it, and anyway. */
typedef struct turn {
    dibsx_nsec due_at, soon_at, slow_at;
} turn;

static turn plan_turn(const dibs__board_look *look,
                      const dibs__board_picture *made, dibsx_nsec began_at)
{
    const dibs_status rc = made ? made->rc : DIBS_NOMEM;
    const int64_t took_us = made ? made->took_us : 0;
    const int64_t pause_ms = dibs__life_pause_ms(look->every_ms, rc, took_us);
    const int64_t soon_ms = dibs__life_soon_ms(look->every_ms, rc, took_us);

    return (turn){.due_at = dibsx_after_ms(began_at, pause_ms),
                  .soon_at = dibsx_after_ms(began_at, soon_ms),
                  .slow_at = dibsx_after_ms(began_at, SLOW_MS + pause_ms)};
}

/* Locks: look->life.mutex. A picture that is being made now does not count yet. */
static bool is_stale(const dibs__board_look *look)
{
    return look->changed_at &&
           (!look->latest || look->latest->seen_at < look->changed_at);
}

/* Locks: look->life.mutex. */
static bool
is_wanted(const dibs__board_look *look, dibsx_nsec now, size_t streams)
{
    return streams > 0 || is_stale(look) ||
           (look->wanted_at && now < dibsx_after_ms(look->wanted_at, REST_MS));
}

/* Locks: look->life.mutex. Until the next picture is due. */
static void await_turn(dibs__board_look *look, const turn *next)
{
    while (!look->life.stop) {
        const dibsx_nsec now = dibsx_now();
        const dibsx_nsec due_at =
            is_stale(look) && look->waiting ? next->soon_at : next->due_at;
        size_t streams = 0;
        uint64_t gaps;

        dibs__hub_count_get(look->hub, &streams, &gaps);
        if (now >= next->slow_at ||
            (now >= due_at && is_wanted(look, now, streams)))
            return;
        /* A listener does not ask: it is found at the pace of the look. */
        dibsx_cond_wait(&look->life.cond, &look->life.mutex,
                        now < due_at ? due_at
                                     : dibsx_after_ms(now, look->every_ms));
    }
}

static void *look_main(void *arg)
{
    dibs__board_look *look = arg;
    /* The latest that has rows: changes count since then, whatever failed between. */
    dibs__board_picture *good = NULL;
    turn next = {.slow_at = dibsx_after_ms(dibsx_now(), SLOW_MS)};

    pthread_mutex_lock(&look->life.mutex);
    for (await_turn(look, &next); !look->life.stop; await_turn(look, &next)) {
        dibs__board_picture *before = look->latest, *now;
        dibsx_nsec began_at = dibsx_now();

        pthread_mutex_unlock(&look->life.mutex);
        now = dibs__board_picture_make(&look->board, good);
        next = plan_turn(look, now, began_at);
        pthread_mutex_lock(&look->life.mutex);
        if (!now)
            continue;
        look->latest = now;
        pthread_cond_broadcast(&look->life.cond);
        pthread_mutex_unlock(&look->life.mutex);
        tell_changes(look, good, now);
        if (now->rc == DIBS_OK) {
            dibs__board_picture_drop(good);
            good = dibs__board_picture_hold(now);
        }
        dibs__board_picture_drop(before);
        pthread_mutex_lock(&look->life.mutex);
    }
    pthread_mutex_unlock(&look->life.mutex);
    dibs__board_picture_drop(good);
    return NULL;
}

dibs_status dibs__board_look_init(dibs__board_look *look, dibs_client *cl,
                                  const char *board, dibs__serve_hub *hub,
                                  int64_t every_ms, dibs_error *err)
{
    dibs_status rc = dibs__board_init(&look->board, cl, board, err);

    if (rc != DIBS_OK)
        return rc;
    look->hub = hub;
    look->every_ms = every_ms;
    rc = dibs__life_init(&look->life, "the look at the board", err);
    if (rc == DIBS_OK)
        dibs__job_sums_init(&look->sums);
    return rc;
}

void dibs__board_look_fini(dibs__board_look *look)
{
    if (!look->life.made)
        return;
    dibs__board_picture_drop(look->latest);
    dibs__job_sums_fini(&look->sums);
    dibs__life_fini(&look->life);
}

dibs_status dibs__board_look_start(dibs__board_look *look, dibs_error *err)
{
    return dibs__life_start(&look->life, look_main, look,
                            "the thread that looks at the board", err);
}

void dibs__board_look_stop(dibs__board_look *look)
{
    dibs__life_stop(&look->life);
}

/* Locks: look->life.mutex. */
static bool is_fresh(const dibs__board_look *look, dibsx_nsec now)
{
    const dibs__board_picture *latest = look->latest;

    return latest && !is_stale(look) &&
           dibs__life_fresh(look->every_ms, latest->rc, latest->took_us,
                            latest->seen_at, now);
}

dibs__board_picture *
dibs__board_look_take(dibs__board_look *look, int64_t wait_ms)
{
    const dibsx_nsec until = dibsx_after_ms(dibsx_now(), wait_ms);
    dibs__board_picture *picture;
    dibsx_nsec now;

    pthread_mutex_lock(&look->life.mutex);
    look->wanted_at = now = dibsx_now();
    look->waiting++;
    pthread_cond_broadcast(&look->life.cond);
    while (!is_fresh(look, now) && now < until && !look->life.stop) {
        dibsx_cond_wait(&look->life.cond, &look->life.mutex, until);
        now = dibsx_now();
    }
    look->waiting--;
    picture = dibs__board_picture_hold(look->latest);
    pthread_mutex_unlock(&look->life.mutex);
    return picture;
}

void dibs__board_look_again(dibs__board_look *look)
{
    pthread_mutex_lock(&look->life.mutex);
    look->changed_at = dibsx_now();
    pthread_cond_broadcast(&look->life.cond);
    pthread_mutex_unlock(&look->life.mutex);
}
