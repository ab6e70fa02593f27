/* log.c - the log steps: append and read.
 *
 * Any thread. */
/* SPDX-License-Identifier: MIT */
#include "base/fail.h"
#include "base/rand.h"
#include "store/postgres/step.h"

/* A page ends by the number of its entries, so that the largest of all fits one
 * answer. */
enum { PAGE_ENTRIES = 128 };

/* Only one append in many removes the entries beyond `keep`, because it must count all
 * that are kept to find them. */
static bool must_trim(uint32_t keep)
{
    uint32_t bits = 0;

    return !dibsx_random(&bits, sizeof(bits)) || bits % (keep / 8 + 1) == 0;
}

static dibs_status
append_entry(struct dibs__store *st, const char *topic, const void *data,
             size_t len, uint32_t keep, dibsx_nsec deadline, uint64_t *position,
             dibs_error *err)
{
    dibs__pg_args args = {.count = 0};
    dibs__pg_answer answer;
    int64_t number;
    dibs_status rc;

    *position = 0;
    if (len > DIBS__LOG_DATA_MAX)
        return dibsx_fail(err, DIBS_INVALID,
                          "an entry of a log has at most %d bytes",
                          DIBS__LOG_DATA_MAX);
    dibs__pg_arg_text(&args, topic);
    dibs__pg_arg_int(&args, keep);
    dibs__pg_arg_bytes(&args, data, len);
    dibs__pg_arg_flag(&args, must_trim(keep));
    rc = dibs__pg_call(dibs__pg_of(st), DIBS__PG_LOG_APPEND, &args, deadline,
                       &answer, &number, err);
    dibs__pg_answer_fini(&answer);
    if (rc == DIBS_OK)
        *position = (uint64_t)number;
    return rc;
}

/* False when the caller has seen enough. Leaves the last position in *after. */
static bool
show_page(const PGresult *rows, uint64_t *after, dibs__log_fn *each, void *arg)
{
    int count = dibs__pq.PQntuples(rows);

    for (int i = 0; i < count; i++) {
        dibs__log_entry entry = {.position = (uint64_t)dibs__pg_int(rows, i, 0),
                                 .store_wall_us = dibs__pg_int(rows, i, 1),
                                 .data = dibs__pg_text(rows, i, 2),
                                 .len =
                                     (size_t)dibs__pq.PQgetlength(rows, i, 2)};

        *after = entry.position;
        if (!each(&entry, arg))
            return false;
    }
    return true;
}

static dibs_status
read_log(struct dibs__store *st, const char *topic, uint64_t after, size_t max,
         dibsx_nsec deadline, dibs__log_fn *each, void *arg, dibs_error *err)
{
    dibs_status rc = DIBS_OK;
    size_t few = 0, found = 0;

    while (rc == DIBS_OK && max > 0 && found == few) {
        dibs__pg_args args = {.count = 0};
        PGresult *rows = NULL;

        few = max < PAGE_ENTRIES ? max : PAGE_ENTRIES;
        dibs__pg_arg_text(&args, topic);
        dibs__pg_arg_int(&args, after < INT64_MAX ? (int64_t)after : INT64_MAX);
        dibs__pg_arg_int(&args, (int64_t)few);
        rc = dibs__pg_look(dibs__pg_of(st), DIBS__PG_LOG_READ, &args, deadline,
                           &rows, err);
        found = rc == DIBS_OK ? (size_t)dibs__pq.PQntuples(rows) : 0;
        max -= found;
        if (rc == DIBS_OK && !show_page(rows, &after, each, arg))
            max = 0;
        dibs__pq.PQclear(rows);
    }
    return rc;
}

const dibs__log_ops dibs__pg_log_ops = {
    .append = append_entry,
    .read = read_log,
};
