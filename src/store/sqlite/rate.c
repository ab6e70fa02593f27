/* rate.c - the rate step: draw.
 *
 * A commit need not reach the disk: what is out of a limit comes back by itself. Any
 * thread. */
/* SPDX-License-Identifier: MIT */
#include "store/sqlite/db.h"

static int64_t now_us(void)
{
    return dibsx_now() / 1000;
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
    out->tat_us = dibs__sql.column_int64(stmt, 0);
    out->last_us = dibs__sql.column_int64(stmt, 1);
    out->rest = dibs__sql.column_int64(stmt, 2);
    out->count = dibs__sql.column_int64(stmt, 3);
    out->period_us = dibs__sql.column_int64(stmt, 4);
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

const dibs__rate_ops dibs__sqlite_rate_ops = {.draw = draw_tokens};
