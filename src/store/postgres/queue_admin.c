/* queue_admin.c - the queue steps of an operator: set, stats, peek, purge, redrive,
 * remove, list.
 *
 * Any thread. */
/* SPDX-License-Identifier: MIT */
#include "base/fail.h"
#include "store/postgres/queue_full.h"
#include "store/refuse.h"
#include <stdio.h>
#include <string.h>

/* Items that one peek shows. */
enum { PEEK_MAX = 1000 };

static dibs_status fail_none(dibs_error *err)
{
    return dibsx_fail(err, DIBS_NOTFOUND, "there is no such queue");
}

/* Runs a function whose answer has one number; out may be NULL. */
static dibs_status call_queue(struct dibs__store *st, dibs__pg_query query,
                              const dibs__pg_args *args, dibsx_nsec deadline,
                              size_t *out, dibs_error *err)
{
    dibs__pg_answer answer;
    int64_t status, number = 0;
    dibs_status rc = dibs__pg_call(dibs__pg_of(st), query, args, deadline,
                                   &answer, &status, err);

    if (rc == DIBS_OK && status == DIBS_NOTFOUND)
        rc = fail_none(err);
    else if (rc == DIBS_OK && status == DIBS_FULL)
        rc = dibs__pg_queue_full(&answer, err);
    else if (rc == DIBS_OK &&
             (status != DIBS_OK ||
              (out && !dibs__pg_word(&answer, 0, DIBS__PURGE_MAX, &number))))
        rc = dibs__pg_odd(err);
    if (out)
        *out = rc == DIBS_OK ? (size_t)number : 0;
    dibs__pg_answer_fini(&answer);
    return rc;
}

static dibs_status
set_queue(struct dibs__store *st, const char *queue, uint32_t fields,
          const dibs__queue_conf *conf, dibsx_nsec deadline, dibs_error *err)
{
    dibs__pg_args args = {.count = 0};

    dibs__pg_arg_text(&args, queue);
    dibs__pg_arg_int(&args, fields);
    dibs__pg_arg_flag(&args, conf->paused);
    dibs__pg_arg_flag(&args, conf->serial);
    dibs__pg_arg_int(&args, conf->cap);
    dibs__pg_arg_int(&args, conf->tries);
    dibs__pg_arg_int(&args, conf->deads);
    dibs__pg_arg_int(&args, conf->lost_max);
    dibs__pg_arg_int(&args, conf->keep_done);
    return call_queue(st, DIBS__PG_QUEUE_SET, &args, deadline, NULL, err);
}

static bool read_conf(dibs__pg_answer *answer, dibs__queue_conf *out)
{
    uint32_t *numbers[] = {&out->cap, &out->tries, &out->deads, &out->lost_max,
                           &out->keep_done};
    int64_t word, serial;

    if (!dibs__pg_word(answer, 0, 1, &word) ||
        !dibs__pg_word(answer, 0, 1, &serial))
        return false;
    out->paused = word != 0;
    out->serial = serial != 0;
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        if (!dibs__pg_word(answer, 0, UINT32_MAX, &word))
            return false;
        *numbers[i] = (uint32_t)word;
    }
    return true;
}

static bool read_counts(dibs__pg_answer *answer, dibs__queue_stats *out)
{
    int64_t oldest_ms = 0;
    uint64_t *numbers[] = {&out->ready,     &out->later, &out->out,
                           &out->dead,      &out->done,  &out->lanes,
                           &out->waiting,   NULL,        &out->pushed,
                           &out->delivered, &out->acked, &out->nacked,
                           &out->lost,      &out->died,  &out->dropped,
                           &out->purged};

    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        int64_t word;

        if (!dibs__pg_word(answer, 0, INT64_MAX, &word))
            return false;
        if (numbers[i])
            *numbers[i] = (uint64_t)word;
        else
            oldest_ms = word;
    }
    out->oldest_ms = oldest_ms;
    return true;
}

static dibs_status
read_stats(struct dibs__store *st, const char *queue, dibsx_nsec deadline,
           dibs__queue_stats *out, dibs_error *err)
{
    dibs__pg_args args = {.count = 0};
    dibs__pg_answer answer;
    int64_t status;
    dibs_status rc;

    memset(out, 0, sizeof(*out));
    dibs__pg_arg_text(&args, queue);
    rc = dibs__pg_call(dibs__pg_of(st), DIBS__PG_QUEUE_STATS, &args, deadline,
                       &answer, &status, err);
    if (rc == DIBS_OK && status == DIBS_NOTFOUND)
        rc = fail_none(err);
    else if (rc == DIBS_OK &&
             (status != DIBS_OK || !read_conf(&answer, &out->conf) ||
              !read_counts(&answer, out)))
        rc = dibs__pg_odd(err);
    dibs__pg_answer_fini(&answer);
    if (rc != DIBS_OK)
        memset(out, 0, sizeof(*out));
    return rc;
}

/* ---- peek */

static void
copy_cell(const PGresult *rows, int row, int column, char *out, size_t size)
{
    snprintf(out, size, "%s", dibs__pg_text(rows, row, column));
}

/* The last four columns are the same in all queries. */
static void read_view(const PGresult *rows, int row, dibs__item_place place,
                      dibs__item_view *out)
{
    bool ended = place == DIBS__PLACE_DEAD || place == DIBS__PLACE_DONE;
    int texts = ended ? 5 : 7;

    memset(out, 0, sizeof(*out));
    out->place = place;
    out->id = (uint64_t)dibs__pg_int(rows, row, 0);
    out->priority = (int32_t)dibs__pg_int(rows, row, 1);
    out->attempts = (uint32_t)dibs__pg_int(rows, row, 2);
    out->lost = (uint32_t)dibs__pg_int(rows, row, 3);
    if (ended) {
        out->ended_wall_us = dibs__pg_int(rows, row, 4);
    } else {
        out->due_ms = dibs__pg_int(rows, row, 4);
        out->lane = (uint64_t)dibs__pg_int(rows, row, 5);
        out->fence = (uint64_t)dibs__pg_int(rows, row, 6);
    }
    copy_cell(rows, row, texts, out->to, sizeof(out->to));
    copy_cell(rows, row, texts + 1, out->dedup, sizeof(out->dedup));
    copy_cell(rows, row, texts + 2, out->reason, sizeof(out->reason));
    out->data = dibs__pg_text(rows, row, texts + 3);
    out->len = (size_t)dibs__pq.PQgetlength(rows, row, texts + 3);
}

static dibs_status check_known(struct dibs__store *st, const char *queue,
                               dibsx_nsec deadline, dibs_error *err)
{
    dibs__pg_args args = {.count = 0};
    PGresult *rows = NULL;
    dibs_status rc;

    dibs__pg_arg_text(&args, queue);
    rc = dibs__pg_look(dibs__pg_of(st), DIBS__PG_QUEUE_KNOWN, &args, deadline,
                       &rows, err);
    if (rc == DIBS_OK &&
        (dibs__pq.PQntuples(rows) != 1 || !dibs__pg_int(rows, 0, 0)))
        rc = fail_none(err);
    dibs__pq.PQclear(rows);
    return rc;
}

static dibs__pg_query query_of(dibs__item_place place)
{
    if (place == DIBS__PLACE_DONE)
        return DIBS__PG_PEEK_DONE;
    return place == DIBS__PLACE_DEAD ? DIBS__PG_PEEK_DEAD : DIBS__PG_PEEK;
}

static dibs_status
peek_queue(struct dibs__store *st, const char *queue, dibs__item_place place,
           size_t skip, size_t max, dibsx_nsec deadline, dibs__item_fn *each,
           void *arg, dibs_error *err)
{
    dibs__pg_query query = query_of(place);
    dibs__pg_args args = {.count = 0};
    PGresult *rows = NULL;
    dibs__item_view view;
    dibs_status rc;
    int count;

    dibs__pg_arg_text(&args, queue);
    if (query == DIBS__PG_PEEK)
        dibs__pg_arg_int(&args, place);
    dibs__pg_arg_int(&args, (int64_t)(max < PEEK_MAX ? max : PEEK_MAX));
    dibs__pg_arg_int(&args, (int64_t)skip);
    rc = dibs__pg_look(dibs__pg_of(st), query, &args, deadline, &rows, err);
    count = rc == DIBS_OK ? dibs__pq.PQntuples(rows) : 0;
    if (rc == DIBS_OK && count == 0)
        rc = check_known(st, queue, deadline, err);
    for (int i = 0; i < count; i++) {
        read_view(rows, i, place, &view);
        if (!each(&view, arg))
            break;
    }
    dibs__pq.PQclear(rows);
    return rc;
}

/* ---- purge, redrive, remove */

static int64_t at_most(size_t max)
{
    return (int64_t)(max < DIBS__PURGE_MAX ? max : DIBS__PURGE_MAX);
}

static dibs_status
purge_queue(struct dibs__store *st, const char *queue, uint32_t places,
            size_t max, dibsx_nsec deadline, size_t *purged, dibs_error *err)
{
    dibs__pg_args args = {.count = 0};

    dibs__pg_arg_text(&args, queue);
    dibs__pg_arg_int(&args, places);
    dibs__pg_arg_int(&args, at_most(max));
    return call_queue(st, DIBS__PG_QUEUE_PURGE, &args, deadline, purged, err);
}

static dibs_status redrive_queue(struct dibs__store *st, const char *queue,
                                 uint64_t id, size_t max, dibsx_nsec deadline,
                                 size_t *redriven, dibs_error *err)
{
    dibs__pg_args args = {.count = 0};

    dibs__pg_arg_text(&args, queue);
    dibs__pg_arg_int(&args, (int64_t)id);
    dibs__pg_arg_int(&args, at_most(max));
    return call_queue(st, DIBS__PG_QUEUE_REDRIVE, &args, deadline, redriven,
                      err);
}

static dibs_status fail_busy(dibs__pg_answer *answer, dibs_error *err)
{
    int64_t items, dead, lanes;

    if (!dibs__pg_word(answer, 0, INT64_MAX, &items) ||
        !dibs__pg_word(answer, 0, INT64_MAX, &dead) ||
        !dibs__pg_word(answer, 0, INT64_MAX, &lanes))
        return dibs__pg_odd(err);
    return dibs__refuse_removal(items, dead, lanes, err);
}

static dibs_status remove_queue(struct dibs__store *st, const char *queue,
                                dibsx_nsec deadline, dibs_error *err)
{
    dibs__pg_args args = {.count = 0};
    dibs__pg_answer answer;
    int64_t status;
    dibs_status rc;

    dibs__pg_arg_text(&args, queue);
    rc = dibs__pg_call(dibs__pg_of(st), DIBS__PG_QUEUE_REMOVE, &args, deadline,
                       &answer, &status, err);
    if (rc == DIBS_OK && status == DIBS_NOTFOUND)
        rc = fail_none(err);
    else if (rc == DIBS_OK && status == DIBS_BUSY)
        rc = fail_busy(&answer, err);
    else if (rc == DIBS_OK && status != DIBS_OK)
        rc = dibs__pg_odd(err);
    dibs__pg_answer_fini(&answer);
    return rc;
}

/* ---- list */

static dibs_status
list_queues(struct dibs__store *st, const char *begins, const char *after,
            size_t max, dibsx_nsec deadline, dibs__queue_fn *each, void *arg,
            dibs_error *err)
{
    dibs__pg_args args = {.count = 0};
    PGresult *rows = NULL;
    dibs_status rc;
    int count;

    dibs__pg_arg_text(&args, begins);
    dibs__pg_arg_text(&args, after);
    dibs__pg_arg_int(&args, (int64_t)(max < DIBS__QUEUE_LIST_MAX
                                          ? max
                                          : DIBS__QUEUE_LIST_MAX));
    rc = dibs__pg_look(dibs__pg_of(st), DIBS__PG_QUEUE_LIST, &args, deadline,
                       &rows, err);
    count = rc == DIBS_OK ? dibs__pq.PQntuples(rows) : 0;
    for (int i = 0; i < count; i++)
        if (!each(dibs__pg_text(rows, i, 0), arg))
            break;
    dibs__pq.PQclear(rows);
    return rc;
}

const dibs__queue_admin_ops dibs__pg_queue_admin_ops = {
    .set = set_queue,
    .stats = read_stats,
    .peek = peek_queue,
    .purge = purge_queue,
    .redrive = redrive_queue,
    .remove = remove_queue,
    .list = list_queues,
};
