/* acquire_all.c - the lease step that acquires several names or none, a script.
 *
 * Any thread. */
/* SPDX-License-Identifier: MIT */
#include "base/alloc.h"
#include "base/fail.h"
#include "store/redis/lease_words.h"
#include <stdio.h>
#include <string.h>

/* Each name has four keys and five words. */
_Static_assert(5 + 9 * DIBS__ALL_MAX <= DIBS__WORDS_MAX,
               "a set of names fits into a command");

/* The words of one name. */
typedef struct item {
    dibs__keys keys;
    char ttl[DIBS__NUMBER_MAX];
    char bell[DIBS__BELL_WORD];
    char priority[DIBS__NUMBER_MAX];
} item;

static void
add_ask(dibs__redis *rd, const dibs__ask *ask, item *it, dibs__words *words)
{
    dibs__step_attend(rd, ask, &it->keys);
    dibs__words_puts(words, ask->owner);
    dibs__words_number(words, dibs__step_span(ask->ttl_ms), it->ttl);
    dibs__words_add(words, ask->who, strnlen(ask->who, DIBS__WHO_MAX - 1));
    dibs__words_puts(words, dibs__step_bell(rd, ask, it->bell));
    dibs__words_number(words, ask->priority, it->priority);
}

static dibs_status
run_script(dibs__redis *rd, const dibs__ask *asks, size_t count, item *items,
           dibsx_nsec deadline, redisReply **reply, dibs_error *err)
{
    char key_count[DIBS__NUMBER_MAX];
    dibs__words words;

    snprintf(key_count, sizeof(key_count), "%zu", 1 + DIBS__KEYS * count);
    dibs__script_begin(&words, DIBS__SCRIPT_acquire_all, key_count);
    dibs__words_puts(&words, DIBS__KEY_FENCE);
    for (size_t i = 0; i < count; i++) {
        dibs__keys_of(asks[i].name, &items[i].keys);
        dibs__keys_add(&items[i].keys, &words);
    }
    for (size_t i = 0; i < count; i++)
        add_ask(rd, &asks[i], &items[i], &words);
    return dibs__script_run(rd->steps, DIBS__SCRIPT_acquire_all, &words,
                            deadline, reply, err);
}

static bool
read_number(const redisReply *reply, size_t i, int64_t max, int64_t *out)
{
    return dibs__reply_int(dibs__reply_item(reply, i), out) && *out >= 0 &&
           *out <= max;
}

static dibs_status
read_grants(const dibs__ask *asks, const redisReply *reply, size_t count,
            dibs__answer *answers, dibs_error *err)
{
    dibs_status rc = DIBS_OK;

    for (size_t i = 0; i < count && rc == DIBS_OK; i++) {
        int64_t fence, claim;

        if (!read_number(reply, 3 * i + 1, INT64_MAX, &fence) ||
            !read_number(reply, 3 * i + 2, INT64_MAX, &answers[i].left_ms) ||
            !read_number(reply, 3 * i + 3, 1, &claim))
            return dibs__reply_odd(err);
        answers[i].fence = (uint64_t)fence;
        answers[i].claim = claim == 1;
        rc = dibs__answer_grant(&asks[i], &answers[i], err);
    }
    return rc;
}

static dibs_status read_held(const dibs__ask *ask, const redisReply *reply,
                             dibs__answer *ans, dibs_error *err)
{
    int64_t fence, ahead;
    dibs_status rc;

    if (!read_number(reply, 2, INT64_MAX, &fence) ||
        !read_number(reply, 3, INT64_MAX, &ans->left_ms) ||
        !read_number(reply, 4, UINT32_MAX, &ahead))
        return dibs__reply_odd(err);
    ans->fence = (uint64_t)fence;
    ans->ahead = (uint32_t)ahead;
    rc = dibs__answer_busy(ans, err);
    return rc == DIBS_OK ? dibs__step_held(ask, dibs__reply_item(reply, 5), err)
                         : rc;
}

static dibs_status
judge_reply(const dibs__ask *asks, size_t count, const redisReply *reply,
            dibs__answer *answers, size_t *blocked, dibs_error *err)
{
    int status = dibs__reply_status(reply);
    int64_t which;

    if (status == DIBS_OK)
        return read_grants(asks, reply, count, answers, err);
    if (!read_number(reply, 1, (int64_t)count - 1, &which))
        return dibs__reply_odd(err);
    *blocked = (size_t)which;
    if (status == DIBS_BUSY)
        return read_held(&asks[which], reply, &answers[which], err);
    if (status == DIBS_LOST)
        return dibs__refuse_left(asks[which].name, err);
    if (status == DIBS_MISMATCH)
        return dibs__step_kind(&asks[which], dibs__reply_item(reply, 2), err);
    return dibs__reply_odd(err);
}

dibs_status
dibs__redis_acquire_all(struct dibs__store *st, const dibs__ask *asks,
                        size_t count, dibsx_nsec deadline,
                        dibs__answer *answers, size_t *blocked, dibs_error *err)
{
    redisReply *reply = NULL;
    item *items = NULL;
    dibs_status rc = DIBS_OK;

    memset(answers, 0, count * sizeof(*answers));
    *blocked = 0;
    for (size_t i = 0; i < count && rc == DIBS_OK; i++)
        rc = dibs__refuse_ask(&asks[i], err);
    if (rc != DIBS_OK)
        return rc;
    items = dibsx_zalloc_n(count, sizeof(*items));
    if (!items)
        return dibsx_nomem(err, "a set of names");
    rc = run_script(dibs__redis_of(st), asks, count, items, deadline, &reply,
                    err);
    if (rc == DIBS_OK) {
        rc = judge_reply(asks, count, reply, answers, blocked, err);
        if (rc == DIBS_UNKNOWN)
            dibs__step_distrust(dibs__redis_of(st)->steps, asks[0].name, NULL);
    }
    dibs__reply_free(reply);
    dibsx_free(items);
    return rc;
}
