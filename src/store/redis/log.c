/* log.c - the log steps: append, a script, and read.
 *
 * A log is a stream whose IDs are positions. Any thread. */
/* SPDX-License-Identifier: MIT */
#include "base/fail.h"
#include "store/redis/lease_words.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Entries per command: even the longest fit into a reply, and other commands on
 * the connection do not wait for long. */
enum { PAGE = 128 };
_Static_assert((long long)PAGE *DIBS__LOG_DATA_MAX <= DIBS__REPLY_MAX / 2,
               "a page fits into a reply");

static dibs_status
append_entry(struct dibs__store *st, const char *topic, const void *data,
             size_t len, uint32_t keep, dibsx_nsec deadline, uint64_t *position,
             dibs_error *err)
{
    char key[DIBS__KEY_MAX], number[DIBS__NUMBER_MAX];
    redisReply *reply = NULL;
    int64_t answer = 0;
    dibs__words words;
    dibs_status rc;

    *position = 0;
    if (len > DIBS__LOG_DATA_MAX)
        return dibsx_fail(err, DIBS_INVALID,
                          "an entry of a log has at most %d bytes",
                          DIBS__LOG_DATA_MAX);
    dibs__script_begin(&words, DIBS__SCRIPT_append, "2");
    dibs__words_add(&words, key, dibs__key_log(topic, key));
    dibs__words_puts(&words, DIBS__KEY_FENCE);
    dibs__words_number(&words, keep, number);
    dibs__words_add(&words, data ? data : "", len);
    rc = dibs__script_run(dibs__redis_of(st)->steps, DIBS__SCRIPT_append,
                          &words, deadline, &reply, err);
    if (rc == DIBS_OK && (!dibs__reply_int(reply, &answer) || answer <= 0))
        rc = dibs__reply_odd(err);
    if (rc == DIBS_OK)
        *position = (uint64_t)answer;
    dibs__reply_free(reply);
    return rc;
}

/* The fields of an entry; false when it is not one of ours. */
static bool read_fields(const redisReply *fields, dibs__log_entry *out)
{
    const redisReply *data = dibs__reply_item(fields, 1);
    const redisReply *name = dibs__reply_item(fields, 0);
    const redisReply *time = dibs__reply_item(fields, 3);

    if (!name || name->type != REDIS_REPLY_STRING || !data ||
        data->type != REDIS_REPLY_STRING || strcmp(name->str, "d") != 0)
        return false;
    out->data = data->str;
    out->len = (size_t)data->len;
    out->store_wall_us = (int64_t)out->position;
    return !time || dibs__reply_int(time, &out->store_wall_us);
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

const dibs__log_ops dibs__redis_log_ops = {
    .append = append_entry,
    .read = read_log,
};
