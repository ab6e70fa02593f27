/* value.c - the value steps: get, put, add, delete, list.
 *
 * They use the connection whose commits reach the disk. A value that has expired
 * counts as absent; every change removes some of these. Any thread. */
/* SPDX-License-Identifier: MIT */
#include "store/sqlite/value.h"
#include "base/alloc.h"
#include "base/fail.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PAGE_KEYS = 256, NUMBER_MAX = 21 };

#define FOR_EVER INT64_MAX

/* The columns of a value beside its bytes. */
typedef struct head {
    uint64_t version; /* 0: there is none */
    int64_t until_wall_us;
} head;

static int64_t until_after(int64_t now_wall_us, int64_t ttl_ms)
{
    int64_t span_us, until;

    if (ttl_ms == 0 ||
        __builtin_mul_overflow(ttl_ms, (int64_t)1000, &span_us) ||
        __builtin_add_overflow(now_wall_us, span_us, &until))
        return FOR_EVER;
    return until;
}

/* Rounded up: what is there has at least a millisecond. */
static int64_t expires_ms(int64_t until_wall_us, int64_t now_wall_us)
{
    if (until_wall_us == FOR_EVER)
        return -1;
    return (until_wall_us - now_wall_us + 999) / 1000;
}

/* Reads version and until_wall_us, the first two columns of every query. False
 * when the value has expired. */
static bool read_head(sqlite3_stmt *stmt, int64_t now_wall_us, head *out)
{
    out->version = (uint64_t)dibs__sql.column_int64(stmt, 0);
    out->until_wall_us = FOR_EVER;
    if (dibs__sql.column_type(stmt, 1) != SQLITE_NULL)
        out->until_wall_us = dibs__sql.column_int64(stmt, 1);
    return out->until_wall_us > now_wall_us;
}

/* Copies the bytes of a column, with a NUL beyond them. */
static dibs_status
read_data(sqlite3_stmt *stmt, int column, dibs_value *out, dibs_error *err)
{
    const void *data = dibs__sql.column_blob(stmt, column);

    out->len = (size_t)dibs__sql.column_bytes(stmt, column);
    out->data = dibsx_zalloc(out->len + 1);
    if (!out->data || (!data && out->len))
        return dibsx_nomem(err, "a value of %zu bytes", out->len);
    if (out->len)
        memcpy(out->data, data, out->len);
    return DIBS_OK;
}

/* DIBS_NOTFOUND: there is none. Frees nothing on failure. Locks: cn. */
static dibs_status
read_value(dibs__sqlite_conn *cn, const char *key, int64_t now_wall_us,
           dibs_value *out, head *hd, dibs_error *err)
{
    sqlite3_stmt *stmt;
    dibs_status rc =
        dibs__sqlite_ask(cn, &stmt, err, DIBS__SQL_VALUE, "t", key);

    if (rc == DIBS_OK)
        rc = dibs__sqlite_row(cn, stmt, err);
    if (rc != DIBS_OK)
        return rc;
    rc = read_head(stmt, now_wall_us, hd) ? read_data(stmt, 2, out, err)
                                          : DIBS_NOTFOUND;
    dibs__sqlite_reset(stmt);
    return rc;
}

static dibs_status fail_absent(dibs_error *err)
{
    return dibsx_fail(err, DIBS_NOTFOUND, "there is no such key");
}

dibs_status
dibs__sqlite_value_read(dibs__sqlite_conn *cn, const char *key,
                        int64_t now_wall_us, dibs_value *out, dibs_error *err)
{
    head hd = {0};
    dibs_status rc;

    memset(out, 0, sizeof(*out));
    rc = read_value(cn, key, now_wall_us, out, &hd, err);
    if (rc == DIBS_OK) {
        out->version = hd.version;
        out->expires_ms = expires_ms(hd.until_wall_us, now_wall_us);
        return rc;
    }
    dibsx_free(out->data);
    memset(out, 0, sizeof(*out));
    return rc;
}

static dibs_status
get_value(struct dibs__store *st, const char *key, dibsx_nsec deadline,
          dibs_value *out, dibs_error *err)
{
    dibs__sqlite_conn *cn = dibs__sqlite_conn_of(st, DIBS__SQLITE_VALUE);
    int64_t now_wall_us = dibsx_wall_us();
    dibs_status rc = dibs__sqlite_enter(cn, deadline, err);

    memset(out, 0, sizeof(*out));
    if (rc != DIBS_OK)
        return rc;
    rc = dibs__sqlite_value_read(cn, key, now_wall_us, out, err);
    dibs__sqlite_leave(cn);
    return rc == DIBS_NOTFOUND ? fail_absent(err) : rc;
}

/* A version of 0 in *out when there is no value. Locks: cn. */
static dibs_status find_head(dibs__sqlite_conn *cn, const char *key,
                             int64_t now_wall_us, head *out, dibs_error *err)
{
    sqlite3_stmt *stmt;
    dibs_status rc =
        dibs__sqlite_ask(cn, &stmt, err, DIBS__SQL_VALUE_HEAD, "t", key);

    *out = (head){.until_wall_us = FOR_EVER};
    if (rc == DIBS_OK)
        rc = dibs__sqlite_row(cn, stmt, err);
    if (rc != DIBS_OK)
        return rc == DIBS_NOTFOUND ? DIBS_OK : rc;
    if (!read_head(stmt, now_wall_us, out))
        *out = (head){.until_wall_us = FOR_EVER};
    dibs__sqlite_reset(stmt);
    return DIBS_OK;
}

dibs_status
dibs__sqlite_value_version(dibs__sqlite_conn *cn, const char *key,
                           int64_t now_wall_us, uint64_t *out, dibs_error *err)
{
    head hd;
    dibs_status rc = find_head(cn, key, now_wall_us, &hd, err);

    *out = hd.version;
    return rc;
}

static dibs_status
read_heads(struct dibs__store *st, const char *const *keys, size_t count,
           dibsx_nsec deadline, dibs__value_head *out, dibs_error *err)
{
    dibs__sqlite_conn *cn = dibs__sqlite_conn_of(st, DIBS__SQLITE_VALUE);
    dibs_status rc = dibs__sqlite_enter(cn, deadline, err);
    int64_t now_wall_us = dibsx_wall_us();
    head hd;

    if (rc != DIBS_OK)
        return rc;
    for (size_t i = 0; i < count && rc == DIBS_OK; i++) {
        rc = find_head(cn, keys[i], now_wall_us, &hd, err);
        out[i].version = hd.version;
        out[i].expires_ms = expires_ms(hd.until_wall_us, now_wall_us);
        out[i].rc = rc;
    }
    dibs__sqlite_leave(cn);
    return rc;
}

/* Locks: cn. */
static dibs_status tell_change(dibs__sqlite_conn *cn, const char *key,
                               uint64_t version, dibs_error *err)
{
    char topic[DIBS__TOPIC_MAX];

    dibs__topic_of_value(key, topic);
    return dibs__sqlite_tell(cn, topic, DIBS__NOTICE_CHANGED, version, err);
}

/* Locks: cn. */
static dibs_status
write_at(dibs__sqlite_conn *cn, const dibs__put *put, int64_t until_wall_us,
         uint64_t version, dibs_error *err)
{
    bool for_ever = until_wall_us == FOR_EVER;
    char topic[DIBS__TOPIC_MAX];
    dibs_status rc =
        dibs__sqlite_run(cn, err, DIBS__SQL_VALUE_PUT,
                         for_ever ? "tbin" : "tbii", put->key, put->data,
                         put->len, (int64_t)version, until_wall_us);

    if (rc != DIBS_OK || !put->shows)
        return rc == DIBS_OK ? tell_change(cn, put->key, version, err) : rc;
    dibs__topic_of_value(put->key, topic);
    return dibs__sqlite_show(cn, topic, put, version, err);
}

dibs_status
dibs__sqlite_value_write(dibs__sqlite_conn *cn, const dibs__put *put,
                         int64_t now_wall_us, uint64_t version, dibs_error *err)
{
    return write_at(cn, put, until_after(now_wall_us, put->ttl_ms), version,
                    err);
}

/* Writes a value and removes a few that have expired. Locks: cn. */
static dibs_status
write_value(dibs__sqlite_conn *cn, const dibs__put *put, int64_t now_wall_us,
            int64_t until_wall_us, uint64_t *version, dibs_error *err)
{
    dibs_status rc = dibs__sqlite_next(cn, now_wall_us, version, err);

    if (rc == DIBS_OK)
        rc = dibs__sqlite_run(cn, err, DIBS__SQL_VALUE_SWEEP, "i", now_wall_us);
    return rc == DIBS_OK ? write_at(cn, put, until_wall_us, *version, err) : rc;
}

static dibs_status
put_value(struct dibs__store *st, const dibs__put *put, dibsx_nsec deadline,
          uint64_t *version, dibs_error *err)
{
    dibs__sqlite_conn *cn;
    dibs_status rc =
        dibs__sqlite_step_begin(st, DIBS__SQLITE_VALUE, deadline, &cn, err);
    int64_t now_wall_us = dibsx_wall_us();
    head hd;

    *version = 0;
    if (rc != DIBS_OK)
        return rc;
    rc = find_head(cn, put->key, now_wall_us, &hd, err);
    if (rc != DIBS_OK)
        return dibs__sqlite_step_end(st, cn, rc, err);
    if (put->expected != DIBS_VERSION_ANY && put->expected != hd.version) {
        *version = hd.version;
        rc = dibsx_fail(err, DIBS_STALE, "the version is %" PRIu64, hd.version);
    } else {
        rc = write_value(cn, put, now_wall_us,
                         until_after(now_wall_us, put->ttl_ms), version, err);
    }
    return dibs__sqlite_step_end(st, cn, rc, err);
}

/* Reads a decimal integer in its one canonical form. */
static bool read_number(const dibs_value *value, int64_t *out)
{
    char text[NUMBER_MAX + 1];

    if (value->len == 0 || value->len > NUMBER_MAX)
        return false;
    *out = strtoll(value->data, NULL, 10);
    snprintf(text, sizeof(text), "%" PRId64, *out);
    return strlen(text) == value->len &&
           memcmp(text, value->data, value->len) == 0;
}

/* Locks: cn. */
static dibs_status
add_to(dibs__sqlite_conn *cn, const char *key, const dibs_value *old,
       const head *hd, int64_t delta, int64_t *sum, dibs_error *err)
{
    dibs__put put = {.key = key};
    char text[NUMBER_MAX + 1];
    uint64_t version;
    int64_t number = 0;

    if (old->data && !read_number(old, &number))
        return dibsx_fail(err, DIBS_INVALID, "the value is not an integer");
    if (__builtin_add_overflow(number, delta, sum))
        return dibsx_fail(err, DIBS_INVALID, "the sum is out of range");
    put.len = (size_t)snprintf(text, sizeof(text), "%" PRId64, *sum);
    put.data = text;
    return write_value(cn, &put, dibsx_wall_us(), hd->until_wall_us, &version,
                       err);
}

static dibs_status
add_number(struct dibs__store *st, const char *key, int64_t delta,
           dibsx_nsec deadline, int64_t *sum, dibs_error *err)
{
    dibs__sqlite_conn *cn;
    dibs_value old = {0};
    head hd = {0};
    dibs_status rc =
        dibs__sqlite_step_begin(st, DIBS__SQLITE_VALUE, deadline, &cn, err);

    if (rc != DIBS_OK)
        return rc;
    rc = read_value(cn, key, dibsx_wall_us(), &old, &hd, err);
    if (rc == DIBS_NOTFOUND) {
        hd.until_wall_us = FOR_EVER;
        rc = DIBS_OK;
    }
    if (rc == DIBS_OK)
        rc = add_to(cn, key, &old, &hd, delta, sum, err);
    dibsx_free(old.data);
    return dibs__sqlite_step_end(st, cn, rc, err);
}

/* One that has expired goes too, and nobody hears of it. Locks: cn. */
static dibs_status drop_found(dibs__sqlite_conn *cn, const char *key,
                              const head *hd, dibs_error *err)
{
    dibs_status rc = dibs__sqlite_run(cn, err, DIBS__SQL_VALUE_DROP, "t", key);

    return rc == DIBS_OK && hd->version ? tell_change(cn, key, 0, err) : rc;
}

dibs_status dibs__sqlite_value_drop(dibs__sqlite_conn *cn, const char *key,
                                    int64_t now_wall_us, dibs_error *err)
{
    head hd;
    dibs_status rc = find_head(cn, key, now_wall_us, &hd, err);

    return rc == DIBS_OK ? drop_found(cn, key, &hd, err) : rc;
}

static dibs_status
delete_value(struct dibs__store *st, const char *key, uint64_t expected,
             dibsx_nsec deadline, dibs_error *err)
{
    dibs__sqlite_conn *cn;
    dibs_status rc =
        dibs__sqlite_step_begin(st, DIBS__SQLITE_VALUE, deadline, &cn, err);
    bool stale;
    head hd;

    if (rc != DIBS_OK)
        return rc;
    rc = find_head(cn, key, dibsx_wall_us(), &hd, err);
    if (rc != DIBS_OK)
        return dibs__sqlite_step_end(st, cn, rc, err);
    stale = hd.version != 0 && expected != DIBS_VERSION_ANY &&
            expected != hd.version;
    if (stale)
        rc = dibsx_fail(err, DIBS_STALE, "the version is %" PRIu64, hd.version);
    else
        rc = drop_found(cn, key, &hd, err);
    if (rc == DIBS_OK && hd.version == 0)
        rc = fail_absent(err);
    return dibs__sqlite_step_end(st, cn, rc, err);
}

typedef struct page_item {
    char key[DIBS_NAME_MAX + 1];
    size_t len;
    head hd;
} page_item;

typedef struct page {
    page_item items[PAGE_KEYS];
    char after[DIBS_NAME_MAX + 1]; /* the last key read, "" at first */
    size_t count;
    int64_t now_wall_us;
} page;

/* DIBS_NOTFOUND: the listing ends before this row. */
static dibs_status
page_add(page *pg, sqlite3_stmt *stmt, const char *begins, dibs_error *err)
{
    const char *key = (const char *)dibs__sql.column_text(stmt, 3);
    page_item *item = &pg->items[pg->count];

    if (!key)
        return dibsx_nomem(err, "a key");
    if (strncmp(key, begins, strlen(begins)) != 0)
        return DIBS_NOTFOUND;
    if (strlen(key) > DIBS_NAME_MAX)
        return dibsx_fail(err, DIBS_INTERNAL, "a key is too long");
    if (strcmp(key, pg->after) == 0)
        return DIBS_OK;
    memcpy(item->key, key, strlen(key) + 1);
    memcpy(pg->after, key, strlen(key) + 1);
    item->len = (size_t)dibs__sql.column_int64(stmt, 2);
    pg->count += read_head(stmt, pg->now_wall_us, &item->hd);
    return DIBS_OK;
}

/* DIBS_NOTFOUND: this page is the last. Locks: cn. */
static dibs_status
page_read(dibs__sqlite_conn *cn, page *pg, const char *begins, dibs_error *err)
{
    char from[DIBS_NAME_MAX + 1];
    sqlite3_stmt *stmt;
    dibs_status rc;

    memcpy(from, pg->after, sizeof(from));
    rc = dibs__sqlite_ask(cn, &stmt, err, DIBS__SQL_VALUE_PAGE, "t",
                          from[0] ? from : begins);
    pg->count = 0;
    pg->now_wall_us = dibsx_wall_us();
    while (rc == DIBS_OK && pg->count < PAGE_KEYS) {
        rc = dibs__sqlite_row(cn, stmt, err);
        if (rc == DIBS_OK)
            rc = page_add(pg, stmt, begins, err);
    }
    dibs__sqlite_reset(stmt);
    return rc;
}

/* False when the caller has seen enough. */
static bool page_show(const page *pg, dibs_state_fn *each, void *arg)
{
    for (size_t i = 0; i < pg->count; i++) {
        const page_item *at = &pg->items[i];
        dibs_state_item item = {
            .key = at->key,
            .len = at->len,
            .version = at->hd.version,
            .expires_ms = expires_ms(at->hd.until_wall_us, pg->now_wall_us),
        };

        if (!each(&item, arg))
            return false;
    }
    return true;
}

static dibs_status
list_values(struct dibs__store *st, const char *begins, dibsx_nsec deadline,
            dibs_state_fn *each, void *arg, dibs_error *err)
{
    dibs__sqlite_conn *cn = dibs__sqlite_conn_of(st, DIBS__SQLITE_VALUE);
    page *pg = dibsx_zalloc(sizeof(*pg));
    dibs_status rc;
    bool wanted = true;

    if (!pg)
        return dibsx_nomem(err, "a page of keys");
    do {
        rc = dibs__sqlite_enter(cn, deadline, err);
        if (rc != DIBS_OK)
            break;
        rc = page_read(cn, pg, begins, err);
        dibs__sqlite_leave(cn);
        if (rc == DIBS_OK || rc == DIBS_NOTFOUND)
            wanted = page_show(pg, each, arg);
    } while (rc == DIBS_OK && wanted);
    dibsx_free(pg);
    return rc == DIBS_NOTFOUND ? DIBS_OK : rc;
}

const dibs__value_ops dibs__sqlite_value_ops = {
    .get = get_value,
    .heads = read_heads,
    .put = put_value,
    .add = add_number,
    .del = delete_value,
    .list = list_values,
};
