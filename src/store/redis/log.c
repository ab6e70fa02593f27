/* log.c - the log steps: append, bounds, trim and logs, each a script, and read.
 *
 * A log is a stream whose IDs are positions. Any thread. */
/* SPDX-License-Identifier: MIT */
#include "base/fail.h"
#include "store/redis/lease_words.h"
#include "store/redis/scan.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Entries per command: even the longest fit into a reply, and other commands on
 * the connection do not wait for long. */
enum { PAGE = 128 };

/* Topics whose bounds one script reads. Each is two entries with their data. */
enum { LIST_PAGE = 16 };
_Static_assert((long long)PAGE *DIBS__LOG_DATA_MAX <= DIBS__REPLY_MAX / 2,
               "a page fits into a reply");

static dibs_status
read_appended(const redisReply *reply, uint64_t *position, dibs_error *err)
{
    int64_t status, number;

    if (!dibs__reply_int(dibs__reply_item(reply, 0), &status) ||
        !dibs__reply_int(dibs__reply_item(reply, 1), &number))
        return dibs__reply_odd(err);
    if (status == DIBS_LOST)
        return dibs__append_late(err);
    if (status != DIBS_OK || number <= 0)
        return dibs__reply_odd(err);
    *position = (uint64_t)number;
    return DIBS_OK;
}

static dibs_status
append_entry(struct dibs__store *st, const dibs__append *what,
             dibsx_nsec deadline, uint64_t *position, dibs_error *err)
{
    dibs__redis *rd = dibs__redis_of(st);
    char key[DIBS__KEY_MAX], from[DIBS__KEY_MAX], was[DIBS__KEY_MAX];
    char numbers[6][DIBS__NUMBER_MAX];
    redisReply *reply = NULL;
    dibs__words words;
    dibs_status rc = dibs__append_check(what, err);

    *position = 0;
    if (rc != DIBS_OK)
        return rc;
    dibs__keys_writers(what->topic, from, was);
    dibs__script_begin(&words, DIBS__SCRIPT_append, "4");
    dibs__words_add(&words, key, dibs__key_log(what->topic, key));
    dibs__words_puts(&words, DIBS__KEY_FENCE);
    dibs__words_puts(&words, from);
    dibs__words_puts(&words, was);
    dibs__words_number(&words, (int64_t)what->lane, numbers[0]);
    dibs__words_number(&words, (int64_t)what->number, numbers[1]);
    dibs__words_number(&words, DIBS__LOG_REPEAT_MS, numbers[2]);
    dibs__words_number(&words, what->keep, numbers[3]);
    dibs__words_number(&words, what->keep_bytes, numbers[4]);
    dibs__words_number(&words, what->keep_ms, numbers[5]);
    dibs__words_puts(&words, dibs__redis_publish(rd));
    dibs__words_add(&words, what->data ? what->data : "", what->len);
    rc = dibs__script_run(rd->steps, DIBS__SCRIPT_append, &words, deadline,
                          &reply, err);
    if (rc == DIBS_OK)
        rc = read_appended(reply, position, err);
    dibs__reply_free(reply);
    return rc;
}

/* The fields of an entry; false when it is not one of ours. */
static bool read_fields(const redisReply *fields, dibs__log_entry *out)
{
    const redisReply *name, *value;
    int64_t prior;

    out->store_wall_us = (int64_t)out->position;
    out->prior = DIBS__PRIOR_UNKNOWN;
    for (size_t i = 0; (value = dibs__reply_item(fields, i + 1)); i += 2) {
        name = dibs__reply_item(fields, i);
        if (!name || name->type != REDIS_REPLY_STRING ||
            value->type != REDIS_REPLY_STRING)
            return false;
        if (strcmp(name->str, "d") == 0) {
            out->data = value->str;
            out->len = (size_t)value->len;
        } else if (strcmp(name->str, "t") == 0) {
            if (!dibs__reply_int(value, &out->store_wall_us))
                return false;
        } else if (strcmp(name->str, "b") == 0) {
            if (!dibs__reply_int(value, &prior) || prior < 0)
                return false;
            out->prior = (uint64_t)prior;
        }
    }
    return out->data != NULL;
}

/* Shows an entry and moves `after` to it. An entry of another program is
 * skipped. DIBS_NOTFOUND: the caller has seen enough. */
static dibs_status
show_entry(const redisReply *item, uint64_t *after, size_t *shown,
           dibs__log_fn *each, void *arg, dibs_error *err)
{
    const redisReply *id = dibs__reply_item(item, 0);
    dibs__log_entry entry = {0};
    char *end;

    if (!id || id->type != REDIS_REPLY_STRING)
        return dibs__reply_odd(err);
    entry.position = strtoull(id->str, &end, 10);
    if (entry.position < *after || *end != '-')
        return dibs__reply_odd(err);
    *after = entry.position;
    if (strcmp(end, "-0") != 0 ||
        !read_fields(dibs__reply_item(item, 1), &entry))
        return DIBS_OK;
    ++*shown;
    return each(&entry, arg) ? DIBS_OK : DIBS_NOTFOUND;
}

/* The beginning is given without "(", which servers know since version 6.2. */
static dibs_status
read_page(struct dibs__store *st, const char *key, size_t key_len,
          uint64_t after, size_t count, dibsx_nsec deadline, redisReply **reply,
          dibs_error *err)
{
    char first[DIBS__NUMBER_MAX], number[DIBS__NUMBER_MAX];
    dibs__words words;
    dibs_status rc;

    snprintf(first, sizeof(first), "%" PRIu64, after + 1);
    words.count = 0;
    dibs__words_puts(&words, "XRANGE");
    dibs__words_add(&words, key, key_len);
    dibs__words_puts(&words, first);
    dibs__words_puts(&words, "+");
    dibs__words_puts(&words, "COUNT");
    dibs__words_number(&words, (int64_t)count, number);
    rc = dibs__command_run(dibs__redis_of(st)->steps, &words, 1, deadline,
                           reply, err);
    if (rc == DIBS_OK && (*reply)->type != REDIS_REPLY_ARRAY)
        rc = dibs__reply_odd(err);
    return rc;
}

static dibs_status
read_log(struct dibs__store *st, const char *topic, uint64_t after, size_t max,
         dibsx_nsec deadline, dibs__log_fn *each, void *arg, dibs_error *err)
{
    char key[DIBS__KEY_MAX];
    size_t key_len = dibs__key_log(topic, key);
    size_t shown = 0, found = PAGE, few = PAGE;
    dibs_status rc = DIBS_OK;

    while (rc == DIBS_OK && shown < max && found == few && after < UINT64_MAX) {
        redisReply *reply = NULL;

        few = max - shown < PAGE ? max - shown : PAGE;
        rc = read_page(st, key, key_len, after, few, deadline, &reply, err);
        found = rc == DIBS_OK ? reply->elements : 0;
        for (size_t i = 0; i < found && rc == DIBS_OK; i++)
            rc = show_entry(reply->element[i], &after, &shown, each, arg, err);
        dibs__reply_free(reply);
    }
    return rc == DIBS_NOTFOUND ? DIBS_OK : rc;
}

static dibs_status
read_bounds(const redisReply *reply, dibs__log_span *out, dibs_error *err)
{
    int64_t first, last, count, bytes;

    if (!dibs__reply_int(dibs__reply_item(reply, 0), &first) || first < 0 ||
        !dibs__reply_int(dibs__reply_item(reply, 1), &last) || last < first ||
        !dibs__reply_int(dibs__reply_item(reply, 2), &count) || count < 0 ||
        !dibs__reply_int(dibs__reply_item(reply, 3), &bytes))
        return dibs__reply_odd(err);
    *out = (dibs__log_span){.first = (uint64_t)first,
                            .last = (uint64_t)last,
                            .count = (uint64_t)count,
                            .bytes = bytes};
    return DIBS_OK;
}

static dibs_status
look_bounds(struct dibs__store *st, const char *topic, dibsx_nsec deadline,
            dibs__log_span *out, dibs_error *err)
{
    char key[DIBS__KEY_MAX];
    redisReply *reply = NULL;
    dibs__words words;
    dibs_status rc;

    *out = (dibs__log_span){0};
    dibs__script_begin(&words, DIBS__SCRIPT_log_bounds, "1");
    dibs__words_add(&words, key, dibs__key_log(topic, key));
    rc = dibs__script_run(dibs__redis_of(st)->steps, DIBS__SCRIPT_log_bounds,
                          &words, deadline, &reply, err);
    if (rc == DIBS_OK)
        rc = read_bounds(reply, out, err);
    dibs__reply_free(reply);
    return rc;
}

static dibs_status
trim_log(struct dibs__store *st, const char *topic, uint64_t through,
         dibsx_nsec deadline, uint64_t *gone, dibs_error *err)
{
    char key[DIBS__KEY_MAX], last[DIBS__NUMBER_MAX], max[DIBS__NUMBER_MAX];
    redisReply *reply = NULL;
    dibs__words words;
    int64_t count = 0;
    dibs_status rc;

    *gone = 0;
    snprintf(last, sizeof(last), "%" PRIu64, through);
    dibs__script_begin(&words, DIBS__SCRIPT_log_trim, "1");
    dibs__words_add(&words, key, dibs__key_log(topic, key));
    dibs__words_puts(&words, last);
    dibs__words_number(&words, DIBS__LOG_TRIM_MAX, max);
    rc = dibs__script_run(dibs__redis_of(st)->steps, DIBS__SCRIPT_log_trim,
                          &words, deadline, &reply, err);
    if (rc == DIBS_OK && (!dibs__reply_int(reply, &count) || count < 0))
        rc = dibs__reply_odd(err);
    if (rc == DIBS_OK)
        *gone = (uint64_t)count;
    dibs__reply_free(reply);
    return rc;
}

static bool name_of(const char *key, size_t len, const char *begins,
                    char out[DIBS_NAME_MAX + 1])
{
    (void)begins;
    return dibs__key_tail(DIBS__KEY_LOG, key, len, out);
}

static dibs_status
read_spans(dibs__redis *rd, const char *const *names, size_t count,
           dibsx_nsec deadline, redisReply **reply, dibs_error *err)
{
    char keys[LIST_PAGE][DIBS__KEY_MAX], key_count[DIBS__NUMBER_MAX];
    dibs__words words;

    snprintf(key_count, sizeof(key_count), "%zu", count);
    dibs__script_begin(&words, DIBS__SCRIPT_logs, key_count);
    for (size_t i = 0; i < count; i++)
        dibs__words_add(&words, keys[i], dibs__key_log(names[i], keys[i]));
    return dibs__script_run(rd->steps, DIBS__SCRIPT_logs, &words, deadline,
                            reply, err);
}

/* DIBS_NOTFOUND: the list ends here. A key that is no log, or has gone since the scan,
 * is passed over. */
static dibs_status
show_rows(const char *const *names, size_t count, const redisReply *reply,
          size_t *left, dibs__log_row_fn *each, void *arg, dibs_error *err)
{
    for (size_t i = 0; i < count; i++) {
        const redisReply *item = dibs__reply_item(reply, i);
        dibs__log_row row = {.span = {.first = 0}};
        dibs_status rc;

        if (!item)
            return dibs__reply_odd(err);
        if (item->type == REDIS_REPLY_STRING)
            continue;
        rc = read_bounds(item, &row.span, err);
        if (rc != DIBS_OK)
            return rc;
        if (row.span.last == 0)
            continue;
        snprintf(row.name, sizeof(row.name), "%s", names[i]);
        if (!each(&row, arg) || --*left == 0)
            return DIBS_NOTFOUND;
    }
    return DIBS_OK;
}

static dibs_status list_logs(struct dibs__store *st,
                             const dibs__log_query *query, dibsx_nsec deadline,
                             dibs__log_row_fn *each, void *arg, dibs_error *err)
{
    dibs__redis *rd = dibs__redis_of(st);
    char text[DIBS__KEY_MAX];
    const char *const texts[] = {text};
    int64_t each_ms = dibsx_wait_ms(deadline, dibsx_now());
    size_t left = query->max;
    dibs__names names;
    dibs_status rc;

    dibs__key_log(query->begins, text);
    rc = dibs__scan_paced(rd->steps, texts, 1, query->begins, name_of, deadline,
                          &names, err);
    for (size_t i = 0, few; i < names.count && rc == DIBS_OK; i += few) {
        /* In a cluster a script has keys of one slot only. */
        size_t page = rd->cluster ? 1 : LIST_PAGE;
        redisReply *reply = NULL;

        few = 1;
        if (strcmp(names.name[i], query->after) <= 0)
            continue;
        few = names.count - i < page ? names.count - i : page;
        rc = read_spans(rd, names.name + i, few,
                        dibsx_after_ms(dibsx_now(), each_ms), &reply, err);
        if (rc == DIBS_OK)
            rc = show_rows(names.name + i, few, reply, &left, each, arg, err);
        dibs__reply_free(reply);
    }
    dibs__names_fini(&names);
    return rc == DIBS_NOTFOUND ? DIBS_OK : rc;
}

const dibs__log_ops dibs__redis_log_ops = {
    .append = append_entry,
    .read = read_log,
    .bounds = look_bounds,
    .trim = trim_log,
    .logs = list_logs,
};
