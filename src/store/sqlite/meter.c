/* meter.c - the meter step.
 *
 * A commit need not reach the disk: a window is soon over. Any thread. */
/* SPDX-License-Identifier: MIT */
#include "base/fail.h"
#include "store/sqlite/db.h"

/* The version, the expiry and the first bytes of the value. Locks: cn. */
static dibs_status read_value(dibs__sqlite_conn *cn, const char *key,
                              dibs__sums *out, dibs_error *err)
{
    int64_t now_wall_us = dibsx_wall_us(), until_wall_us;
    sqlite3_stmt *stmt;
    dibs_status rc =
        dibs__sqlite_ask(cn, &stmt, err, DIBS__SQL_VALUE, "t", key);

    if (rc == DIBS_OK)
        rc = dibs__sqlite_row(cn, stmt, err);
    if (rc != DIBS_OK)
        return rc == DIBS_NOTFOUND ? DIBS_OK : rc;
    until_wall_us = dibs__sql.column_type(stmt, 1) == SQLITE_NULL
                        ? INT64_MAX
                        : dibs__sql.column_int64(stmt, 1);
    if (until_wall_us > now_wall_us) {
        out->version = (uint64_t)dibs__sql.column_int64(stmt, 0);
        out->expires_ms = until_wall_us == INT64_MAX
                              ? -1
                              : (until_wall_us - now_wall_us + 999) / 1000;
        dibs__meter_state(out, dibs__sql.column_blob(stmt, 2),
                          (size_t)dibs__sql.column_bytes(stmt, 2));
    }
    dibs__sqlite_reset(stmt);
    return DIBS_OK;
}

/* Zeroed when there is none. Locks: cn. */
static dibs_status read_window(dibs__sqlite_conn *cn, const char *key,
                               dibs__meter_window *out, dibs_error *err)
{
    sqlite3_stmt *stmt;
    const char *text;
    dibs_status rc =
        dibs__sqlite_ask(cn, &stmt, err, DIBS__SQL_METER, "t", key);

    *out = (dibs__meter_window){0};
    if (rc == DIBS_OK)
        rc = dibs__sqlite_row(cn, stmt, err);
    if (rc != DIBS_OK)
        return rc == DIBS_NOTFOUND ? DIBS_OK : rc;
    text = (const char *)dibs__sql.column_text(stmt, 0);
    if (!text)
        rc = dibsx_nomem(err, "a meter");
    else if (!dibs__meter_read(text, out))
        rc = dibsx_fail(err, DIBS_INTERNAL, "a meter has impossible contents");
    dibs__sqlite_reset(stmt);
    return rc;
}

/* Writes a window and removes a few that are over. Locks: cn. */
static dibs_status
write_window(dibs__sqlite_conn *cn, const dibs__meter *report,
             const dibs__meter_window *window, int64_t now_us, dibs_error *err)
{
    char text[DIBS__METER_TEXT];
    dibs_status rc =
        dibs__sqlite_run(cn, err, DIBS__SQL_METER_SWEEP, "i", now_us);

    dibs__meter_write(window, text);
    return rc == DIBS_OK ? dibs__sqlite_run(cn, err, DIBS__SQL_METER_PUT, "tti",
                                            report->key, text,
                                            now_us + report->window_ms * 1000)
                         : rc;
}

/* Locks: cn. */
static dibs_status count_calls(dibs__sqlite_conn *cn, const dibs__meter *report,
                               dibs__sums *out, dibs_error *err)
{
    int64_t now_us = dibsx_now() / 1000;
    dibs__meter_window window;
    dibs_status rc = read_window(cn, report->key, &window, err);

    if (rc == DIBS_OK && dibs__meter_add(&window, report, now_us / 1000, out))
        rc = write_window(cn, report, &window, now_us, err);
    return rc;
}

static dibs_status
meter_calls(struct dibs__store *st, const dibs__meter *report,
            dibsx_nsec deadline, dibs__sums *out, dibs_error *err)
{
    dibs__sqlite_conn *cn;
    dibs_status rc = dibs__meter_check(report, err);

    *out = (dibs__sums){.expires_ms = -1};
    if (rc == DIBS_OK)
        rc =
            dibs__sqlite_step_begin(st, DIBS__SQLITE_LEASE, deadline, &cn, err);
    if (rc != DIBS_OK)
        return rc;
    rc = read_value(cn, report->key, out, err);
    if (rc == DIBS_OK)
        rc = dibs__meter_status(report, out, err);
    if (rc == DIBS_OK)
        rc = count_calls(cn, report, out, err);
    rc = dibs__sqlite_step_end(st, cn, rc, err);
    if (rc != DIBS_OK && rc != DIBS_STALE)
        *out = (dibs__sums){.expires_ms = -1};
    return rc;
}

const dibs__meter_ops dibs__sqlite_meter_ops = {.meter = meter_calls};
