/* topic.c - the topic steps: ear, tell and say.
 *
 * The doorbells that listen to a topic are rows of the table ear; a tell notifies
 * each of them. Any thread. */
/* SPDX-License-Identifier: MIT */
#include "base/alloc.h"
#include "base/fail.h"
#include "store/sqlite/db.h"
#include <errno.h>
#include <string.h>

static int64_t now_us(void)
{
    return dibsx_now() / 1000;
}

/* Adds a notice for all that listen, with the address of the topic. If one of them would
 * miss it unnoticed, the step fails. */
static dibs_status notify_ears(dibs__sqlite_conn *cn, const char *topic,
                               dibs__notice *notice, dibs_error *err)
{
    sqlite3_stmt *stmt;
    dibs_status rc = dibs__sqlite_ask(cn, &stmt, err, DIBS__SQL_EAR_LIST, "ti",
                                      topic, now_us());

    dibs__topic_address(topic, notice->owner);
    while (rc == DIBS_OK) {
        const char *bell;

        rc = dibs__sqlite_row(cn, stmt, err);
        if (rc != DIBS_OK)
            break;
        bell = (const char *)dibs__sql.column_text(stmt, 0);
        if (!bell || !dibs__sqlite_notices_put(&cn->notices, bell, notice)) {
            dibs__sqlite_reset(stmt);
            rc = dibsx_nomem(err, "the notices of a topic");
        }
    }
    return rc == DIBS_NOTFOUND ? DIBS_OK : rc;
}

dibs_status
dibs__sqlite_tell(dibs__sqlite_conn *cn, const char *topic,
                  dibs__notice_kind kind, uint64_t number, dibs_error *err)
{
    dibs__notice notice = {.kind = kind, .fence = number};

    return notify_ears(cn, topic, &notice, err);
}

dibs_status
dibs__sqlite_show(dibs__sqlite_conn *cn, const char *topic,
                  const dibs__put *put, uint64_t version, dibs_error *err)
{
    dibs__notice notice = {.kind = DIBS__NOTICE_CHANGED, .fence = version};

    dibsx_free(cn->notices.shown);
    cn->notices.shown = notice.said = dibs__put_shown(put);
    return notify_ears(cn, topic, &notice, err);
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

/* As dibs__sqlite_step_end(). A message has no other trace than its notices. */
static dibs_status end_say(struct dibs__store *st, dibs__sqlite_conn *cn,
                           dibs_status rc, dibs_error *err)
{
    rc = dibs__sqlite_end(cn, rc, err);
    if (!dibs__sqlite_doorbell_notify(&dibs__sqlite_of(st)->doorbell,
                                      &cn->notices))
        rc = dibsx_fail_at(err, DIBS_UNKNOWN, dibsx_errno_name(errno),
                           "not all that listen got the message: cannot open "
                           "the pipe of a doorbell (%s)",
                           dibsx_errno_name(errno));
    dibs__sqlite_leave(cn);
    return rc;
}

static dibs_status
say_topic(struct dibs__store *st, const char *topic, const void *data,
          size_t len, dibsx_nsec deadline, dibs_error *err)
{
    dibs__notice notice = {.kind = DIBS__NOTICE_SAID,
                           .said = dibs__said_new(len)};
    dibs__sqlite_conn *cn;
    dibs_status rc;

    if (!notice.said)
        return dibsx_nomem(err, "a message");
    if (len > 0)
        memcpy(notice.said->data, data, len);
    rc = dibs__sqlite_step_begin(st, DIBS__SQLITE_LEASE, deadline, &cn, err);
    if (rc == DIBS_OK) {
        rc = notify_ears(cn, topic, &notice, err);
        rc = end_say(st, cn, rc, err);
    }
    dibs__notice_drop(&notice);
    return rc;
}

const dibs__topic_ops dibs__sqlite_topic_ops = {
    .ear = change_ear,
    .tell = tell_topic,
    .say = say_topic,
};
