/* board_picture.c - see board_picture.h. */
/* SPDX-License-Identifier: MIT */
#include "serve/board_picture.h"
#include "base/alloc.h"
#include "base/fail.h"
#include "jobs/job_json.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A history keeps up to 20,000 runs of a job, besides those that live. */
enum { LIVE_MAX = 8192, RUNS_MAX = 32768, RUNS_ROOM = 16 };

/* ---- names */

typedef struct scan {
    dibs__board_picture *picture;
    size_t cut; /* the part of keys before the name */
    size_t room;
    bool no_memory;
} scan;

static bool add_row(const dibs_state_item *item, void *arg)
{
    scan *sc = arg;
    dibs__board_picture *picture = sc->picture;

    if (picture->count == DIBS__BOARD_JOBS_MAX) {
        picture->complete = false;
        return false;
    }
    if (picture->count == sc->room) {
        size_t room = sc->room ? sc->room * 2 : 64;
        dibs__board_row *rows =
            dibsx_realloc_n(picture->rows, room, sizeof(*rows));

        sc->no_memory = !rows;
        if (!rows)
            return false;
        picture->rows = rows;
        sc->room = room;
    }
    picture->rows[picture->count] = (dibs__board_row){.run_count = 0};
    dibs__job_state_init(&picture->rows[picture->count++].state,
                         item->key + sc->cut);
    return true;
}

static int by_name(const void *a, const void *b)
{
    const dibs__board_row *one = a, *two = b;

    return strcmp(one->state.job, two->state.job);
}

static dibs_status list_names(dibs__board_picture *picture, dibs_error *err)
{
    char begins[DIBS_NAME_MAX + 1];
    scan sc = {.picture = picture};
    dibs_status rc = dibs__board_key(&picture->board, "state/", begins, err);

    sc.cut = strlen(begins);
    if (rc == DIBS_OK)
        rc = dibs_state_list(picture->board.cl, begins, add_row, &sc, err);
    if (rc == DIBS_OK && sc.no_memory)
        rc = dibsx_nomem(err, "the list of jobs");
    if (picture->count > 1)
        qsort(picture->rows, picture->count, sizeof(*picture->rows), by_name);
    return rc;
}

/* ---- values, as many to a call as the store takes */

typedef struct value_names {
    char keys[DIBS_GET_MANY_MAX][DIBS_NAME_MAX + 1];
    const char *list[DIBS_GET_MANY_MAX];
    dibs_value values[DIBS_GET_MANY_MAX];
    size_t rows[DIBS_GET_MANY_MAX]; /* which row each is for */
    size_t count;
} value_names;

static dibs_status
name_value(const dibs__board_picture *picture, value_names *vn, size_t row,
           bool definition, dibs_error *err)
{
    const dibs__job_state *state = &picture->rows[row].state;
    char inner[DIBS_NAME_MAX + 1];
    dibs_status rc;

    if (definition)
        (void)snprintf(inner, sizeof(inner), "def/%s/%s", state->job,
                       state->hash);
    else
        (void)snprintf(inner, sizeof(inner), "state/%s", state->job);
    rc = dibs__board_key(&picture->board, inner, vn->keys[vn->count], err);
    vn->list[vn->count] = vn->keys[vn->count];
    vn->rows[vn->count++] = row;
    return rc;
}

/* A record that another program wrote badly is left out. */
static void take_state(dibs__board_row *row, const dibs_value *value)
{
    char name[DIBS__JOB_NAME_SIZE];

    memcpy(name, row->state.job, sizeof(name));
    if (value->version == 0 ||
        dibs__job_state_read(&row->state, name, value->data, value->len,
                             NULL) != DIBS_OK)
        return;
    row->state.version = value->version;
}

static void take_definition(dibs__board_row *row, const dibs_value *value)
{
    dibs__board_def *def;

    if (value->version == 0)
        return;
    def = dibsx_zalloc(sizeof(*def));
    if (!def)
        return;
    atomic_init(&def->users, 1);
    if (dibs__job_from_json(value->data, value->len, &def->job, NULL) ==
        DIBS_OK)
        row->def = def;
    else
        dibsx_free(def);
}

static dibs_status fetch_values(dibs__board_picture *picture, value_names *vn,
                                bool definition, dibs_error *err)
{
    dibs_status rc = DIBS_OK;

    if (vn->count > 0)
        rc = dibs_state_get_many(picture->board.cl, vn->list, vn->count,
                                 vn->values, err);
    for (size_t i = 0; rc == DIBS_OK && i < vn->count; i++) {
        dibs__board_row *row = &picture->rows[vn->rows[i]];

        if (definition)
            take_definition(row, &vn->values[i]);
        else
            take_state(row, &vn->values[i]);
        dibs_value_free(&vn->values[i]);
    }
    vn->count = 0;
    return rc;
}

/* The definition that a picture before has. */
static bool
share_definition(dibs__board_row *row, const dibs__board_picture *before)
{
    const dibs__board_row *old =
        before ? dibs__board_picture_find(before, row->state.job) : NULL;

    if (!old || !old->def || strcmp(old->state.hash, row->state.hash) != 0)
        return false;
    atomic_fetch_add(&old->def->users, 1);
    row->def = old->def;
    return true;
}

static dibs_status
read_values(dibs__board_picture *picture, const dibs__board_picture *before,
            bool definition, dibs_error *err)
{
    value_names *vn = dibsx_zalloc(sizeof(*vn));
    dibs_status rc = vn ? DIBS_OK : dibsx_nomem(err, "the list of jobs");

    for (size_t i = 0; rc == DIBS_OK && i < picture->count; i++) {
        dibs__board_row *row = &picture->rows[i];

        if (definition &&
            (!row->state.hash[0] || share_definition(row, before)))
            continue;
        rc = name_value(picture, vn, i, definition, err);
        if (rc == DIBS_OK && vn->count == DIBS_GET_MANY_MAX)
            rc = fetch_values(picture, vn, definition, err);
    }
    if (rc == DIBS_OK)
        rc = fetch_values(picture, vn, definition, err);
    dibsx_free(vn);
    return rc;
}

/* Jobs that are in no set any more, and have no runs, are only history. */
static void leave_out(dibs__board_picture *picture)
{
    size_t kept = 0;

    for (size_t i = 0; i < picture->count; i++)
        if (picture->rows[i].state.version && picture->rows[i].state.set[0])
            picture->rows[kept++] = picture->rows[i];
    picture->count = kept;
}

/* ---- indexes */

/* The room is RUNS_ROOM, a power of two, and doubles each time that it is full. */
static bool grow_runs(dibs__board_row *row)
{
    const size_t count = row->run_count;
    const bool full =
        count == 0 || (count >= RUNS_ROOM && (count & (count - 1)) == 0);
    dibs__board_run_id *runs;

    if (!full)
        return true;
    runs = dibsx_realloc_n(row->runs, count ? 2 * count : RUNS_ROOM,
                           sizeof(*runs));
    if (runs)
        row->runs = runs;
    return runs != NULL;
}

static bool add_run(const dibs_index_entry *entry, void *arg)
{
    dibs__board_row *row = (dibs__board_row *)arg + entry->look;
    dibs__board_run_id *run;

    if (!grow_runs(row))
        return false;
    run = &row->runs[row->run_count];
    run->id = dibsx_strdup(entry->member);
    run->job = row->state.job;
    run->at_us = entry->at;
    row->run_count += run->id != NULL;
    return run->id != NULL;
}

/* The entries behind those that the row has. A run that ends meanwhile moves to the end
 * of the index: the next page begins at a number, so that it shifts none of the others. */
static dibs_status
read_more_runs(const dibs__board *board, dibs__board_row *row,
               dibs_index_look *look, dibs_error *err)
{
    dibs_status rc = DIBS_OK;

    while (rc == DIBS_OK && look->next >= 0 && row->run_count < RUNS_MAX) {
        const size_t before = row->run_count;

        look->from = before ? row->runs[before - 1].at_us : 0;
        look->skip = 0;
        while (look->skip < before &&
               row->runs[before - 1 - look->skip].at_us == look->from)
            look->skip++;
        rc = dibs_index_first(board->cl, look, 1, NULL, add_run, row, err);
        if (rc == DIBS_OK && look->next >= 0 && row->run_count == before)
            rc = dibsx_nomem(err, "the runs of a job");
    }
    return rc;
}

dibs_status
dibs__board_row_read_runs(const dibs__board *board, dibs__board_row *rows,
                          size_t count, int64_t *now_us, dibs_error *err)
{
    char inner[DIBS__JOB_NAME_SIZE + 8],
        keys[DIBS_LOOKS_MAX][DIBS_NAME_MAX + 1];
    dibs_index_look looks[DIBS_LOOKS_MAX];
    dibs_status rc = DIBS_OK;

    for (size_t i = 0; i < count && rc == DIBS_OK; i++) {
        (void)snprintf(inner, sizeof(inner), "runs/%s", rows[i].state.job);
        rc = dibs__board_key(board, inner, keys[i], err);
        looks[i] = (dibs_index_look){.index = keys[i],
                                     .up_to = DIBS_INDEX_AT_MAX,
                                     .limit = DIBS_LOOK_MAX};
    }
    if (rc == DIBS_OK)
        rc = dibs_index_first(board->cl, looks, count, now_us, add_run, rows,
                              err);
    for (size_t i = 0; i < count && rc == DIBS_OK; i++)
        rc = read_more_runs(board, &rows[i], &looks[i], err);
    return rc;
}

void dibs__board_row_drop_runs(dibs__board_row *row)
{
    for (size_t i = 0; i < row->run_count; i++)
        dibsx_free(row->runs[i].id);
    dibsx_free(row->runs);
    row->runs = NULL;
    row->run_count = 0;
}

static bool add_live(const dibs_index_entry *entry, void *arg)
{
    dibs__board_picture *picture = arg;
    dibs__board_live *live =
        dibsx_realloc_n(picture->live, picture->live_count + 1, sizeof(*live));

    if (!live)
        return false;
    picture->live = live;
    live += picture->live_count;
    live->fence = (uint64_t)entry->at;
    if (dibs__step_split(entry->member, live->run, live->step))
        picture->live_count++;
    return picture->live_count < LIVE_MAX;
}

static dibs_status read_live(dibs__board_picture *picture, dibs_error *err)
{
    char key[DIBS_NAME_MAX + 1];
    dibs_index_look look = {.index = key,
                            .up_to = DIBS_INDEX_AT_MAX,
                            .limit = DIBS_LOOK_MAX};
    dibs_status rc = dibs__board_key(&picture->board, "live", key, err);

    do {
        size_t before = picture->live_count;

        if (rc == DIBS_OK)
            rc = dibs_index_first(picture->board.cl, &look, 1, &picture->now_us,
                                  add_live, picture, err);
        if (picture->live_count == before)
            break;
        look.skip += (uint32_t)(picture->live_count - before);
    } while (rc == DIBS_OK && look.next >= 0 && picture->live_count < LIVE_MAX);
    return rc;
}

/* The newest are last, and few of the others live. */
static bool has_run(const dibs__board_row *row, const char *id)
{
    for (size_t i = row->run_count; i > 0; i--)
        if (strcmp(row->runs[i - 1].id, id) == 0)
            return true;
    return false;
}

/* The id of a run begins with its job, but the name of a job may have dots too. */
static void note_works(dibs__board_picture *picture)
{
    char name[DIBS__RUN_ID_SIZE];

    for (size_t i = 0; i < picture->live_count; i++) {
        const char *id = picture->live[i].run;

        for (size_t end = strcspn(id, "@."); id[end];
             end += 1 + strcspn(id + end + 1, "@.")) {
            const dibs__board_row *row;

            (void)snprintf(name, sizeof(name), "%.*s", (int)end, id);
            row = dibs__board_picture_find(picture, name);
            if (row && (row->works || has_run(row, id)))
                picture->rows[row - picture->rows].works = true;
        }
    }
}

/* ---- pictures */

static void empty_picture(dibs__board_picture *picture)
{
    for (size_t i = 0; i < picture->count; i++) {
        dibs__board_row *row = &picture->rows[i];

        dibs__board_row_drop_runs(row);
        if (row->def && atomic_fetch_sub(&row->def->users, 1) == 1) {
            dibs__job_free(row->def->job);
            dibsx_free(row->def);
        }
    }
    dibsx_free(picture->rows);
    dibsx_free(picture->live);
    picture->rows = NULL;
    picture->live = NULL;
    picture->count = picture->live_count = 0;
}

dibs__board_picture *dibs__board_picture_make(const dibs__board *board,
                                              const dibs__board_picture *before)
{
    dibs__board_picture *picture = dibsx_zalloc(sizeof(*picture));
    dibs_error *err;

    if (!picture)
        return NULL;
    err = &picture->err;
    atomic_init(&picture->users, 1);
    picture->board = *board;
    picture->complete = true;
    picture->seen_at = dibsx_now();
    picture->rc = list_names(picture, err);
    if (picture->rc == DIBS_OK)
        picture->rc = read_values(picture, before, false, err);
    if (picture->rc == DIBS_OK)
        leave_out(picture);
    if (picture->rc == DIBS_OK)
        picture->rc = read_values(picture, before, true, err);
    for (size_t i = 0; picture->rc == DIBS_OK && i < picture->count;
         i += DIBS_LOOKS_MAX)
        picture->rc =
            dibs__board_row_read_runs(board, &picture->rows[i],
                                      picture->count - i < DIBS_LOOKS_MAX
                                          ? picture->count - i
                                          : DIBS_LOOKS_MAX,
                                      &picture->now_us, err);
    if (picture->rc == DIBS_OK)
        picture->rc = read_live(picture, err);
    if (picture->rc == DIBS_OK)
        note_works(picture);
    if (picture->rc != DIBS_OK)
        empty_picture(picture);
    picture->took_us = (dibsx_now() - picture->seen_at) / 1000;
    return picture;
}

dibs__board_picture *dibs__board_picture_hold(dibs__board_picture *picture)
{
    if (picture)
        atomic_fetch_add(&picture->users, 1);
    return picture;
}

void dibs__board_picture_drop(dibs__board_picture *picture)
{
    if (!picture || atomic_fetch_sub(&picture->users, 1) > 1)
        return;
    empty_picture(picture);
    dibsx_free(picture);
}

const dibs__board_row *
dibs__board_picture_find(const dibs__board_picture *picture, const char *job)
{
    size_t low = 0, high = picture->count;

    while (low < high) {
        const size_t mid = low + (high - low) / 2;
        const int order = strcmp(picture->rows[mid].state.job, job);

        if (order == 0)
            return &picture->rows[mid];
        if (order < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return NULL;
}
