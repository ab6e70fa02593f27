/* log.c - the log steps: append and read.
 *
 * They use the connection whose commits reach the disk. Writes are one after the
 * other, so that positions appear in their order and a reader misses none. Any
 * thread. */
/* SPDX-License-Identifier: MIT */
#include "base/alloc.h"
#include "base/buf.h"
#include "base/fail.h"
#include "store/sqlite/db.h"

/* A page ends with the entry in which it reaches one of these. */
enum { PAGE_ENTRIES = 256, PAGE_BYTES = 256 << 10 };

/* Only one append in many removes the entries beyond `keep`, because it must count all
 * that are kept to find them. */
static uint64_t trim_every(uint32_t keep)
{
    return keep / 8 + 1;
}

/* Locks: cn. */
static dibs_status trim_topic(dibs__sqlite_conn *cn, const char *topic,
                              uint32_t keep, dibs_error *err)
{
    if (dibsx_prng_below(&cn->prng, trim_every(keep)) != 0)
        return DIBS_OK;
    return dibs__sqlite_run(cn, err, DIBS__SQL_LOG_TRIM, "ti", topic,
                            (int64_t)keep);
}

/* Locks: cn. */
static dibs_status
write_entry(dibs__sqlite_conn *cn, const char *topic, const void *data,
            size_t len, uint64_t *position, dibs_error *err)
{
    int64_t now_wall_us = dibsx_wall_us();
    dibs_status rc = dibs__sqlite_next(cn, now_wall_us, position, err);

    if (rc != DIBS_OK)
        return rc;
    return dibs__sqlite_run(cn, err, DIBS__SQL_LOG_PUT, "tiib", topic,
                            (int64_t)*position, now_wall_us, data, len);
}

static dibs_status
append_entry(struct dibs__store *st, const char *topic, const void *data,
             size_t len, uint32_t keep, dibsx_nsec deadline, uint64_t *position,
             dibs_error *err)
{
    dibs__sqlite_conn *cn;
    dibs_status rc;

    *position = 0;
    if (len > DIBS__LOG_DATA_MAX)
        return dibsx_fail(err, DIBS_INVALID,
                          "an entry of a log has at most %d bytes",
                          DIBS__LOG_DATA_MAX);
    rc = dibs__sqlite_step_begin(st, DIBS__SQLITE_VALUE, deadline, &cn, err);
    if (rc != DIBS_OK)
        return rc;
    rc = write_entry(cn, topic, data, len, position, err);
    if (rc == DIBS_OK)
        rc = trim_topic(cn, topic, keep, err);
    rc = dibs__sqlite_step_end(st, cn, rc, err);
    if (rc != DIBS_OK)
        *position = 0;
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
    const void *data = dibs__sql.column_blob(stmt, 2);

    entry->position = (uint64_t)position;
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

const dibs__log_ops dibs__sqlite_log_ops = {
    .append = append_entry,
    .read = read_log,
};
