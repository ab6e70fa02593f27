/* value.c - the value steps, each a script: get, heads, put, add, delete, list.
 *
 * Any thread. */
/* SPDX-License-Identifier: MIT */
#include "base/alloc.h"
#include "base/fail.h"
#include "store/redis/cluster/slot.h"
#include "store/redis/cluster/spread.h"
#include "store/redis/keys.h"
#include "store/redis/redis_store.h"
#include "store/redis/scan.h"
#include "store/redis/script.h"
#include "store/redis/value_reply.h"
#include "store/redis/wire/reply.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Servers refuse expiries beyond the range of their clock. A value with a ttl
 * above three centuries never expires. */
#define SPAN_MAX_MS INT64_C(10000000000000)

/* PATIENCE_MS: so long a server of a cluster has for a head that is read along. */
enum { NUMBER_MAX = 24, PAGE = 32, PATIENCE_MS = 250 };

/* Begins a step on one key. */
static void begin_step(dibs__words *words, dibs__script script, bool with_fence,
                       const char *name, char key[DIBS__KEY_MAX])
{
    size_t len = dibs__key_value(name, key);

    dibs__script_begin(words, script, with_fence ? "2" : "1");
    dibs__words_add(words, key, len);
    if (with_fence)
        dibs__words_puts(words, DIBS__KEY_FENCE);
}

static void
add_expected(dibs__words *words, uint64_t expected, char out[NUMBER_MAX])
{
    if (expected == DIBS_VERSION_ANY)
        snprintf(out, NUMBER_MAX, "any");
    else
        snprintf(out, NUMBER_MAX, "%" PRIu64, expected);
    dibs__words_puts(words, out);
}

static bool read_version(const redisReply *reply, uint64_t *out)
{
    int64_t version;

    if (!dibs__reply_int(reply, &version) || version < 0)
        return false;
    *out = (uint64_t)version;
    return true;
}

/* A value that exists has at least a millisecond; -1: no expiry. */
static bool read_expiry(const redisReply *reply, int64_t *expires_ms)
{
    int64_t left_ms;

    if (!dibs__reply_int(reply, &left_ms) || left_ms < -1)
        return false;
    *expires_ms = left_ms == 0 ? 1 : left_ms;
    return true;
}

static dibs_status no_value(dibs_error *err)
{
    return dibsx_fail(err, DIBS_NOTFOUND, "there is no such key");
}

static dibs_status fail_stale(uint64_t version, dibs_error *err)
{
    return dibsx_fail(err, DIBS_STALE, "the version is %" PRIu64, version);
}

static bool read_head(const redisReply *reply, size_t at, dibs_value *out)
{
    return read_version(dibs__reply_item(reply, at), &out->version) &&
           (out->version == 0 ||
            read_expiry(dibs__reply_item(reply, at + 1), &out->expires_ms));
}

dibs_status dibs__redis_read_value(const redisReply *reply, size_t at,
                                   dibs_value *out, dibs_error *err)
{
    const redisReply *data = dibs__reply_item(reply, at + 2);
    dibs_value value = {0};

    *out = value;
    if (!read_head(reply, at, &value) || !data ||
        data->type != REDIS_REPLY_STRING)
        return dibs__reply_odd(err);
    if (value.version == 0)
        return DIBS_OK;
    value.len = (size_t)data->len;
    value.data = dibsx_zalloc(value.len + 1);
    if (!value.data)
        return dibsx_nomem(err, "a value of %zu bytes", value.len);
    memcpy(value.data, data->str, value.len);
    *out = value;
    return DIBS_OK;
}

int64_t dibs__redis_value_ttl(int64_t ttl_ms)
{
    return ttl_ms > SPAN_MAX_MS ? 0 : ttl_ms;
}

static dibs_status
get_value(struct dibs__store *st, const char *key, dibsx_nsec deadline,
          dibs_value *out, dibs_error *err)
{
    redisReply *reply = NULL;
    char text[DIBS__KEY_MAX];
    dibs__words words;
    dibs_status rc;

    memset(out, 0, sizeof(*out));
    begin_step(&words, DIBS__SCRIPT_get, false, key, text);
    rc = dibs__script_run(dibs__redis_of(st)->steps, DIBS__SCRIPT_get, &words,
                          deadline, &reply, err);
    if (rc != DIBS_OK)
        return rc;
    if (reply->type == REDIS_REPLY_NIL)
        rc = no_value(err);
    else
        rc = dibs__redis_read_value(reply, 0, out, err);
    dibs__reply_free(reply);
    return rc;
}

static dibs_status
read_heads(dibs__redis *rd, const char *const *names, size_t count,
           dibsx_nsec deadline, redisReply **reply, dibs_error *err)
{
    char keys[PAGE][DIBS__KEY_MAX];
    char key_count[NUMBER_MAX];
    dibs__words words;

    snprintf(key_count, sizeof(key_count), "%zu", count);
    dibs__script_begin(&words, DIBS__SCRIPT_value_info, key_count);
    for (size_t i = 0; i < count; i++)
        dibs__words_add(&words, keys[i], dibs__key_value(names[i], keys[i]));
    return dibs__script_run(rd->steps, DIBS__SCRIPT_value_info, &words,
                            deadline, reply, err);
}

static dibs_status
read_page(dibs__redis *rd, const char *const *keys, size_t count,
          dibsx_nsec deadline, dibs__value_head *out, dibs_error *err)
{
    redisReply *reply = NULL;
    dibs_status rc = read_heads(rd, keys, count, deadline, &reply, err);

    for (size_t i = 0; i < count && rc == DIBS_OK; i++) {
        if (!read_version(dibs__reply_item(reply, 3 * i), &out[i].version))
            rc = dibs__reply_odd(err);
        else if (out[i].version == 0)
            out[i].expires_ms = -1;
        else if (!read_expiry(dibs__reply_item(reply, 3 * i + 1),
                              &out[i].expires_ms))
            rc = dibs__reply_odd(err);
    }
    for (size_t i = 0; i < count; i++)
        out[i].rc = rc;
    dibs__reply_free(reply);
    return rc;
}

/* The heads of a step in a cluster. */
typedef struct finding {
    dibs__redis *rd;
    const char *const *keys;
    dibs__value_head *out;
    dibsx_nsec deadline;
} finding;

static int slot_of_head(void *arg, size_t i)
{
    const finding *fd = arg;
    char key[DIBS__KEY_MAX];

    return dibs__slot_of(key, dibs__key_value(fd->keys[i], key));
}

/* The first is the one that the caller waits for, and has all the time. */
static dibs_status
find_head(void *arg, size_t i, dibsx_nsec until, dibs_error *err)
{
    const finding *fd = arg;

    return read_page(fd->rd, fd->keys + i, 1, i == 0 ? fd->deadline : until,
                     fd->out + i, err);
}

/* A script has one key, as its keys are those of one slot. */
static dibs_status
find_in_cluster(dibs__redis *rd, const char *const *keys, size_t count,
                dibsx_nsec deadline, dibs__value_head *out, dibs_error *err)
{
    finding fd = {.rd = rd, .keys = keys, .out = out, .deadline = deadline};
    const dibs__spread spread = {.cluster = rd->cluster,
                                 .count = count,
                                 .patience_ms = PATIENCE_MS,
                                 .deadline = deadline,
                                 .slot = slot_of_head,
                                 .call = find_head,
                                 .arg = &fd};

    return dibs__spread_run(&spread, err);
}

static dibs_status
find_heads(struct dibs__store *st, const char *const *keys, size_t count,
           dibsx_nsec deadline, dibs__value_head *out, dibs_error *err)
{
    dibs__redis *rd = dibs__redis_of(st);
    dibs_status rc = DIBS_OK;

    for (size_t i = 0; i < count; i++)
        out[i] = (dibs__value_head){.expires_ms = -1, .rc = DIBS_UNAVAIL};
    if (rd->cluster)
        return find_in_cluster(rd, keys, count, deadline, out, err);
    for (size_t i = 0, few; i < count && rc == DIBS_OK; i += few) {
        few = count - i < PAGE ? count - i : PAGE;
        rc = read_page(rd, keys + i, few, deadline, out + i, err);
    }
    return rc;
}

/* How the script tells the topic of the value. */
static void add_publish(struct dibs__store *st, dibs__words *words)
{
    dibs__words_puts(words, dibs__redis_publish(dibs__redis_of(st)));
}

static dibs_status
put_value(struct dibs__store *st, const dibs__put *put, dibsx_nsec deadline,
          uint64_t *version, dibs_error *err)
{
    char text[DIBS__KEY_MAX], expected[NUMBER_MAX], ttl[NUMBER_MAX];
    char shown[DIBS__SHOWN_TEXT];
    redisReply *reply = NULL;
    dibs__words words;
    dibs_status rc;
    int status;

    *version = 0;
    begin_step(&words, DIBS__SCRIPT_put, true, put->key, text);
    add_expected(&words, put->expected, expected);
    snprintf(ttl, sizeof(ttl), "%" PRId64, dibs__redis_value_ttl(put->ttl_ms));
    dibs__words_puts(&words, ttl);
    dibs__words_add(&words, put->data ? put->data : "", put->len);
    add_publish(st, &words);
    if (dibs__put_shows(put)) {
        snprintf(shown, sizeof(shown), " %" PRId64 " %.*s", put->ttl_ms,
                 (int)put->len, (const char *)put->data);
        dibs__words_puts(&words, shown);
    }
    rc = dibs__script_run(dibs__redis_of(st)->steps, DIBS__SCRIPT_put, &words,
                          deadline, &reply, err);
    if (rc != DIBS_OK)
        return rc;
    status = dibs__reply_status(reply);
    if (!read_version(dibs__reply_item(reply, 1), version))
        status = -1;
    dibs__reply_free(reply);
    if (status == DIBS_STALE)
        return fail_stale(*version, err);
    return status == DIBS_OK ? DIBS_OK : dibs__reply_odd(err);
}

static dibs_status
add_value(struct dibs__store *st, const char *key, int64_t delta,
          dibsx_nsec deadline, int64_t *sum, dibs_error *err)
{
    char text[DIBS__KEY_MAX], number[NUMBER_MAX], why[64];
    redisReply *reply = NULL;
    dibs__words words;
    dibs_status rc;
    int status;

    begin_step(&words, DIBS__SCRIPT_add, true, key, text);
    snprintf(number, sizeof(number), "%" PRId64, delta);
    dibs__words_puts(&words, number);
    add_publish(st, &words);
    rc = dibs__script_run(dibs__redis_of(st)->steps, DIBS__SCRIPT_add, &words,
                          deadline, &reply, err);
    if (rc != DIBS_OK)
        return rc;
    status = dibs__reply_status(reply);
    if (status == DIBS_INVALID) {
        dibs__reply_text(dibs__reply_item(reply, 1), why, sizeof(why));
        rc = dibsx_fail(err, DIBS_INVALID, "%s", why);
    } else if (status != DIBS_OK ||
               !dibs__reply_int(dibs__reply_item(reply, 1), sum))
        rc = dibs__reply_odd(err);
    dibs__reply_free(reply);
    return rc;
}

static dibs_status
delete_value(struct dibs__store *st, const char *key, uint64_t expected,
             dibsx_nsec deadline, dibs_error *err)
{
    char text[DIBS__KEY_MAX], number[NUMBER_MAX];
    redisReply *reply = NULL;
    uint64_t version = 0;
    dibs__words words;
    dibs_status rc;
    int status;

    begin_step(&words, DIBS__SCRIPT_del, false, key, text);
    add_expected(&words, expected, number);
    add_publish(st, &words);
    rc = dibs__script_run(dibs__redis_of(st)->steps, DIBS__SCRIPT_del, &words,
                          deadline, &reply, err);
    if (rc != DIBS_OK)
        return rc;
    status = dibs__reply_status(reply);
    if (!read_version(dibs__reply_item(reply, 1), &version))
        status = -1;
    dibs__reply_free(reply);
    if (status == DIBS_NOTFOUND)
        return no_value(err);
    if (status == DIBS_STALE)
        return fail_stale(version, err);
    return status == DIBS_OK ? DIBS_OK : dibs__reply_odd(err);
}

static bool name_of(const char *key, size_t len, const char *begins,
                    char out[DIBS_NAME_MAX + 1])
{
    (void)begins;
    return dibs__key_tail(DIBS__KEY_VALUE, key, len, out);
}

/* DIBS_NOTFOUND: the caller has seen enough. */
static dibs_status
show_page(const char *const *names, size_t count, const redisReply *reply,
          dibs_state_fn *each, void *arg, dibs_error *err)
{
    for (size_t i = 0; i < count; i++) {
        dibs_state_item item = {.key = names[i]};
        int64_t len;

        if (!read_version(dibs__reply_item(reply, 3 * i), &item.version))
            return dibs__reply_odd(err);
        if (item.version == 0)
            continue;
        if (!read_expiry(dibs__reply_item(reply, 3 * i + 1),
                         &item.expires_ms) ||
            !dibs__reply_int(dibs__reply_item(reply, 3 * i + 2), &len) ||
            len < 0 || len > DIBS_VALUE_MAX)
            return dibs__reply_odd(err);
        item.len = (size_t)len;
        if (!each(&item, arg))
            return DIBS_NOTFOUND;
    }
    return DIBS_OK;
}

static dibs_status
list_values(struct dibs__store *st, const char *begins, dibsx_nsec deadline,
            dibs_state_fn *each, void *arg, dibs_error *err)
{
    dibs__redis *rd = dibs__redis_of(st);
    char text[DIBS__KEY_MAX];
    const char *const texts[] = {text};
    int64_t each_ms = dibsx_wait_ms(deadline, dibsx_now());
    dibs__names names;
    dibs_status rc;

    dibs__key_value(begins, text);
    rc = dibs__scan_paced(rd->steps, texts, 1, begins, name_of, deadline,
                          &names, err);
    for (size_t i = 0, few; i < names.count && rc == DIBS_OK; i += few) {
        /* In a cluster a script has keys of one slot only. */
        size_t page = rd->cluster ? 1 : PAGE;
        redisReply *reply = NULL;

        few = names.count - i < page ? names.count - i : page;

        rc = read_heads(rd, names.name + i, few,
                        dibsx_after_ms(dibsx_now(), each_ms), &reply, err);
        if (rc == DIBS_OK)
            rc = show_page(names.name + i, few, reply, each, arg, err);
        dibs__reply_free(reply);
    }
    dibs__names_fini(&names);
    return rc == DIBS_NOTFOUND ? DIBS_OK : rc;
}

const dibs__value_ops dibs__redis_value_ops = {
    .get = get_value,
    .heads = find_heads,
    .put = put_value,
    .add = add_value,
    .del = delete_value,
    .list = list_values,
};
