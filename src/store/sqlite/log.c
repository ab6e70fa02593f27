/* log.c - the log steps: append, read, bounds, trim, logs.
 *
 * They use the connection whose commits reach the disk. Writes are one after the
 * other, so that positions appear in their order and a reader misses none. Any
 * thread. */
/* SPDX-License-Identifier: MIT */
#include "base/alloc.h"
#include "base/buf.h"
#include "base/fail.h"
#include "store/sqlite/db.h"
#include <stdio.h>
#include <string.h>

/* A page ends with the entry in which it reaches one of these. */
enum { PAGE_ENTRIES = 256, PAGE_BYTES = 256 << 10 };

enum { SWEEP_EVERY = 16 }; /* one append in so many forgets old writers */

/* An end of a topic. */
typedef struct end {
    uint64_t position; /* 0: there is none */
    int64_t total;     /* bytes that the topic has had, up to and with it */
    int64_t nth;       /* and entries */
    int64_t rest; /* of the head: its length; of the tail: its column prior */
} end;

/* Locks: cn. */
static dibs_status find_end(dibs__sqlite_conn *cn, dibs__sqlite_query query,
                            const char *topic, end *out, dibs_error *err)
{
    sqlite3_stmt *stmt;
    dibs_status rc = dibs__sqlite_ask(cn, &stmt, err, query, "t", topic);

    *out = (end){.position = 0};
    if (rc == DIBS_OK)
        rc = dibs__sqlite_row(cn, stmt, err);
    if (rc != DIBS_OK)
        return rc == DIBS_NOTFOUND ? DIBS_OK : rc;
    out->position = (uint64_t)dibs__sql.column_int64(stmt, 0);
    out->total = dibs__sql.column_int64(stmt, 1);
    out->nth = dibs__sql.column_int64(stmt, 2);
    out->rest = dibs__sql.column_int64(stmt, 3);
    dibs__sqlite_reset(stmt);
    return DIBS_OK;
}

/* Only one append in many removes the entries beyond `keep`, because it must count all
 * that are kept to find them. */
static uint64_t trim_every(uint32_t keep)
{
    return keep / 8 + 1;
}

/* Removes what is beyond the limits. Locks: cn. */
static dibs_status
trim_topic(dibs__sqlite_conn *cn, const dibs__append *what, uint64_t position,
           int64_t total, int64_t now_wall_us, dibs_error *err)
{
    int64_t keep_us, oldest_us = 0;
    dibs_status rc = DIBS_OK;

    if (dibsx_prng_below(&cn->prng, trim_every(what->keep)) == 0)
        rc = dibs__sqlite_run(cn, err, DIBS__SQL_LOG_TRIM, "ti", what->topic,
                              (int64_t)what->keep);
    if (rc != DIBS_OK || (what->keep_bytes == 0 && what->keep_ms == 0))
        return rc;
    if (what->keep_ms > 0 &&
        !__builtin_mul_overflow(what->keep_ms, (int64_t)1000, &keep_us))
        oldest_us = now_wall_us - keep_us;
    return dibs__sqlite_run(cn, err, DIBS__SQL_LOG_AGED, "tiiii", what->topic,
                            (int64_t)position, oldest_us, total,
                            what->keep_bytes ? what->keep_bytes : INT64_MAX);
}

/* The last request of the lane; zeros when it is not known. Locks: cn. */
static dibs_status
find_writer(dibs__sqlite_conn *cn, const dibs__append *what, uint64_t *number,
            uint64_t *position, dibs_error *err)
{
    sqlite3_stmt *stmt;
    dibs_status rc = dibs__sqlite_ask(cn, &stmt, err, DIBS__SQL_WRITER, "ti",
                                      what->topic, (int64_t)what->lane);

    *number = *position = 0;
    if (rc == DIBS_OK)
        rc = dibs__sqlite_row(cn, stmt, err);
    if (rc != DIBS_OK)
        return rc == DIBS_NOTFOUND ? DIBS_OK : rc;
    *number = (uint64_t)dibs__sql.column_int64(stmt, 0);
    *position = (uint64_t)dibs__sql.column_int64(stmt, 1);
    dibs__sqlite_reset(stmt);
    return DIBS_OK;
}

/* Locks: cn. */
static dibs_status keep_writer(dibs__sqlite_conn *cn, const dibs__append *what,
                               uint64_t position, dibs_error *err)
{
    int64_t now_us = dibsx_now() / 1000;
    dibs_status rc =
        dibs__sqlite_run(cn, err, DIBS__SQL_WRITER_PUT, "tiiii", what->topic,
                         (int64_t)what->lane, (int64_t)what->number,
                         (int64_t)position,
                         now_us + (int64_t)DIBS__LOG_REPEAT_MS * 1000);

    if (rc != DIBS_OK || dibsx_prng_below(&cn->prng, SWEEP_EVERY) != 0)
        return rc;
    return dibs__sqlite_run(cn, err, DIBS__SQL_WRITER_SWEEP, "i", now_us);
}

/* Locks: cn. */
static dibs_status write_entry(dibs__sqlite_conn *cn, const dibs__append *what,
                               uint64_t *position, dibs_error *err)
{
    int64_t now_wall_us = dibsx_wall_us();
    char topic[DIBS__TOPIC_MAX];
    end tail;
    dibs_status rc = find_end(cn, DIBS__SQL_LOG_TAIL, what->topic, &tail, err);

    if (rc == DIBS_OK)
        rc = dibs__sqlite_next(cn, now_wall_us, position, err);
    if (rc != DIBS_OK)
        return rc;
    tail.total += (int64_t)what->len;
    rc =
        dibs__sqlite_run(cn, err, DIBS__SQL_LOG_PUT, "tiibiii", what->topic,
                         (int64_t)*position, now_wall_us, what->data, what->len,
                         (int64_t)tail.position, tail.total, tail.nth + 1);
    if (rc == DIBS_OK && what->lane != 0)
        rc = keep_writer(cn, what, *position, err);
    if (rc == DIBS_OK)
        rc = trim_topic(cn, what, *position, tail.total, now_wall_us, err);
    dibs__topic_of_log(what->topic, topic);
    return rc == DIBS_OK ? dibs__sqlite_tell(cn, topic, DIBS__NOTICE_CHANGED,
                                             *position, err)
                         : rc;
}

/* Locks: cn. */
static dibs_status append_once(dibs__sqlite_conn *cn, const dibs__append *what,
                               uint64_t *position, dibs_error *err)
{
    uint64_t number = 0, kept = 0;
    dibs_status rc =
        what->lane == 0 ? DIBS_OK : find_writer(cn, what, &number, &kept, err);

    if (rc != DIBS_OK || what->lane == 0 || what->number > number)
        return rc == DIBS_OK ? write_entry(cn, what, position, err) : rc;
    if (what->number < number)
        return dibs__append_late(err);
    *position = kept;
    return DIBS_OK;
}

static dibs_status
append_entry(struct dibs__store *st, const dibs__append *what,
             dibsx_nsec deadline, uint64_t *position, dibs_error *err)
{
    dibs__sqlite_conn *cn;
    dibs_status rc = dibs__append_check(what, err);

    *position = 0;
    if (rc == DIBS_OK)
        rc =
            dibs__sqlite_step_begin(st, DIBS__SQLITE_VALUE, deadline, &cn, err);
    if (rc != DIBS_OK)
        return rc;
    rc = append_once(cn, what, position, err);
    rc = dibs__sqlite_step_end(st, cn, rc, err);
    if (rc != DIBS_OK)
        *position = 0;
    return rc;
}

static void span_between(const end *head, const end *tail, dibs__log_span *out)
{
    out->first = head->position;
    out->last = tail->position;
    if (head->position != 0) {
        out->count = (uint64_t)(tail->nth - head->nth + 1);
        out->bytes = tail->total - head->total + head->rest;
    }
}

/* Locks: cn. */
static dibs_status find_bounds(dibs__sqlite_conn *cn, const char *topic,
                               dibs__log_span *out, dibs_error *err)
{
    end head, tail;
    dibs_status rc = find_end(cn, DIBS__SQL_LOG_HEAD, topic, &head, err);

    if (rc == DIBS_OK)
        rc = find_end(cn, DIBS__SQL_LOG_TAIL, topic, &tail, err);
    if (rc == DIBS_OK)
        span_between(&head, &tail, out);
    return rc;
}

static dibs_status
look_bounds(struct dibs__store *st, const char *topic, dibsx_nsec deadline,
            dibs__log_span *out, dibs_error *err)
{
    dibs__sqlite_conn *cn;
    dibs_status rc;

    *out = (dibs__log_span){0};
    rc = dibs__sqlite_step_begin(st, DIBS__SQLITE_VALUE, deadline, &cn, err);
    if (rc != DIBS_OK)
        return rc;
    rc = find_bounds(cn, topic, out, err);
    return dibs__sqlite_step_end(st, cn, rc, err);
}

/* The newest stays without its data, for the entry that follows it. Locks: cn. */
static dibs_status drop_entries(dibs__sqlite_conn *cn, const char *topic,
                                int64_t through, uint64_t last, dibs_error *err)
{
    end head;
    dibs_status rc =
        dibs__sqlite_run(cn, err, DIBS__SQL_LOG_DROP, "tiii", topic, through,
                         (int64_t)last, (int64_t)DIBS__LOG_TRIM_MAX - 1);

    if (rc == DIBS_OK)
        rc = find_end(cn, DIBS__SQL_LOG_HEAD, topic, &head, err);
    if (rc == DIBS_OK && last <= (uint64_t)through && head.position == last)
        rc = dibs__sqlite_run(cn, err, DIBS__SQL_LOG_BLANK, "ti", topic,
                              (int64_t)last);
    return rc;
}

static dibs_status
trim_log(struct dibs__store *st, const char *topic, uint64_t through,
         dibsx_nsec deadline, uint64_t *gone, dibs_error *err)
{
    dibs__log_span before = {0}, after = {0};
    dibs__sqlite_conn *cn;
    dibs_status rc;

    *gone = 0;
    rc = dibs__sqlite_step_begin(st, DIBS__SQLITE_VALUE, deadline, &cn, err);
    if (rc != DIBS_OK)
        return rc;
    rc = find_bounds(cn, topic, &before, err);
    if (rc == DIBS_OK && before.count > 0)
        rc = drop_entries(cn, topic,
                          through < INT64_MAX ? (int64_t)through : INT64_MAX,
                          before.last, err);
    if (rc == DIBS_OK)
        rc = find_bounds(cn, topic, &after, err);
    rc = dibs__sqlite_step_end(st, cn, rc, err);
    if (rc == DIBS_OK)
        *gone = before.count - after.count;
    return rc;
}

typedef struct page {
    dibs__log_entry entries[PAGE_ENTRIES]; /* their data is set when shown */
    size_t count;
    dibsx_buf bytes; /* the data of all of them, one after the other */
} page;

static dibs_status page_add(page *pg, sqlite3_stmt *stmt, dibs_error *err)
{
    dibs__log_entry *entry = &pg->entries[pg->count];
    int64_t position = dibs__sql.column_int64(stmt, 0);
    int64_t prior = dibs__sql.column_int64(stmt, 3);
    const void *data = dibs__sql.column_blob(stmt, 2);

    entry->position = (uint64_t)position;
    entry->prior = prior < 0 ? DIBS__PRIOR_UNKNOWN : (uint64_t)prior;
    entry->store_wall_us = dibs__sql.column_int64(stmt, 1);
    entry->len = (size_t)dibs__sql.column_bytes(stmt, 2);
    if (position <= 0 || entry->len > DIBS__LOG_DATA_MAX)
        return dibsx_fail(err, DIBS_INTERNAL,
                          "the table log holds a row that is none; run `dibs "
                          "doctor`");
    if (entry->len && data)
        dibsx_buf_add(&pg->bytes, data, entry->len);
    if (!dibsx_buf_ok(&pg->bytes) || (entry->len && !data))
        return dibsx_nomem(err, "a page of a log");
    pg->count++;
    return DIBS_OK;
}

/* Reads up to `max` entries after the position. DIBS_NOTFOUND: there is nothing
 * beyond them. Locks: cn. */
static dibs_status page_read(dibs__sqlite_conn *cn, page *pg, const char *topic,
                             uint64_t after, size_t max, dibs_error *err)
{
    size_t room = max < PAGE_ENTRIES ? max : PAGE_ENTRIES;
    sqlite3_stmt *stmt;
    dibs_status rc =
        dibs__sqlite_ask(cn, &stmt, err, DIBS__SQL_LOG_PAGE, "ti", topic,
                         after < INT64_MAX ? (int64_t)after : INT64_MAX);

    pg->count = 0;
    dibsx_buf_reset(&pg->bytes);
    while (rc == DIBS_OK && pg->count < room && pg->bytes.len < PAGE_BYTES) {
        rc = dibs__sqlite_row(cn, stmt, err);
        if (rc == DIBS_OK)
            rc = page_add(pg, stmt, err);
    }
    dibs__sqlite_reset(stmt);
    return rc;
}

/* False when the caller has seen enough. */
static bool page_show(page *pg, dibs__log_fn *each, void *arg)
{
    const char *data = dibsx_buf_text(&pg->bytes);

    for (size_t i = 0; i < pg->count; i++) {
        dibs__log_entry *entry = &pg->entries[i];

        entry->data = data;
        data += entry->len;
        if (!each(entry, arg))
            return false;
    }
    return true;
}

static dibs_status
read_log(struct dibs__store *st, const char *topic, uint64_t after, size_t max,
         dibsx_nsec deadline, dibs__log_fn *each, void *arg, dibs_error *err)
{
    dibs__sqlite_conn *cn = dibs__sqlite_conn_of(st, DIBS__SQLITE_VALUE);
    page *pg = dibsx_zalloc(sizeof(*pg));
    dibs_status rc = DIBS_OK;

    if (!pg)
        return dibsx_nomem(err, "a page of a log");
    dibsx_buf_init(&pg->bytes, PAGE_BYTES + DIBS__LOG_DATA_MAX);
    while (rc == DIBS_OK && max > 0) {
        rc = dibs__sqlite_enter(cn, deadline, err);
        if (rc != DIBS_OK)
            break;
        rc = page_read(cn, pg, topic, after, max, err);
        dibs__sqlite_leave(cn);
        if (rc != DIBS_OK && rc != DIBS_NOTFOUND)
            break;
        if (!page_show(pg, each, arg))
            break;
        max -= pg->count;
        if (pg->count > 0)
            after = pg->entries[pg->count - 1].position;
    }
    dibsx_buf_fini(&pg->bytes);
    dibsx_free(pg);
    return rc == DIBS_NOTFOUND ? DIBS_OK : rc;
}

/* DIBS_NOTFOUND: the list ends before it. A column that is NULL reads as 0. */
static dibs_status read_row(sqlite3_stmt *stmt, const dibs__log_query *query,
                            dibs__log_row *row, dibs_error *err)
{
    const char *name = (const char *)dibs__sql.column_text(stmt, 7);
    const end head = {
        .position = (uint64_t)dibs__sql.column_int64(stmt, 0),
        .total = dibs__sql.column_int64(stmt, 1),
        .nth = dibs__sql.column_int64(stmt, 2),
        .rest = dibs__sql.column_int64(stmt, 3),
    };
    const end tail = {
        .position = (uint64_t)dibs__sql.column_int64(stmt, 4),
        .total = dibs__sql.column_int64(stmt, 5),
        .nth = dibs__sql.column_int64(stmt, 6),
    };

    if (!name)
        return dibsx_nomem(err, "a name");
    if (strncmp(name, query->begins, strlen(query->begins)) != 0)
        return DIBS_NOTFOUND;
    memset(row, 0, sizeof(*row));
    snprintf(row->name, sizeof(row->name), "%s", name);
    span_between(&head, &tail, &row->span);
    return DIBS_OK;
}

/* One statement, so that the bounds of a topic are those of one moment. Locks: cn. */
static dibs_status
copy_rows(dibs__sqlite_conn *cn, const dibs__log_query *query, dibsx_buf *rows,
          dibs_error *err)
{
    char from[DIBS__LOG_FROM_SIZE];
    sqlite3_stmt *stmt;
    dibs_status rc;

    dibs__log_list_from(query, from);
    rc = dibs__sqlite_ask(cn, &stmt, err, DIBS__SQL_LOG_LIST, "ti", from,
                          (int64_t)dibs__log_list_max(query));
    while (rc == DIBS_OK) {
        dibs__log_row row;

        rc = dibs__sqlite_row(cn, stmt, err);
        if (rc != DIBS_OK)
            break;
        rc = read_row(stmt, query, &row, err);
        if (rc == DIBS_OK)
            dibsx_buf_add(rows, &row, sizeof(row));
        else
            dibs__sqlite_reset(stmt);
    }
    if (rc == DIBS_NOTFOUND)
        rc =
            dibsx_buf_ok(rows) ? DIBS_OK : dibsx_nomem(err, "a list of topics");
    return rc;
}

static dibs_status list_logs(struct dibs__store *st,
                             const dibs__log_query *query, dibsx_nsec deadline,
                             dibs__log_row_fn *each, void *arg, dibs_error *err)
{
    dibs__sqlite_conn *cn = dibs__sqlite_conn_of(st, DIBS__SQLITE_VALUE);
    dibs_status rc = dibs__sqlite_enter(cn, deadline, err);
    dibs__log_row row;
    dibsx_buf rows;

    if (rc != DIBS_OK)
        return rc;
    dibsx_buf_init(&rows, DIBS__LOG_LIST_MAX * sizeof(row));
    rc = copy_rows(cn, query, &rows, err);
    dibs__sqlite_leave(cn);
    for (size_t at = 0; rc == DIBS_OK && at < rows.len; at += sizeof(row)) {
        memcpy(&row, rows.data + at, sizeof(row));
        if (!each(&row, arg))
            break;
    }
    dibsx_buf_fini(&rows);
    return rc;
}

const dibs__log_ops dibs__sqlite_log_ops = {
    .append = append_entry,
    .read = read_log,
    .bounds = look_bounds,
    .trim = trim_log,
    .logs = list_logs,
};
