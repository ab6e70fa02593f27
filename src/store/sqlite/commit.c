/* commit.c - the commit steps: the rule of store/ledger.h on the tables of values and
 * of indexes.
 *
 * All commits of a step share one transaction, so they cost one write to the disk.
 * They use the connection whose commits reach it. Any thread. */
/* SPDX-License-Identifier: MIT */
#include "base/alloc.h"
#include "base/buf.h"
#include "base/fail.h"
#include "store/commit_check.h"
#include "store/ledger.h"
#include "store/sqlite/value.h"
#include <string.h>

/* Bytes that a step of looks copies at most. */
enum {
    ENTRIES_MAX = DIBS__LOOKS_MAX * (DIBS__LOOK_LIMIT_MAX + 1) *
                  (DIBS_NAME_MAX + 1 + (int)sizeof(int64_t))
};

typedef struct ledger {
    dibs__ledger base;
    dibs__sqlite_conn *cn;
    dibs_error *err;
} ledger;

static ledger *of(dibs__ledger *lg)
{
    return (ledger *)lg;
}

static dibs_status
find_version(dibs__ledger *lg, const char *key, uint64_t *out)
{
    return dibs__sqlite_value_version(of(lg)->cn, key, lg->now_us, out,
                                      of(lg)->err);
}

static dibs_status
read_value(dibs__ledger *lg, const char *key, dibs_value *out)
{
    return dibs__sqlite_value_read(of(lg)->cn, key, lg->now_us, out,
                                   of(lg)->err);
}

static dibs_status draw_version(dibs__ledger *lg, uint64_t *version)
{
    return dibs__sqlite_next(of(lg)->cn, lg->now_us, version, of(lg)->err);
}

static dibs_status
put_value(dibs__ledger *lg, const dibs__change *change, uint64_t version)
{
    dibs__put put = {.key = change->key,
                     .data = change->data,
                     .len = change->len,
                     .ttl_ms = change->ttl_ms};

    return dibs__sqlite_value_write(of(lg)->cn, &put, lg->now_us, version,
                                    of(lg)->err);
}

static dibs_status drop_value(dibs__ledger *lg, const char *key)
{
    return dibs__sqlite_value_drop(of(lg)->cn, key, lg->now_us, of(lg)->err);
}

/* The one number of a row; DIBS_NOTFOUND: there is no row. */
static dibs_status
read_number(dibs__ledger *lg, sqlite3_stmt *stmt, int64_t *out)
{
    dibs_status rc = dibs__sqlite_row(of(lg)->cn, stmt, of(lg)->err);

    if (rc != DIBS_OK)
        return rc;
    *out = dibs__sql.column_int64(stmt, 0);
    dibs__sqlite_reset(stmt);
    return DIBS_OK;
}

static dibs_status
find_entry(dibs__ledger *lg, const char *index, const char *member)
{
    sqlite3_stmt *stmt;
    int64_t at;
    dibs_status rc = dibs__sqlite_ask(of(lg)->cn, &stmt, of(lg)->err,
                                      DIBS__SQL_ENTRY, "tt", index, member);

    return rc == DIBS_OK ? read_number(lg, stmt, &at) : rc;
}

static dibs_status
enter_index(dibs__ledger *lg, const char *index, const char *member, int64_t at)
{
    dibs_status rc = find_entry(lg, index, member);

    if (rc == DIBS_NOTFOUND)
        rc = dibs__sqlite_run(of(lg)->cn, of(lg)->err, DIBS__SQL_ORDERED_MORE,
                              "t", index);
    if (rc == DIBS_OK)
        rc = dibs__sqlite_run(of(lg)->cn, of(lg)->err, DIBS__SQL_ENTRY_PUT,
                              "tti", index, member, at);
    return rc;
}

static dibs_status
leave_index(dibs__ledger *lg, const char *index, const char *member)
{
    dibs_status rc = find_entry(lg, index, member);

    if (rc != DIBS_OK)
        return rc == DIBS_NOTFOUND ? DIBS_OK : rc;
    rc = dibs__sqlite_run(of(lg)->cn, of(lg)->err, DIBS__SQL_ENTRY_DROP, "tt",
                          index, member);
    if (rc == DIBS_OK)
        rc = dibs__sqlite_run(of(lg)->cn, of(lg)->err, DIBS__SQL_ORDERED_LESS,
                              "t", index);
    if (rc == DIBS_OK)
        rc = dibs__sqlite_run(of(lg)->cn, of(lg)->err, DIBS__SQL_ORDERED_DROP,
                              "t", index);
    return rc;
}

static dibs_status read_size(dibs__ledger *lg, const char *index, uint64_t *out)
{
    sqlite3_stmt *stmt;
    int64_t size = 0;
    dibs_status rc = dibs__sqlite_ask(of(lg)->cn, &stmt, of(lg)->err,
                                      DIBS__SQL_ORDERED, "t", index);

    if (rc == DIBS_OK)
        rc = read_number(lg, stmt, &size);
    *out = (uint64_t)size;
    return rc == DIBS_NOTFOUND ? DIBS_OK : rc;
}

static dibs_status
tell_topic(dibs__ledger *lg, const char *topic, uint64_t number)
{
    return dibs__sqlite_tell(of(lg)->cn, topic, DIBS__NOTICE_CHANGED, number,
                             of(lg)->err);
}

static const dibs__ledger_ops ledger_ops = {
    .version = find_version,
    .read = read_value,
    .draw = draw_version,
    .put = put_value,
    .drop = drop_value,
    .enter = enter_index,
    .leave = leave_index,
    .size = read_size,
    .tell = tell_topic,
};

/* Each that was done also removes a few values that have expired. Locks: cn. */
static dibs_status commit_all(ledger *lg, dibs__commit *items, size_t count)
{
    dibs_status rc = DIBS_OK;

    for (size_t i = 0; i < count && rc == DIBS_OK; i++) {
        rc = dibs__ledger_commit(&lg->base, &items[i]);
        /* A step that refuses everything writes nothing. */
        if (rc == DIBS_OK && items[i].rc == DIBS_OK)
            rc = dibs__sqlite_run(lg->cn, lg->err, DIBS__SQL_VALUE_SWEEP, "i",
                                  lg->base.now_us);
    }
    return rc;
}

static dibs_status
commit_items(struct dibs__store *st, dibs__commit *items, size_t count,
             dibsx_nsec deadline, dibs_error *err)
{
    ledger lg = {.base.ops = &ledger_ops, .err = err};
    dibs_status rc = dibs__commit_begin(items, count, err);

    if (rc != DIBS_OK)
        return rc;
    rc = dibs__sqlite_step_begin(st, DIBS__SQLITE_VALUE, deadline, &lg.cn, err);
    if (rc == DIBS_OK) {
        lg.base.now_us = dibsx_wall_us();
        rc = commit_all(&lg, items, count);
        rc = dibs__sqlite_step_end(st, lg.cn, rc, err);
    }
    return rc == DIBS_OK ? rc : dibs__commit_fail(items, count, rc);
}

/* Several reads of one moment. Locks: cn. */
static dibs_status begin_reads(dibs__sqlite_conn *cn, dibs_error *err)
{
    return cn->file ? dibs__sqlite_run(cn, err, DIBS__SQL_BEGIN_READ, "")
                    : DIBS_OK;
}

static void end_reads(dibs__sqlite_conn *cn)
{
    if (cn->file)
        dibs__sqlite_roll_back(cn);
}

/* Locks: cn. */
static dibs_status read_values(dibs__sqlite_conn *cn, const char *const *keys,
                               size_t count, dibs_value *out, dibs_error *err)
{
    dibs_status rc = begin_reads(cn, err);
    int64_t now_wall_us = dibsx_wall_us();

    if (rc != DIBS_OK)
        return rc;
    for (size_t i = 0; i < count && rc == DIBS_OK; i++) {
        rc = dibs__sqlite_value_read(cn, keys[i], now_wall_us, &out[i], err);
        if (rc == DIBS_NOTFOUND)
            rc = DIBS_OK;
    }
    end_reads(cn);
    return rc;
}

static dibs_status
get_values(struct dibs__store *st, const char *const *keys, size_t count,
           dibsx_nsec deadline, dibs_value *out, dibs_error *err)
{
    dibs__sqlite_conn *cn = dibs__sqlite_conn_of(st, DIBS__SQLITE_VALUE);
    dibs_status rc = dibs__get_many_begin(keys, count, out, err);

    if (rc == DIBS_OK)
        rc = dibs__sqlite_enter(cn, deadline, err);
    if (rc != DIBS_OK)
        return rc;
    rc = read_values(cn, keys, count, out, err);
    dibs__sqlite_leave(cn);
    for (size_t i = 0; i < count && rc != DIBS_OK; i++) {
        dibsx_free(out[i].data);
        out[i] = (dibs_value){0};
    }
    return rc;
}

/* Copies the number of an entry, and its member with its NUL. */
static dibs_status
copy_entry(sqlite3_stmt *stmt, dibsx_buf *entries, dibs_error *err)
{
    int64_t at = dibs__sql.column_int64(stmt, 0);
    const char *member = (const char *)dibs__sql.column_text(stmt, 1);

    if (!member)
        return dibsx_nomem(err, "a member of an index");
    dibsx_buf_add(entries, &at, sizeof(at));
    dibsx_buf_add(entries, member, strlen(member) + 1);
    return DIBS_OK;
}

/* Reads one entry more than it shows, for the number behind them. Locks: cn. */
static dibs_status
read_entries(dibs__sqlite_conn *cn, dibs__index_look *look, int64_t now_us,
             dibsx_buf *entries, dibs_error *err)
{
    int64_t up_to = look->up_to == DIBS__UP_TO_NOW ? now_us : look->up_to;
    sqlite3_stmt *stmt;
    dibs_status rc =
        dibs__sqlite_ask(cn, &stmt, err, DIBS__SQL_ENTRY_FIRST, "tiii",
                         look->index, look->from, (int64_t)look->limit + 1,
                         (int64_t)look->skip);

    for (uint32_t shown = 0; rc == DIBS_OK; shown++) {
        int64_t at;

        rc = dibs__sqlite_row(cn, stmt, err);
        if (rc != DIBS_OK)
            break;
        at = dibs__sql.column_int64(stmt, 0);
        if (shown < look->limit && at <= up_to)
            rc = copy_entry(stmt, entries, err);
        else {
            look->next = at;
            rc = DIBS_NOTFOUND;
        }
        if (rc != DIBS_OK)
            dibs__sqlite_reset(stmt);
    }
    dibsx_buf_add(entries, &(int64_t){-1}, sizeof(int64_t));
    return rc == DIBS_NOTFOUND ? DIBS_OK : rc;
}

/* Locks: cn. */
static dibs_status
read_looks(dibs__sqlite_conn *cn, dibs__index_look *looks, size_t count,
           int64_t *now_us, dibsx_buf *entries, dibs_error *err)
{
    dibs_status rc = begin_reads(cn, err);

    if (rc != DIBS_OK)
        return rc;
    *now_us = dibsx_wall_us();
    for (size_t i = 0; i < count && rc == DIBS_OK; i++)
        rc = read_entries(cn, &looks[i], *now_us, entries, err);
    end_reads(cn);
    return rc == DIBS_OK && !dibsx_buf_ok(entries)
               ? dibsx_nomem(err, "the entries of an index")
               : rc;
}

/* The entries of a look end with the number -1. */
static void
show_entries(const dibsx_buf *entries, dibs__index_fn *each, void *arg)
{
    size_t look = 0;

    for (size_t from = 0; from < entries->len;) {
        int64_t at;
        const char *member = entries->data + from + sizeof(at);

        memcpy(&at, entries->data + from, sizeof(at));
        from += sizeof(at);
        if (at < 0) {
            look++;
            continue;
        }
        from += strlen(member) + 1;
        each(look, member, at, arg);
    }
}

static dibs_status
look_first(struct dibs__store *st, dibs__index_look *looks, size_t count,
           dibsx_nsec deadline, int64_t *now_us, dibs__index_fn *each,
           void *arg, dibs_error *err)
{
    dibs__sqlite_conn *cn = dibs__sqlite_conn_of(st, DIBS__SQLITE_VALUE);
    dibs_status rc = dibs__first_begin(looks, count, now_us, err);
    dibsx_buf entries;

    if (rc == DIBS_OK)
        rc = dibs__sqlite_enter(cn, deadline, err);
    if (rc != DIBS_OK)
        return rc;
    dibsx_buf_init(&entries, ENTRIES_MAX);
    rc = read_looks(cn, looks, count, now_us, &entries, err);
    dibs__sqlite_leave(cn);
    if (rc == DIBS_OK)
        show_entries(&entries, each, arg);
    dibsx_buf_fini(&entries);
    return rc;
}

const dibs__commit_ops dibs__sqlite_commit_ops = {
    .commit = commit_items,
    .get_many = get_values,
    .first = look_first,
};
