/* topic.c - the topic steps: ear and tell.
 *
 * The doorbells that listen to a topic are rows of the table ear; a tell notifies
 * each of them. Any thread. */
/* SPDX-License-Identifier: MIT */
#include "base/fail.h"
#include "store/sqlite/db.h"

static int64_t now_us(void)
{
    return dibsx_now() / 1000;
}

dibs_status
dibs__sqlite_tell(dibs__sqlite_conn *cn, const char *topic,
                  dibs__notice_kind kind, uint64_t number, dibs_error *err)
{
    dibs__notice notice = {.kind = kind, .fence = number};
    sqlite3_stmt *stmt;
    dibs_status rc = dibs__sqlite_ask(cn, &stmt, err, DIBS__SQL_EAR_LIST, "ti",
                                      topic, now_us());

    dibs__topic_address(topic, notice.owner);
    while (rc == DIBS_OK) {
        rc = dibs__sqlite_row(cn, stmt, err);
        if (rc == DIBS_OK)
            dibs__sqlite_notices_put(&cn->notices,
                                     (const char *)dibs__sql.column_text(stmt,
                                                                         0),
                                     &notice);
    }
    return rc == DIBS_NOTFOUND ? DIBS_OK : rc;
}

/* A commit need not reach the disk: ears do not outlive the machine. */
static dibs_status change_ear(struct dibs__store *st, const char *topic,
                              bool on, dibsx_nsec deadline, dibs_error *err)
{
    const char *bell =
        dibs__sqlite_doorbell_address(&dibs__sqlite_of(st)->doorbell);
    int64_t until_us = now_us() + (int64_t)DIBS__EAR_MS * 1000;
    dibs__sqlite_conn *cn;
    dibs_status rc;

    if (!bell[0])
        return dibsx_fail(err, DIBS_UNAVAIL,
                          "the doorbell is not open, so nothing is heard");
    rc = dibs__sqlite_step_begin(st, DIBS__SQLITE_LEASE, deadline, &cn, err);
    if (rc != DIBS_OK)
        return rc;
    rc = on ? dibs__sqlite_run(cn, err, DIBS__SQL_EAR_PUT, "tti", topic, bell,
                               until_us)
            : dibs__sqlite_run(cn, err, DIBS__SQL_EAR_DROP, "tt", topic, bell);
    if (rc == DIBS_OK)
        rc = dibs__sqlite_run(cn, err, DIBS__SQL_EAR_SWEEP, "i", now_us());
    return dibs__sqlite_step_end(st, cn, rc, err);
}

static dibs_status
tell_topic(struct dibs__store *st, const char *topic, uint64_t number,
           dibsx_nsec deadline, dibs_error *err)
{
    dibs__sqlite_conn *cn;
    dibs_status rc =
        dibs__sqlite_step_begin(st, DIBS__SQLITE_LEASE, deadline, &cn, err);

    if (rc != DIBS_OK)
        return rc;
    rc = dibs__sqlite_tell(cn, topic, DIBS__NOTICE_CHANGED, number, err);
    return dibs__sqlite_step_end(st, cn, rc, err);
}

const dibs__topic_ops dibs__sqlite_topic_ops = {
    .ear = change_ear,
    .tell = tell_topic,
};
