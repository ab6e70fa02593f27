/* log.c - the log steps: append, read, bounds, trim, logs.
 *
 * Any thread. */
/* SPDX-License-Identifier: MIT */
#include "base/fail.h"
#include "base/rand.h"
#include "store/postgres/step.h"
#include <string.h>

/* A page ends by the number of its entries, so that the largest of all fits one
 * answer. */
enum { PAGE_ENTRIES = 128 };

/* Only one append in many removes the entries beyond `keep`, because it must count all
 * that are kept to find them. */
static bool must_trim(uint32_t keep)
{
    uint32_t bits = 0;

    return !dibsx_random(&bits, sizeof(bits)) || bits % (keep / 8 + 1) == 0;
}

static dibs_status
append_entry(struct dibs__store *st, const dibs__append *what,
             dibsx_nsec deadline, uint64_t *position, dibs_error *err)
{
    dibs__pg_args args = {.count = 0};
    dibs__pg_answer answer;
    int64_t status, number;
    dibs_status rc = dibs__append_check(what, err);

    *position = 0;
    if (rc != DIBS_OK)
        return rc;
    dibs__pg_arg_text(&args, what->topic);
    dibs__pg_arg_int(&args, (int64_t)what->lane);
    dibs__pg_arg_int(&args, (int64_t)what->number);
    dibs__pg_arg_int(&args, DIBS__LOG_REPEAT_MS);
    dibs__pg_arg_int(&args, what->keep);
    dibs__pg_arg_int(&args, what->keep_bytes);
    dibs__pg_arg_int(&args, dibs__pg_span(what->keep_ms));
    dibs__pg_arg_bytes(&args, what->data, what->len);
    dibs__pg_arg_flag(&args, must_trim(what->keep));
    rc = dibs__pg_call(dibs__pg_of(st), DIBS__PG_LOG_APPEND, &args, deadline,
                       &answer, &status, err);
    if (rc == DIBS_OK && status == DIBS_LOST)
        rc = dibs__append_late(err);
    else if (rc == DIBS_OK && (status != DIBS_OK ||
                               !dibs__pg_word(&answer, 1, INT64_MAX, &number)))
        rc = dibs__pg_odd(err);
    dibs__pg_answer_fini(&answer);
    if (rc == DIBS_OK)
        *position = (uint64_t)number;
    return rc;
}

static dibs_status
trim_log(struct dibs__store *st, const char *topic, uint64_t through,
         dibsx_nsec deadline, uint64_t *gone, dibs_error *err)
{
    dibs__pg_args args = {.count = 0};
    dibs__pg_answer answer;
    int64_t status, count = 0;
    dibs_status rc;

    *gone = 0;
    dibs__pg_arg_text(&args, topic);
    dibs__pg_arg_int(&args, through < INT64_MAX ? (int64_t)through : INT64_MAX);
    dibs__pg_arg_int(&args, DIBS__LOG_TRIM_MAX);
    rc = dibs__pg_call(dibs__pg_of(st), DIBS__PG_LOG_TRIM, &args, deadline,
                       &answer, &status, err);
    if (rc == DIBS_OK &&
        (status != DIBS_OK || !dibs__pg_word(&answer, 0, INT64_MAX, &count)))
        rc = dibs__pg_odd(err);
    dibs__pg_answer_fini(&answer);
    if (rc == DIBS_OK)
        *gone = (uint64_t)count;
    return rc;
}

static void read_span(const PGresult *rows, int at, dibs__log_span *out)
{
    out->first = (uint64_t)dibs__pg_int(rows, at, 0);
    out->last = (uint64_t)dibs__pg_int(rows, at, 1);
    out->count = (uint64_t)dibs__pg_int(rows, at, 2);
    out->bytes = dibs__pg_int(rows, at, 3);
}

static dibs_status
look_bounds(struct dibs__store *st, const char *topic, dibsx_nsec deadline,
            dibs__log_span *out, dibs_error *err)
{
    dibs__pg_args args = {.count = 0};
    PGresult *rows = NULL;
    dibs_status rc;

    *out = (dibs__log_span){0};
    dibs__pg_arg_text(&args, topic);
    rc = dibs__pg_look(dibs__pg_of(st), DIBS__PG_LOG_BOUNDS, &args, deadline,
                       &rows, err);
    if (rc == DIBS_OK && dibs__pq.PQntuples(rows) == 1)
        read_span(rows, 0, out);
    dibs__pq.PQclear(rows);
    return rc;
}

/* False when the caller has seen enough. Leaves the last position in *after. */
static bool
show_page(const PGresult *rows, uint64_t *after, dibs__log_fn *each, void *arg)
{
    int count = dibs__pq.PQntuples(rows);

    for (int i = 0; i < count; i++) {
        dibs__log_entry entry = {.position = (uint64_t)dibs__pg_int(rows, i, 0),
                                 .store_wall_us = dibs__pg_int(rows, i, 1),
                                 .data = dibs__pg_text(rows, i, 2),
                                 .len =
                                     (size_t)dibs__pq.PQgetlength(rows, i, 2)};

        int64_t prior = dibs__pg_int(rows, i, 3);

        entry.prior = prior < 0 ? DIBS__PRIOR_UNKNOWN : (uint64_t)prior;
        *after = entry.position;
        if (!each(&entry, arg))
            return false;
    }
    return true;
}

static dibs_status
read_log(struct dibs__store *st, const char *topic, uint64_t after, size_t max,
         dibsx_nsec deadline, dibs__log_fn *each, void *arg, dibs_error *err)
{
    dibs_status rc = DIBS_OK;
    size_t few = 0, found = 0;

    while (rc == DIBS_OK && max > 0 && found == few) {
        dibs__pg_args args = {.count = 0};
        PGresult *rows = NULL;

        few = max < PAGE_ENTRIES ? max : PAGE_ENTRIES;
        dibs__pg_arg_text(&args, topic);
        dibs__pg_arg_int(&args, after < INT64_MAX ? (int64_t)after : INT64_MAX);
        dibs__pg_arg_int(&args, (int64_t)few);
        rc = dibs__pg_look(dibs__pg_of(st), DIBS__PG_LOG_READ, &args, deadline,
                           &rows, err);
        found = rc == DIBS_OK ? (size_t)dibs__pq.PQntuples(rows) : 0;
        max -= found;
        if (rc == DIBS_OK && !show_page(rows, &after, each, arg))
            max = 0;
        dibs__pq.PQclear(rows);
    }
    return rc;
}

/* DIBS_NOTFOUND: the list ends before it. */
static dibs_status
read_row(const PGresult *rows, int at, const dibs__log_query *query,
         dibs__log_row *row, dibs_error *err)
{
    const char *name = dibs__pg_text(rows, at, 4);

    if (strncmp(name, query->begins, strlen(query->begins)) != 0)
        return DIBS_NOTFOUND;
    if (strlen(name) > DIBS_NAME_MAX)
        return dibs__pg_odd(err);
    memset(row, 0, sizeof(*row));
    memcpy(row->name, name, strlen(name) + 1);
    read_span(rows, at, &row->span);
    return DIBS_OK;
}

static dibs_status list_logs(struct dibs__store *st,
                             const dibs__log_query *query, dibsx_nsec deadline,
                             dibs__log_row_fn *each, void *arg, dibs_error *err)
{
    char from[DIBS__LOG_FROM_SIZE];
    dibs__pg_args args = {.count = 0};
    PGresult *rows = NULL;
    dibs__log_row row;
    dibs_status rc;
    int count;

    dibs__log_list_from(query, from);
    dibs__pg_arg_text(&args, from);
    dibs__pg_arg_int(&args, (int64_t)dibs__log_list_max(query));
    rc = dibs__pg_look(dibs__pg_of(st), DIBS__PG_LOGS, &args, deadline, &rows,
                       err);
    count = rc == DIBS_OK ? dibs__pq.PQntuples(rows) : 0;
    for (int i = 0; i < count && rc == DIBS_OK; i++) {
        rc = read_row(rows, i, query, &row, err);
        if (rc == DIBS_OK && !each(&row, arg))
            break;
    }
    dibs__pq.PQclear(rows);
    return rc == DIBS_NOTFOUND ? DIBS_OK : rc;
}

const dibs__log_ops dibs__pg_log_ops = {
    .append = append_entry,
    .read = read_log,
    .bounds = look_bounds,
    .trim = trim_log,
    .logs = list_logs,
};
