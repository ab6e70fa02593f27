/* commit.c - the commit steps: commit, get_many, first.
 *
 * Any thread. The commits of a step are one function, and so one transaction. */
/* SPDX-License-Identifier: MIT */
#include "base/alloc.h"
#include "base/fail.h"
#include "store/commit_check.h"
#include "store/postgres/array.h"
#include "store/postgres/step.h"
#include <string.h>

/* The numbers of changes in sql/commit.sql. */
enum { PUT, DELETE, LEAVE, TELL, ENTER, ENTER_FROM_NOW, UNCOUNTED = 8 };

/* The arguments of value_commit. */
enum {
    BEFORE,
    AFTER,
    CHECKS,
    CHANGES,
    KEYS,
    VERSIONS,
    FREE,
    VERBS,
    NAMES,
    MEMBERS,
    NUMBERS,
    DATA,
    LISTS
};

/* Lists that are empty are NULL. */
static bool end_lists(dibs__pg_array *lists, size_t count, dibs__pg_args *args)
{
    bool whole = true;

    for (size_t i = 0; i < count; i++)
        if (lists[i].count == 0)
            dibs__pg_arg_text(args, NULL);
        else
            whole = dibs__pg_array_end(&lists[i], 1, args) && whole;
    return whole;
}

static void init_lists(dibs__pg_array *lists, size_t count)
{
    for (size_t i = 0; i < count; i++)
        dibs__pg_array_init(&lists[i]);
}

static void fini_lists(dibs__pg_array *lists, size_t count)
{
    for (size_t i = 0; i < count; i++)
        dibs__pg_array_fini(&lists[i]);
}

/* A value that a row has: as text and bytes that are borrowed. */
static dibs_status
copy_value(uint64_t version, int64_t expires_ms, const PGresult *rows, int row,
           int column, dibs_value *out, dibs_error *err)
{
    size_t len = (size_t)dibs__pq.PQgetlength(rows, row, column);

    *out = (dibs_value){0};
    if (version == 0)
        return DIBS_OK;
    out->data = dibsx_zalloc(len + 1);
    if (!out->data)
        return dibsx_nomem(err, "a value of %zu bytes", len);
    memcpy(out->data, dibs__pg_text(rows, row, column), len);
    out->len = len;
    out->version = version;
    out->expires_ms = expires_ms;
    return DIBS_OK;
}

/* ---- commit */

static int64_t clip_version(uint64_t version)
{
    return version < INT64_MAX ? (int64_t)version : INT64_MAX;
}

static int verb_of(const dibs__change *change)
{
    switch (change->verb) {
    case DIBS__CHANGE_PUT:
        return PUT;
    case DIBS__CHANGE_DELETE:
        return DELETE;
    case DIBS__CHANGE_LEAVE:
        return LEAVE;
    case DIBS__CHANGE_TELL:
        return TELL;
    case DIBS__CHANGE_ENTER:
        break;
    }
    return (change->from_now ? ENTER_FROM_NOW : ENTER) +
           (change->uncounted ? UNCOUNTED : 0);
}

static int64_t number_of(const dibs__change *change)
{
    switch (change->verb) {
    case DIBS__CHANGE_PUT:
        return change->ttl_ms > 0 ? dibs__pg_span(change->ttl_ms) : 0;
    case DIBS__CHANGE_TELL:
        return (int64_t)change->number;
    case DIBS__CHANGE_ENTER:
        return change->at;
    case DIBS__CHANGE_DELETE:
    case DIBS__CHANGE_LEAVE:
        break;
    }
    return 0;
}

/* Whether a check says that there is such a value. */
static bool is_present(const dibs__commit *item, const char *key)
{
    for (size_t i = 0; i < item->check_count; i++)
        if (item->checks[i].version > 0 &&
            strcmp(item->checks[i].key, key) == 0)
            return true;
    return false;
}

static void add_change(dibs__pg_array *lists, const dibs__change *change)
{
    bool put = change->verb == DIBS__CHANGE_PUT;
    bool entry = change->verb == DIBS__CHANGE_ENTER ||
                 change->verb == DIBS__CHANGE_LEAVE;

    dibs__pg_array_int(&lists[VERBS], verb_of(change));
    dibs__pg_array_text(&lists[NAMES], change->key);
    dibs__pg_array_text(&lists[MEMBERS], entry ? change->member : "");
    dibs__pg_array_int(&lists[NUMBERS], number_of(change));
    dibs__pg_array_bytes(&lists[DATA], put ? change->data : "",
                         put ? change->len : 0);
}

static void add_commit(dibs__pg_array *lists, const dibs__commit *item)
{
    dibs__pg_array_int(&lists[BEFORE], item->not_before_us);
    dibs__pg_array_int(&lists[AFTER], item->not_after_us);
    dibs__pg_array_int(&lists[CHECKS], (int64_t)item->check_count);
    dibs__pg_array_int(&lists[CHANGES], (int64_t)item->change_count);
    for (size_t i = 0; i < item->check_count; i++) {
        const dibs__check *check = &item->checks[i];

        dibs__pg_array_text(&lists[KEYS], check->key);
        dibs__pg_array_int(&lists[VERSIONS], clip_version(check->version));
        if (check->version == 0)
            dibs__pg_array_text(&lists[FREE], check->key);
    }
    for (size_t i = 0; i < item->change_count; i++) {
        const dibs__change *change = &item->changes[i];

        add_change(lists, change);
        if ((change->verb == DIBS__CHANGE_PUT ||
             change->verb == DIBS__CHANGE_DELETE) &&
            !is_present(item, change->key))
            dibs__pg_array_text(&lists[FREE], change->key);
    }
}

static bool read_done(dibs__pg_answer *head, dibs__commit *item)
{
    int64_t number;

    if (!dibs__pg_word(head, 1, INT64_MAX, &number))
        return false;
    item->version = (uint64_t)number;
    for (size_t i = 0; i < item->change_count; i++) {
        dibs__change *change = &item->changes[i];

        if (change->verb != DIBS__CHANGE_ENTER)
            continue;
        if (!dibs__pg_word(head, !change->uncounted, INT64_MAX, &number))
            return false;
        change->size = (uint64_t)number;
    }
    return true;
}

/* *row is that of its data. Nothing changed, so that memory that runs short here is no
 * doubt. */
static bool read_stale(dibs__pg_answer *head, const PGresult *rows, int *row,
                       dibs__commit *item)
{
    int64_t failed, version, left_ms;
    dibs_error why;

    if (!dibs__pg_word(head, 0, (int64_t)item->check_count - 1, &failed) ||
        !dibs__pg_word(head, 0, INT64_MAX, &version) ||
        !dibs__pg_word(head, -1, INT64_MAX, &left_ms) ||
        *row >= dibs__pq.PQntuples(rows))
        return false;
    item->failed = (size_t)failed;
    if (copy_value((uint64_t)version, left_ms, rows, (*row)++, 0, &item->found,
                   &why) != DIBS_OK)
        item->rc = DIBS_NOMEM;
    return true;
}

static bool read_commit(dibs__pg_answer *head, const PGresult *rows, int *row,
                        dibs__commit *item)
{
    int64_t status;

    if (!dibs__pg_word(head, 0, DIBS_LATE, &status) ||
        !dibs__pg_word(head, 1, INT64_MAX, &item->now_us))
        return false;
    item->rc = (dibs_status)status;
    if (status == DIBS_OK)
        return read_done(head, item);
    if (status == DIBS_STALE)
        return read_stale(head, rows, row, item);
    return status == DIBS_EARLY || status == DIBS_LATE;
}

static dibs_status read_commits(const PGresult *rows, dibs__commit *items,
                                size_t count, dibs_error *err)
{
    dibs__pg_answer head = {.at = ""};
    int row = 1;

    if (dibs__pq.PQntuples(rows) > 0)
        head.at = dibs__pg_text(rows, 0, 0);
    for (size_t i = 0; i < count; i++)
        if (!read_commit(&head, rows, &row, &items[i]))
            return dibs__pg_odd(err);
    return *head.at || row != dibs__pq.PQntuples(rows) ? dibs__pg_odd(err)
                                                       : DIBS_OK;
}

static dibs_status
commit_all(struct dibs__store *st, dibs__commit *items, size_t count,
           dibsx_nsec deadline, dibs_error *err)
{
    dibs__pg_args args = {.count = 0};
    dibs__pg_array lists[LISTS];
    PGresult *rows = NULL;
    dibs_status rc = dibs__commit_begin(items, count, err);

    if (rc != DIBS_OK)
        return rc;
    init_lists(lists, LISTS);
    for (size_t i = 0; i < count; i++)
        add_commit(lists, &items[i]);
    rc = end_lists(lists, LISTS, &args)
             ? dibs__pg_step(dibs__pg_of(st), dibs__pg_of(st)->steps,
                             DIBS__PG_COMMIT, &args, deadline, &rows, err)
             : dibsx_nomem(err, "commits");
    if (rc == DIBS_OK)
        rc = read_commits(rows, items, count, err);
    dibs__pq.PQclear(rows);
    fini_lists(lists, LISTS);
    return rc == DIBS_OK ? rc : dibs__commit_fail(items, count, rc);
}

/* ---- get_many and first */

static dibs_status copy_values(const PGresult *rows, size_t count,
                               dibs_value *out, dibs_error *err)
{
    dibs_status rc = DIBS_OK;

    if ((size_t)dibs__pq.PQntuples(rows) != count)
        return dibs__pg_odd(err);
    for (size_t i = 0; i < count && rc == DIBS_OK; i++)
        rc = copy_value((uint64_t)dibs__pg_int(rows, (int)i, 0),
                        dibs__pg_int(rows, (int)i, 1), rows, (int)i, 2, &out[i],
                        err);
    for (size_t i = 0; i < count && rc != DIBS_OK; i++)
        dibs_value_free(&out[i]);
    return rc;
}

static dibs_status
get_many(struct dibs__store *st, const char *const *keys, size_t count,
         dibsx_nsec deadline, dibs_value *out, dibs_error *err)
{
    dibs__pg_args args = {.count = 0};
    dibs__pg_array list;
    PGresult *rows = NULL;
    dibs_status rc = dibs__get_many_begin(keys, count, out, err);

    if (rc != DIBS_OK)
        return rc;
    init_lists(&list, 1);
    for (size_t i = 0; i < count; i++)
        dibs__pg_array_text(&list, keys[i]);
    rc = end_lists(&list, 1, &args)
             ? dibs__pg_look(dibs__pg_of(st), DIBS__PG_GET_MANY, &args,
                             deadline, &rows, err)
             : dibsx_nomem(err, "a request");
    if (rc == DIBS_OK)
        rc = copy_values(rows, count, out, err);
    dibs__pq.PQclear(rows);
    fini_lists(&list, 1);
    return rc;
}

/* The columns of a look. */
enum { PLACE, AT, NOW, MEMBER };

/* Shows the entries of one look, which begin at *row, and finds the next. */
static void show_look(const PGresult *rows, int *row, size_t number,
                      dibs__index_look *look, dibs__index_fn *each, void *arg)
{
    int count = dibs__pq.PQntuples(rows);
    uint32_t shown = 0;

    for (;
         *row < count && dibs__pg_int(rows, *row, PLACE) == (int64_t)number + 1;
         ++*row) {
        int64_t at = dibs__pg_int(rows, *row, AT);
        int64_t up_to = look->up_to == DIBS__UP_TO_NOW
                            ? dibs__pg_int(rows, *row, NOW)
                            : look->up_to;

        if (at < 0 || look->next >= 0)
            continue;
        if (shown++ < look->limit && at <= up_to)
            each(number, dibs__pg_text(rows, *row, MEMBER), at, arg);
        else
            look->next = at;
    }
}

static dibs_status
ask_first(struct dibs__store *st, const dibs__index_look *looks, size_t count,
          dibsx_nsec deadline, PGresult **rows, dibs_error *err)
{
    dibs__pg_args args = {.count = 0};
    dibs__pg_array lists[4]; /* names, from, skip, limit */
    dibs_status rc;

    init_lists(lists, 4);
    for (size_t i = 0; i < count; i++) {
        dibs__pg_array_text(&lists[0], looks[i].index);
        dibs__pg_array_int(&lists[1], looks[i].from);
        dibs__pg_array_int(&lists[2], looks[i].skip);
        dibs__pg_array_int(&lists[3], (int64_t)looks[i].limit + 1);
    }
    rc = end_lists(lists, 4, &args)
             ? dibs__pg_look(dibs__pg_of(st), DIBS__PG_FIRST, &args, deadline,
                             rows, err)
             : dibsx_nomem(err, "a request");
    fini_lists(lists, 4);
    return rc;
}

static dibs_status
find_first(struct dibs__store *st, dibs__index_look *looks, size_t count,
           dibsx_nsec deadline, int64_t *now_us, dibs__index_fn *each,
           void *arg, dibs_error *err)
{
    PGresult *rows = NULL;
    dibs_status rc = dibs__first_begin(looks, count, now_us, err);
    int row = 0;

    if (rc != DIBS_OK)
        return rc;
    rc = ask_first(st, looks, count, deadline, &rows, err);
    if (rc == DIBS_OK && dibs__pq.PQntuples(rows) == 0)
        rc = dibs__pg_odd(err);
    if (rc == DIBS_OK) {
        *now_us = dibs__pg_int(rows, 0, NOW);
        for (size_t i = 0; i < count; i++)
            show_look(rows, &row, i, &looks[i], each, arg);
    }
    dibs__pq.PQclear(rows);
    return rc;
}

const dibs__commit_ops dibs__pg_commit_ops = {
    .commit = commit_all,
    .get_many = get_many,
    .first = find_first,
};
