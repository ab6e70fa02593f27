/* value.c - the value steps: get, put, add, delete, list.
 *
 * Any thread. A value that has expired counts as absent. */
/* SPDX-License-Identifier: MIT */
#include "base/alloc.h"
#include "base/fail.h"
#include "store/postgres/array.h"
#include "store/postgres/step.h"
#include <inttypes.h>
#include <string.h>

enum { PAGE_KEYS = 256 }; /* also in query.c */

/* A version as the functions take it: -1 for any. */
static int64_t version_arg(uint64_t expected)
{
    if (expected == DIBS_VERSION_ANY)
        return -1;
    return expected < INT64_MAX ? (int64_t)expected : INT64_MAX;
}

static dibs_status fail_absent(dibs_error *err)
{
    return dibsx_fail(err, DIBS_NOTFOUND, "there is no such key");
}

static dibs_status fail_stale(uint64_t version, dibs_error *err)
{
    return dibsx_fail(err, DIBS_STALE, "the version is %" PRIu64, version);
}

/* version, expires_ms and data, with a NUL beyond them. */
static dibs_status
read_value(const PGresult *rows, dibs_value *out, dibs_error *err)
{
    out->version = (uint64_t)dibs__pg_int(rows, 0, 0);
    out->expires_ms = dibs__pg_int(rows, 0, 1);
    out->len = (size_t)dibs__pq.PQgetlength(rows, 0, 2);
    out->data = dibsx_zalloc(out->len + 1);
    if (!out->data) {
        size_t len = out->len;

        memset(out, 0, sizeof(*out));
        return dibsx_nomem(err, "a value of %zu bytes", len);
    }
    memcpy(out->data, dibs__pg_text(rows, 0, 2), out->len);
    return DIBS_OK;
}

static dibs_status
get_value(struct dibs__store *st, const char *key, dibsx_nsec deadline,
          dibs_value *out, dibs_error *err)
{
    dibs__pg_args args = {.count = 0};
    PGresult *rows = NULL;
    dibs_status rc;

    memset(out, 0, sizeof(*out));
    dibs__pg_arg_text(&args, key);
    rc = dibs__pg_look(dibs__pg_of(st), DIBS__PG_VALUE_GET, &args, deadline,
                       &rows, err);
    if (rc == DIBS_OK)
        rc = dibs__pq.PQntuples(rows) == 1 ? read_value(rows, out, err)
                                           : fail_absent(err);
    dibs__pq.PQclear(rows);
    return rc;
}

static dibs_status
ask_heads(struct dibs__store *st, dibs__pg_array *list, size_t count,
          dibsx_nsec deadline, dibs__value_head *out, dibs_error *err)
{
    dibs__pg_args args = {.count = 0};
    PGresult *rows = NULL;
    dibs_status rc;

    if (!dibs__pg_array_end(list, 1, &args))
        return dibsx_nomem(err, "a list of keys");
    rc = dibs__pg_look(dibs__pg_of(st), DIBS__PG_VALUE_HEADS, &args, deadline,
                       &rows, err);
    if (rc == DIBS_OK && dibs__pq.PQntuples(rows) != (int)count)
        rc = dibs__pg_odd(err);
    for (int i = 0; rc == DIBS_OK && i < (int)count; i++) {
        out[i].version = (uint64_t)dibs__pg_int(rows, i, 0);
        out[i].expires_ms = dibs__pg_int(rows, i, 1);
        out[i].rc = DIBS_OK;
    }
    dibs__pq.PQclear(rows);
    return rc;
}

static dibs_status
read_heads(struct dibs__store *st, const char *const *keys, size_t count,
           dibsx_nsec deadline, dibs__value_head *out, dibs_error *err)
{
    dibs__pg_array list;
    dibs_status rc;

    if (count == 0)
        return DIBS_OK;
    dibs__pg_array_init(&list);
    for (size_t i = 0; i < count; i++)
        dibs__pg_array_text(&list, keys[i]);
    rc = ask_heads(st, &list, count, deadline, out, err);
    dibs__pg_array_fini(&list);
    return rc;
}

static dibs_status
put_value(struct dibs__store *st, const dibs__put *put, dibsx_nsec deadline,
          uint64_t *version, dibs_error *err)
{
    dibs__pg_args args = {.count = 0};
    dibs__pg_answer answer;
    int64_t status, number;
    dibs_status rc;

    *version = 0;
    dibs__pg_arg_text(&args, put->key);
    dibs__pg_arg_int(&args, version_arg(put->expected));
    dibs__pg_arg_int(&args, put->ttl_ms > 0 ? dibs__pg_span(put->ttl_ms) : 0);
    dibs__pg_arg_bytes(&args, put->data, put->len);
    dibs__pg_arg_int(&args, dibs__put_shows(put));
    rc = dibs__pg_call(dibs__pg_of(st), DIBS__PG_VALUE_PUT, &args, deadline,
                       &answer, &status, err);
    if (rc == DIBS_OK && !dibs__pg_word(&answer, 0, INT64_MAX, &number))
        rc = dibs__pg_odd(err);
    dibs__pg_answer_fini(&answer);
    if (rc != DIBS_OK)
        return rc;
    *version = (uint64_t)number;
    return status == DIBS_OK ? DIBS_OK : fail_stale(*version, err);
}

static dibs_status
add_number(struct dibs__store *st, const char *key, int64_t delta,
           dibsx_nsec deadline, int64_t *sum, dibs_error *err)
{
    dibs__pg_args args = {.count = 0};
    dibs__pg_answer answer;
    int64_t status;
    dibs_status rc;

    dibs__pg_arg_text(&args, key);
    dibs__pg_arg_int(&args, delta);
    rc = dibs__pg_call(dibs__pg_of(st), DIBS__PG_VALUE_ADD, &args, deadline,
                       &answer, &status, err);
    if (rc == DIBS_OK && status == DIBS_INVALID)
        rc = dibsx_fail(err, DIBS_INVALID, "%.100s", answer.at);
    else if (rc == DIBS_OK &&
             !dibs__pg_word(&answer, INT64_MIN, INT64_MAX, sum))
        rc = dibs__pg_odd(err);
    dibs__pg_answer_fini(&answer);
    return rc;
}

static dibs_status
delete_value(struct dibs__store *st, const char *key, uint64_t expected,
             dibsx_nsec deadline, dibs_error *err)
{
    dibs__pg_args args = {.count = 0};
    dibs__pg_answer answer;
    int64_t status, found = 0;
    dibs_status rc;

    dibs__pg_arg_text(&args, key);
    dibs__pg_arg_int(&args, version_arg(expected));
    rc = dibs__pg_call(dibs__pg_of(st), DIBS__PG_VALUE_DEL, &args, deadline,
                       &answer, &status, err);
    if (rc == DIBS_OK && status == DIBS_STALE &&
        !dibs__pg_word(&answer, 0, INT64_MAX, &found))
        rc = dibs__pg_odd(err);
    dibs__pg_answer_fini(&answer);
    if (rc != DIBS_OK || status == DIBS_OK)
        return rc;
    return status == DIBS_STALE ? fail_stale((uint64_t)found, err)
                                : fail_absent(err);
}

/* Shows a page and leaves its last key in `after`. DIBS_NOTFOUND: there is nothing
 * beyond, or the caller has seen enough. */
static dibs_status show_page(const PGresult *rows, const char *begins,
                             char after[DIBS_NAME_MAX + 1], dibs_state_fn *each,
                             void *arg, dibs_error *err)
{
    int count = dibs__pq.PQntuples(rows);

    for (int i = 0; i < count; i++) {
        const char *key = dibs__pg_text(rows, i, 3);
        size_t len = strlen(key);
        dibs_state_item item = {.key = key,
                                .version = (uint64_t)dibs__pg_int(rows, i, 0),
                                .expires_ms = dibs__pg_int(rows, i, 1),
                                .len = (size_t)dibs__pg_int(rows, i, 2)};

        if (len > DIBS_NAME_MAX)
            return dibs__pg_odd(err);
        if (strncmp(key, begins, strlen(begins)) != 0 || !each(&item, arg))
            return DIBS_NOTFOUND;
        memcpy(after, key, len + 1);
    }
    return count == PAGE_KEYS ? DIBS_OK : DIBS_NOTFOUND;
}

static dibs_status
list_values(struct dibs__store *st, const char *begins, dibsx_nsec deadline,
            dibs_state_fn *each, void *arg, dibs_error *err)
{
    char after[DIBS_NAME_MAX + 1] = "";
    dibs_status rc = DIBS_OK;

    while (rc == DIBS_OK) {
        dibs__pg_args args = {.count = 0};
        PGresult *rows = NULL;

        dibs__pg_arg_text(&args, after[0] ? after : begins);
        dibs__pg_arg_int(&args, after[0] ? 0 : 1);
        rc = dibs__pg_look(dibs__pg_of(st), DIBS__PG_VALUE_LIST, &args,
                           deadline, &rows, err);
        if (rc == DIBS_OK)
            rc = show_page(rows, begins, after, each, arg, err);
        dibs__pq.PQclear(rows);
    }
    return rc == DIBS_NOTFOUND ? DIBS_OK : rc;
}

const dibs__value_ops dibs__pg_value_ops = {
    .get = get_value,
    .heads = read_heads,
    .put = put_value,
    .add = add_number,
    .del = delete_value,
    .list = list_values,
};
