/* inspect.c - the reading lease steps: inspect and list.
 *
 * A list finds all names first and puts them in order, then reads some at a
 * time; the caller's function runs while nothing is held. Any thread. */
/* SPDX-License-Identifier: MIT */
#include "base/alloc.h"
#include "base/fail.h"
#include "store/redis/keys.h"
#include "store/redis/redis_store.h"
#include "store/redis/scan.h"
#include "store/redis/script.h"
#include "store/redis/wire/reply.h"
#include <stdio.h>
#include <string.h>

enum { PAGE = 64 }; /* names that one script is asked for; it may read fewer */
enum { FIELDS = 11 }; /* that inspect.lua answers for each entry */

/* The fields between the texts, in their order. */
static bool in_range(int64_t number, int64_t low, int64_t high)
{
    return number >= low && number <= high;
}

static bool read_numbers(const redisReply *list, size_t first, dibs__entry *out)
{
    enum { MODE, PERMITS, CAPACITY, PRIORITY, FENCE, TTL, AGE, LEFT, COUNT };
    int64_t n[COUNT];

    for (size_t i = 0; i < COUNT; i++)
        if (!dibs__reply_int(dibs__reply_item(list, first + 2 + i), &n[i]))
            return false;
    if (n[MODE] < DIBS__EXCLUSIVE || n[MODE] > DIBS__PERMITS ||
        !in_range(n[PERMITS], 0, UINT32_MAX) ||
        !in_range(n[CAPACITY], 0, UINT32_MAX) ||
        !in_range(n[PRIORITY], INT32_MIN, INT32_MAX) ||
        !in_range(n[FENCE], 0, INT64_MAX) ||
        !in_range(n[TTL], 0, DIBS__SPAN_MAX_MS) ||
        !in_range(n[AGE], -DIBS__SPAN_MAX_MS, DIBS__SPAN_MAX_MS) ||
        !in_range(n[LEFT], 0, DIBS__SPAN_MAX_MS))
        return false;
    out->mode = (dibs__mode)n[MODE];
    out->permits = (uint32_t)n[PERMITS];
    out->capacity = (uint32_t)n[CAPACITY];
    out->priority = (int32_t)n[PRIORITY];
    out->fence = (uint64_t)n[FENCE];
    out->ttl_ms = n[TTL];
    out->age_ms = n[AGE];
    out->left_ms = n[LEFT];
    return true;
}

static bool read_entry(const redisReply *list, size_t first, dibs__entry *out)
{
    char state[8];

    dibs__reply_text(dibs__reply_item(list, first), out->owner,
                     sizeof(out->owner));
    dibs__reply_text(dibs__reply_item(list, first + 1), state, sizeof(state));
    dibs__reply_text(dibs__reply_item(list, first + FIELDS - 1), out->who,
                     sizeof(out->who));
    out->holder = strcmp(state, "waiter") != 0;
    out->claim = strcmp(state, "claim") == 0;
    out->left = strcmp(state, "left") == 0;
    return read_numbers(list, first, out);
}

/* How many entries a list has; 0 also when the key is not a lock. */
static dibs_status read_entries(const redisReply *list, dibs__display *dp,
                                size_t *count, dibs_error *err)
{
    *count = 0;
    if (list && list->type == REDIS_REPLY_INTEGER)
        return DIBS_OK;
    if (!list || list->type != REDIS_REPLY_ARRAY || list->elements % FIELDS)
        return dibs__reply_odd(err);
    if (!dibs__display_room(dp, list->elements / FIELDS))
        return dibsx_nomem(err, "the entries of a name");
    for (size_t i = 0; i < list->elements; i += FIELDS)
        if (!read_entry(list, i, &dp->entries[(*count)++]))
            return dibs__reply_odd(err);
    return DIBS_OK;
}

/* Reads the entries of the first of `count` names; `keys` has room for those of each. */
static dibs_status
read_names(dibs__redis *rd, const char *const *names, size_t count,
           dibs__keys *keys, dibsx_nsec deadline, redisReply **reply,
           dibs_error *err)
{
    char key_count[24];
    dibs__words words;

    snprintf(key_count, sizeof(key_count), "%zu", DIBS__KEYS * count);
    dibs__script_begin(&words, DIBS__SCRIPT_inspect, key_count);
    for (size_t i = 0; i < count; i++) {
        dibs__keys_of(names[i], &keys[i]);
        dibs__keys_add(&keys[i], &words);
    }
    return dibs__script_run(rd->steps, DIBS__SCRIPT_inspect, &words, deadline,
                            reply, err);
}

static dibs_status fail_empty(const redisReply *list, dibs_error *err)
{
    if (list->type == REDIS_REPLY_INTEGER)
        return dibsx_fail(err, DIBS_INTERNAL,
                          "the key of the name holds something that is not a "
                          "lock of dibs");
    return dibsx_fail(err, DIBS_NOTFOUND, "nobody holds it or waits for it");
}

dibs_status dibs__redis_inspect(struct dibs__store *st, const char *name,
                                dibsx_nsec deadline, dibs__entries_fn *each,
                                void *arg, dibs_error *err)
{
    dibs__display dp = {.each = each, .arg = arg};
    redisReply *reply = NULL;
    const redisReply *list;
    dibs__keys keys;
    size_t count = 0;
    dibs_status rc =
        read_names(dibs__redis_of(st), &name, 1, &keys, deadline, &reply, err);

    if (rc != DIBS_OK)
        return rc;
    list = dibs__reply_item(reply, 0);
    rc = read_entries(list, &dp, &count, err);
    if (rc == DIBS_OK && count == 0)
        rc = fail_empty(list, err);
    dibs__reply_free(reply);
    if (rc == DIBS_OK)
        (void)each(name, dp.entries, count, arg);
    dibs__display_fini(&dp);
    return rc;
}

static bool name_of(const char *key, size_t len, const char *begins,
                    char out[DIBS_NAME_MAX + 1])
{
    return dibs__key_name(key, len, out) &&
           strncmp(out, begins, strlen(begins)) == 0;
}

/* *count: of the names; then how many of them it has shown. DIBS_NOTFOUND: the caller has
 * seen enough. */
static dibs_status
show_page(dibs__redis *rd, const char *const *names, size_t *count,
          dibs__keys *keys, dibsx_nsec deadline, dibs__display *dp,
          dibs_error *err)
{
    redisReply *reply = NULL;
    dibs_status rc = read_names(rd, names, *count, keys, deadline, &reply, err);

    if (rc == DIBS_OK && (reply->type != REDIS_REPLY_ARRAY ||
                          reply->elements < 1 || reply->elements > *count))
        rc = dibs__reply_odd(err);
    if (rc == DIBS_OK)
        *count = reply->elements;
    for (size_t i = 0; i < *count && rc == DIBS_OK; i++) {
        size_t entries;

        rc = read_entries(dibs__reply_item(reply, i), dp, &entries, err);
        if (rc == DIBS_OK && entries > 0 &&
            !dp->each(names[i], dp->entries, entries, dp->arg))
            rc = DIBS_NOTFOUND;
    }
    dibs__reply_free(reply);
    return rc;
}

/* All names, each page of which has a deadline of its own if `paced`; else `deadline` is
 * that of the whole. */
static dibs_status
list_names(dibs__redis *rd, const char *begins, dibsx_nsec deadline, bool paced,
           dibs__entries_fn *each, void *arg, dibs_error *err)
{
    char texts[DIBS__KEY_BEGINS][DIBS__KEY_MAX];
    const char *const text[] = {texts[0], texts[1], texts[2], texts[3]};
    int64_t each_ms = dibsx_wait_ms(deadline, dibsx_now());
    dibs__display dp = {.each = each, .arg = arg};
    /* In a cluster a script has keys of one slot only. */
    size_t page = rd->cluster ? 1 : PAGE, few;
    dibs__keys *keys = dibsx_zalloc(page * sizeof(*keys));
    dibs__names names;
    dibs_status rc;

    if (!keys)
        return dibsx_nomem(err, "the keys of names");
    dibs__keys_begin(begins, texts);
    rc = (paced ? dibs__scan_paced
                : dibs__scan)(rd->steps, text, DIBS__KEY_BEGINS, begins,
                              name_of, deadline, &names, err);
    for (size_t i = 0; i < names.count && rc == DIBS_OK; i += few) {
        dibsx_nsec until =
            paced ? dibsx_after_ms(dibsx_now(), each_ms) : deadline;

        few = names.count - i < page ? names.count - i : page;
        rc = show_page(rd, names.name + i, &few, keys, until, &dp, err);
    }
    dibsx_free(keys);
    dibs__names_fini(&names);
    dibs__display_fini(&dp);
    return rc == DIBS_NOTFOUND ? DIBS_OK : rc;
}

dibs_status dibs__redis_list(struct dibs__store *st, const char *begins,
                             dibsx_nsec deadline, dibs__entries_fn *each,
                             void *arg, dibs_error *err)
{
    return list_names(dibs__redis_of(st), begins, deadline, true, each, arg,
                      err);
}

dibs_status dibs__redis_list_within(struct dibs__store *st, const char *begins,
                                    dibsx_nsec deadline, dibs__entries_fn *each,
                                    void *arg, dibs_error *err)
{
    return list_names(dibs__redis_of(st), begins, deadline, false, each, arg,
                      err);
}
