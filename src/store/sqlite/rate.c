/* rate.c - the rate steps: draw, rates.
 *
 * A commit need not reach the disk: what is out of a limit comes back by itself. Any
 * thread. */
/* SPDX-License-Identifier: MIT */
#include "base/buf.h"
#include "base/fail.h"
#include "store/sqlite/db.h"
#include <stdio.h>
#include <string.h>

static int64_t now_us(void)
{
    return dibsx_now() / 1000;
}

static void read_columns(sqlite3_stmt *stmt, dibs__rate *out)
{
    out->tat_us = dibs__sql.column_int64(stmt, 0);
    out->last_us = dibs__sql.column_int64(stmt, 1);
    out->rest = dibs__sql.column_int64(stmt, 2);
    out->count = dibs__sql.column_int64(stmt, 3);
    out->period_us = dibs__sql.column_int64(stmt, 4);
}

/* Zeroed when there is none. Locks: cn. */
static dibs_status read_rate(dibs__sqlite_conn *cn, const char *name,
                             dibs__rate *out, dibs_error *err)
{
    sqlite3_stmt *stmt;
    dibs_status rc =
        dibs__sqlite_ask(cn, &stmt, err, DIBS__SQL_RATE, "t", name);

    *out = (dibs__rate){0};
    if (rc == DIBS_OK)
        rc = dibs__sqlite_row(cn, stmt, err);
    if (rc != DIBS_OK)
        return rc == DIBS_NOTFOUND ? DIBS_OK : rc;
    read_columns(stmt, out);
    dibs__sqlite_reset(stmt);
    return DIBS_OK;
}

/* Writes a rate and removes a few that nothing is out of. Locks: cn. */
static dibs_status write_rate(dibs__sqlite_conn *cn, const char *name,
                              const dibs__rate *rate, dibs_error *err)
{
    dibs_status rc =
        dibs__sqlite_run(cn, err, DIBS__SQL_RATE_SWEEP, "i", rate->last_us);

    return rc == DIBS_OK
               ? dibs__sqlite_run(cn, err, DIBS__SQL_RATE_PUT, "tiiiii", name,
                                  rate->tat_us, rate->last_us, rate->rest,
                                  rate->count, rate->period_us)
               : rc;
}

static dibs_status
draw_tokens(struct dibs__store *st, const dibs__draw *asked,
            dibsx_nsec deadline, dibs__drawn *out, dibs_error *err)
{
    dibs__sqlite_conn *cn;
    dibs__draw draw;
    dibs__rate rate;
    dibs_status rc = dibs__rate_check(asked, &draw, err);

    *out = (dibs__drawn){0};
    if (rc == DIBS_OK)
        rc =
            dibs__sqlite_step_begin(st, DIBS__SQLITE_LEASE, deadline, &cn, err);
    if (rc != DIBS_OK)
        return rc;
    rc = read_rate(cn, draw.name, &rate, err);
    if (rc == DIBS_OK) {
        if (dibs__rate_draw(&rate, &draw, now_us(), out))
            rc = write_rate(cn, draw.name, &rate, err);
        if (rc == DIBS_OK)
            rc =
                dibs__rate_status(out, err); /* an outcome, kept all the same */
    }
    rc = dibs__sqlite_step_end(st, cn, rc, err);
    if (rc != DIBS_OK && rc != DIBS_BUSY)
        *out = (dibs__drawn){0};
    return rc;
}

/* DIBS_NOTFOUND: the list ends before it. */
static dibs_status read_row(sqlite3_stmt *stmt, const dibs__rate_query *query,
                            int64_t at_us, dibs__rate_row *row, dibs_error *err)
{
    const char *name = (const char *)dibs__sql.column_text(stmt, 5);
    dibs__rate rate;

    if (!name)
        return dibsx_nomem(err, "a name");
    if (strncmp(name, query->begins, strlen(query->begins)) != 0)
        return DIBS_NOTFOUND;
    read_columns(stmt, &rate);
    memset(row, 0, sizeof(*row));
    snprintf(row->name, sizeof(row->name), "%s", name);
    return dibs__rate_show(&rate, at_us, row)
               ? DIBS_OK
               : dibsx_fail(err, DIBS_INTERNAL, "the limit %s is damaged",
                            row->name);
}

/* Locks: cn. */
static dibs_status
copy_rates(dibs__sqlite_conn *cn, const dibs__rate_query *query,
           dibsx_buf *rows, dibs_error *err)
{
    bool later = strcmp(query->after, query->begins) > 0;
    int64_t at_us = now_us();
    sqlite3_stmt *stmt;
    dibs_status rc =
        dibs__sqlite_ask(cn, &stmt, err, DIBS__SQL_RATE_LIST, "ttii",
                         later ? query->after : query->begins, query->after,
                         at_us, (int64_t)dibs__rate_list_max(query));

    while (rc == DIBS_OK) {
        dibs__rate_row row;

        rc = dibs__sqlite_row(cn, stmt, err);
        if (rc != DIBS_OK)
            break;
        rc = read_row(stmt, query, at_us, &row, err);
        if (rc == DIBS_OK)
            dibsx_buf_add(rows, &row, sizeof(row));
        else
            dibs__sqlite_reset(stmt);
    }
    if (rc == DIBS_NOTFOUND)
        rc =
            dibsx_buf_ok(rows) ? DIBS_OK : dibsx_nomem(err, "a list of limits");
    return rc;
}

static dibs_status
list_rates(struct dibs__store *st, const dibs__rate_query *query,
           dibsx_nsec deadline, dibs__rate_fn *each, void *arg, dibs_error *err)
{
    dibs__sqlite_conn *cn = dibs__sqlite_conn_of(st, DIBS__SQLITE_LEASE);
    dibs_status rc = dibs__sqlite_enter(cn, deadline, err);
    dibs__rate_row row;
    dibsx_buf rows;

    if (rc != DIBS_OK)
        return rc;
    dibsx_buf_init(&rows, DIBS__RATE_LIST_MAX * sizeof(row));
    rc = copy_rates(cn, query, &rows, err);
    dibs__sqlite_leave(cn);
    for (size_t at = 0; rc == DIBS_OK && at < rows.len; at += sizeof(row)) {
        memcpy(&row, rows.data + at, sizeof(row));
        if (!each(&row, arg))
            break;
    }
    dibsx_buf_fini(&rows);
    return rc;
}

const dibs__rate_ops dibs__sqlite_rate_ops = {
    .draw = draw_tokens,
    .rates = list_rates,
};
