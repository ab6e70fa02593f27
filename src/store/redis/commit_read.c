/* commit_read.c - the reads among the commit steps: get_many and first, a script for
 * each slot.
 *
 * Any thread. */
/* SPDX-License-Identifier: MIT */
#include "store/redis/commit_read.h"
#include "base/alloc.h"
#include "base/fail.h"
#include "store/commit_check.h"
#include "store/redis/lease_words.h"
#include "store/redis/value_reply.h"
#include <stdio.h>
#include <string.h>

enum { NAMES_MAX = DIBS__GET_MANY_MAX };
_Static_assert((int)DIBS__LOOKS_MAX <= (int)NAMES_MAX, "both fit");

/* The names of one step, and which of them one script reads. */
typedef struct reading {
    dibs__redis *rd;
    dibsx_nsec deadline;
    size_t count;
    char keys[NAMES_MAX][DIBS__KEY_MAX];
    int slots[NAMES_MAX]; /* 0 when there is no cluster; -1: it was read */
    size_t group[NAMES_MAX];
    size_t group_count;
    char key_count[DIBS__NUMBER_MAX];
    dibs__words words;
} reading;

static reading *
reading_new(struct dibs__store *st, size_t count, dibsx_nsec deadline)
{
    reading *rg = dibsx_zalloc(sizeof(*rg));

    if (!rg)
        return NULL;
    rg->rd = dibs__redis_of(st);
    rg->deadline = deadline;
    rg->count = count;
    return rg;
}

static void find_slots(reading *rg)
{
    for (size_t i = 0; i < rg->count && rg->rd->cluster; i++)
        rg->slots[i] = dibs__slot_of(rg->keys[i], strlen(rg->keys[i]));
}

/* Begins the script for the next slot; false when all were read. */
static bool begin_group(reading *rg, dibs__script script)
{
    int slot = -1;

    rg->group_count = 0;
    for (size_t i = 0; i < rg->count; i++) {
        if (rg->slots[i] < 0 || (slot >= 0 && rg->slots[i] != slot))
            continue;
        slot = rg->slots[i];
        rg->slots[i] = -1;
        rg->group[rg->group_count++] = i;
    }
    snprintf(rg->key_count, sizeof(rg->key_count), "%zu", rg->group_count);
    dibs__script_begin(&rg->words, script, rg->key_count);
    for (size_t i = 0; i < rg->group_count; i++)
        dibs__words_puts(&rg->words, rg->keys[rg->group[i]]);
    return rg->group_count > 0;
}

/* ---- get_many */

static dibs_status read_group(const reading *rg, const redisReply *reply,
                              dibs_value *out, dibs_error *err)
{
    dibs_status rc = DIBS_OK;

    for (size_t i = 0; i < rg->group_count && rc == DIBS_OK; i++) {
        const redisReply *item = dibs__reply_item(reply, i);

        if (!item)
            rc = dibs__reply_odd(err);
        else if (item->type != REDIS_REPLY_NIL)
            rc = dibs__redis_read_value(item, 0, &out[rg->group[i]], err);
    }
    return rc;
}

static dibs_status get_groups(reading *rg, dibs_value *out, dibs_error *err)
{
    dibs_status rc = DIBS_OK;

    while (rc == DIBS_OK && begin_group(rg, DIBS__SCRIPT_get_many)) {
        redisReply *reply = NULL;

        rc = dibs__script_run(rg->rd->steps, DIBS__SCRIPT_get_many, &rg->words,
                              rg->deadline, &reply, err);
        if (rc == DIBS_OK)
            rc = read_group(rg, reply, out, err);
        dibs__reply_free(reply);
    }
    return rc;
}

dibs_status
dibs__redis_get_many(struct dibs__store *st, const char *const *keys,
                     size_t count, dibsx_nsec deadline, dibs_value *out,
                     dibs_error *err)
{
    dibs_status rc = dibs__get_many_begin(keys, count, out, err);
    reading *rg;

    if (rc != DIBS_OK)
        return rc;
    rg = reading_new(st, count, deadline);
    if (!rg)
        return dibsx_nomem(err, "a request");
    for (size_t i = 0; i < count; i++)
        dibs__key_value(keys[i], rg->keys[i]);
    find_slots(rg);
    rc = get_groups(rg, out, err);
    for (size_t i = 0; i < count && rc != DIBS_OK; i++)
        dibs_value_free(&out[i]);
    dibsx_free(rg);
    return rc;
}

/* ---- first */

typedef struct looking {
    reading *rg;
    dibs__index_look *looks;
    char numbers[DIBS__LOOKS_MAX][4][DIBS__NUMBER_MAX];
    redisReply *replies[DIBS__LOOKS_MAX]; /* one for each slot */
    size_t reply_count;
    const redisReply *found[DIBS__LOOKS_MAX]; /* in these, for each look */
} looking;

static void add_looks(looking *lk)
{
    for (size_t i = 0; i < lk->rg->group_count; i++) {
        const dibs__index_look *look = &lk->looks[lk->rg->group[i]];
        char(*numbers)[DIBS__NUMBER_MAX] = lk->numbers[i];

        dibs__words_number(&lk->rg->words, look->from, numbers[0]);
        dibs__words_number(&lk->rg->words, look->up_to, numbers[1]);
        dibs__words_number(&lk->rg->words, look->skip, numbers[2]);
        dibs__words_number(&lk->rg->words, look->limit, numbers[3]);
    }
}

/* Checks the answer for one look, before any of it is shown. */
static bool is_found(const redisReply *found, dibs__index_look *look)
{
    int64_t number;
    size_t count;

    if (!dibs__reply_int(dibs__reply_item(found, 0), &look->next) ||
        look->next < -1 || found->elements % 2 != 1)
        return false;
    count = found->elements / 2;
    if (count > look->limit)
        return false;
    for (size_t i = 0; i < count; i++) {
        const redisReply *member = found->element[2 * i + 1];

        if (member->type != REDIS_REPLY_STRING || member->len == 0 ||
            strlen(member->str) != (size_t)member->len ||
            !dibs__reply_int(found->element[2 * i + 2], &number))
            return false;
    }
    return true;
}

static dibs_status look_group(looking *lk, int64_t *now_us, dibs_error *err)
{
    reading *rg = lk->rg;
    redisReply *reply = NULL;
    dibs_status rc;

    add_looks(lk);
    rc = dibs__script_run(rg->rd->steps, DIBS__SCRIPT_index_first, &rg->words,
                          rg->deadline, &reply, err);
    if (rc != DIBS_OK)
        return rc;
    lk->replies[lk->reply_count++] = reply;
    if (!dibs__reply_int(dibs__reply_item(reply, 0), now_us) || *now_us <= 0)
        return dibs__reply_odd(err);
    for (size_t i = 0; i < rg->group_count; i++) {
        size_t at = rg->group[i];

        lk->found[at] = dibs__reply_item(reply, i + 1);
        if (!is_found(lk->found[at], &lk->looks[at]))
            return dibs__reply_odd(err);
    }
    return DIBS_OK;
}

static void show_entries(const looking *lk, dibs__index_fn *each, void *arg)
{
    for (size_t i = 0; i < lk->rg->count; i++)
        for (size_t k = 1; k + 1 < lk->found[i]->elements; k += 2) {
            int64_t number = 0;

            (void)dibs__reply_int(lk->found[i]->element[k + 1], &number);
            each(i, lk->found[i]->element[k]->str, number, arg);
        }
}

static dibs_status look_all(looking *lk, int64_t *now_us, dibs__index_fn *each,
                            void *arg, dibs_error *err)
{
    dibs_status rc = DIBS_OK;

    while (rc == DIBS_OK && begin_group(lk->rg, DIBS__SCRIPT_index_first))
        rc = look_group(lk, now_us, err);
    if (rc == DIBS_OK)
        show_entries(lk, each, arg);
    for (size_t i = 0; i < lk->reply_count; i++)
        dibs__reply_free(lk->replies[i]);
    return rc;
}

dibs_status
dibs__redis_first(struct dibs__store *st, dibs__index_look *looks, size_t count,
                  dibsx_nsec deadline, int64_t *now_us, dibs__index_fn *each,
                  void *arg, dibs_error *err)
{
    dibs_status rc = dibs__first_begin(looks, count, now_us, err);
    looking *lk;

    if (rc != DIBS_OK)
        return rc;
    lk = dibsx_zalloc(sizeof(*lk));
    if (!lk)
        return dibsx_nomem(err, "a request");
    lk->rg = reading_new(st, count, deadline);
    lk->looks = looks;
    rc = lk->rg ? DIBS_OK : dibsx_nomem(err, "a request");
    if (rc == DIBS_OK) {
        for (size_t i = 0; i < count; i++)
            dibs__key_index(looks[i].index, lk->rg->keys[i]);
        find_slots(lk->rg);
        rc = look_all(lk, now_us, each, arg, err);
    }
    dibsx_free(lk->rg);
    dibsx_free(lk);
    return rc;
}
