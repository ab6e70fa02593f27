/* lease.c - the lease steps, each a script: acquire, renew, release, take.
 *
 * Any thread. Renewals have a link of their own. */
/* SPDX-License-Identifier: MIT */
#include "base/alloc.h"
#include "base/fail.h"
#include "store/redis/handle.h"
#include "store/redis/keys.h"
#include "store/redis/reply.h"
#include "store/redis/script.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Names are shown up to here, so that what is said about them is not cut. */
#define NAME_SHOWN "%.120s"

/* The scripts count in microseconds, exactly up to 2^53. This is three years. */
#define SPAN_MAX_MS INT64_C(100000000000)

enum { NUMBER_MAX = 24 };

/* Leases renewed by one script, each of which has four keys and three words:
 * few enough that others do not wait for long. */
enum { BATCH = (DIBS__WORDS_MAX - 4) / 7 };

typedef struct batch {
    dibs__words words;
    dibs__keys keys[BATCH];
    char fences[BATCH][NUMBER_MAX];
    char ttls[BATCH][NUMBER_MAX];
    char key_count[NUMBER_MAX];
} batch;

/* A number as a word of a command, in storage of the caller. */
static void add_number(dibs__words *words, int64_t number, char out[NUMBER_MAX])
{
    int len = snprintf(out, NUMBER_MAX, "%" PRId64, number);

    dibs__words_add(words, out, (size_t)len);
}

static int64_t span_ms(int64_t wanted_ms)
{
    return wanted_ms < SPAN_MAX_MS ? wanted_ms : SPAN_MAX_MS;
}

/* Begins a step on one name. */
static void begin(dibs__words *words, dibs__script script, const char *name,
                  dibs__keys *keys)
{
    dibs__keys_of(name, keys);
    dibs__script_begin(words, script, "5");
    dibs__keys_add(keys, words);
    dibs__words_add(words, DIBS__KEY_FENCE, sizeof(DIBS__KEY_FENCE) - 1);
}

/* What must be so before anything is done; else nothing is. */
static dibs_status check_ask(const dibs__ask *ask, dibs_error *err)
{
    if (ask->ttl_ms <= 0)
        return dibsx_fail(err, DIBS_INVALID, "the ttl must be positive");
    if (ask->mode == DIBS__PERMITS && ask->permits == 0)
        return dibsx_fail(err, DIBS_INVALID, "no permits were asked for");
    if (ask->mode == DIBS__PERMITS && ask->permits > ask->capacity)
        return dibsx_fail(err, DIBS_INVALID,
                          "%u permits were asked for, of %u in all",
                          ask->permits, ask->capacity);
    return DIBS_OK;
}

static void name_kind(int64_t capacity, char *out, size_t size)
{
    if (capacity == 0)
        snprintf(out, size, "lock");
    else
        snprintf(out, size, "permits of %" PRId64, capacity);
}

static dibs_status
mismatch(const dibs__ask *ask, const redisReply *reply, dibs_error *err)
{
    int64_t capacity = 0;
    char lives[32], asked[32];

    if (!dibs__reply_int(dibs__reply_item(reply, 1), &capacity))
        return dibs__reply_odd(err);
    name_kind(capacity, lives, sizeof(lives));
    name_kind(ask->mode == DIBS__PERMITS ? ask->capacity : 0, asked,
              sizeof(asked));
    return dibsx_fail(err, DIBS_MISMATCH,
                      "`" NAME_SHOWN "` is in use as %s, asked for as %s",
                      ask->name, lives, asked);
}

/* The two numbers that both OK and BUSY begin with. */
static bool
read_answer(const redisReply *reply, dibs__answer *ans, int64_t more[2])
{
    int64_t fence;

    more[0] = more[1] = 0;
    if (!dibs__reply_int(dibs__reply_item(reply, 1), &fence) || fence < 0 ||
        !dibs__reply_int(dibs__reply_item(reply, 2), &ans->left_ms) ||
        !dibs__reply_int(dibs__reply_item(reply, 3), &more[0]))
        return false;
    ans->fence = (uint64_t)fence;
    return reply->elements < 5 ||
           dibs__reply_int(dibs__reply_item(reply, 4), &more[1]);
}

/* A free name was granted: the answer is the fence alone. */
static bool
read_grant(const dibs__ask *ask, const redisReply *reply, dibs__answer *ans)
{
    int64_t fence;

    if (reply->type != REDIS_REPLY_STRING || !dibs__reply_int(reply, &fence))
        return false;
    ans->fence = (uint64_t)fence;
    ans->left_ms = span_ms(ask->ttl_ms);
    return true;
}

static dibs_status judge(const dibs__ask *ask, const redisReply *reply,
                         dibs__answer *ans, dibs_error *err)
{
    int status = dibs__reply_status(reply);
    int64_t more[2];
    char who[DIBS__WHO_MAX];

    if (status == DIBS_LOST)
        return dibsx_fail(err, DIBS_LOST,
                          "this owner has left `" NAME_SHOWN "`", ask->name);
    if (status == DIBS_MISMATCH)
        return mismatch(ask, reply, err);
    if ((status != DIBS_OK && status != DIBS_BUSY) ||
        !read_answer(reply, ans, more))
        return dibs__reply_odd(err);
    if (status == DIBS_OK) {
        ans->claim = more[0] == 1;
        return DIBS_OK;
    }
    ans->queued = more[0] == 1;
    ans->ahead = (uint32_t)more[1];
    dibs__reply_text(dibs__reply_item(reply, 5), who, sizeof(who));
    return dibsx_fail(err, DIBS_BUSY, "`" NAME_SHOWN "` is held by %s",
                      ask->name, who[0] ? who : "others");
}

/* Only what is not a plain try for a plain lock needs more to be said. */
static void add_details(dibs__words *words, const dibs__ask *ask,
                        const char *bell, char numbers[4][NUMBER_MAX])
{
    static const char *const flags[] = {"-", "q", "b", "qb"};
    bool plain = ask->mode == DIBS__EXCLUSIVE && ask->priority == 0;
    bool permits = ask->mode == DIBS__PERMITS;

    if (plain && ask->flags == 0 && strcmp(bell, "-") == 0)
        return;
    dibs__words_puts(words, bell);
    dibs__words_puts(words, flags[ask->flags & 3]);
    if (plain)
        return;
    add_number(words, ask->mode, numbers[0]);
    add_number(words, permits ? ask->permits : 1, numbers[1]);
    add_number(words, permits ? ask->capacity : 0, numbers[2]);
    add_number(words, ask->priority, numbers[3]);
}

static dibs_status
acquire(struct dibs__store *st, const dibs__ask *ask, dibsx_nsec deadline,
        dibs__answer *ans, dibs_error *err)
{
    dibs__redis *rd = dibs__redis_of(st);
    char numbers[5][NUMBER_MAX];
    redisReply *reply = NULL;
    dibs__words words;
    dibs__keys keys;
    dibs_status rc = check_ask(ask, err);

    memset(ans, 0, sizeof(*ans));
    if (rc != DIBS_OK)
        return rc;
    begin(&words, DIBS__SCRIPT_acquire, ask->name, &keys);
    dibs__words_puts(&words, ask->owner);
    add_number(&words, span_ms(ask->ttl_ms), numbers[4]);
    dibs__words_add(&words, ask->who, strnlen(ask->who, DIBS__WHO_MAX - 1));
    add_details(&words, ask, dibs__redis_bell_address(&rd->bell), numbers);
    rc = dibs__script_run(rd->steps, DIBS__SCRIPT_acquire, &words, deadline,
                          &reply, err);
    if (rc == DIBS_OK && !read_grant(ask, reply, ans))
        rc = judge(ask, reply, ans, err);
    dibs__reply_free(reply);
    return rc;
}

static bool
read_renewals(dibs__renewal *items, size_t count, const redisReply *reply)
{
    for (size_t i = 0; i < count; i++) {
        int64_t number;

        if (!dibs__reply_int(dibs__reply_item(reply, i), &number))
            return false;
        items[i].rc = number < 0 ? DIBS_LOST : DIBS_OK;
        items[i].left_ms = number < 0 ? 0 : number / 2;
        items[i].wanted = number > 0 && number % 2 == 1;
    }
    return true;
}

static dibs_status
renew_batch(dibs__redis *rd, batch *bt, dibs__renewal *items, size_t count,
            dibsx_nsec deadline, dibs_error *err)
{
    redisReply *reply = NULL;
    dibs_status rc;

    snprintf(bt->key_count, sizeof(bt->key_count), "%zu",
             1 + DIBS__KEYS * count);
    dibs__script_begin(&bt->words, DIBS__SCRIPT_renew, bt->key_count);
    dibs__words_puts(&bt->words, DIBS__KEY_FENCE);
    for (size_t i = 0; i < count; i++) {
        dibs__keys_of(items[i].name, &bt->keys[i]);
        dibs__keys_add(&bt->keys[i], &bt->words);
    }
    for (size_t i = 0; i < count; i++) {
        dibs__words_puts(&bt->words, items[i].owner);
        add_number(&bt->words, (int64_t)items[i].fence, bt->fences[i]);
        add_number(&bt->words, span_ms(items[i].ttl_ms), bt->ttls[i]);
    }
    rc = dibs__script_run(rd->renewals, DIBS__SCRIPT_renew, &bt->words,
                          deadline, &reply, err);
    if (rc == DIBS_OK && !read_renewals(items, count, reply))
        rc = dibs__reply_odd(err);
    dibs__reply_free(reply);
    return rc;
}

static dibs_status renew(struct dibs__store *st, dibs__renewal *items,
                         size_t count, dibsx_nsec deadline, dibs_error *err)
{
    dibs__redis *rd = dibs__redis_of(st);
    batch *bt = dibsx_zalloc(sizeof(*bt));
    dibs_error cause = {0};
    dibs_status rc = DIBS_OK;
    size_t done = 0;

    if (!bt)
        return dibsx_fail(err, DIBS_NOMEM, "a batch of renewals");
    while (done < count && rc == DIBS_OK) {
        size_t few = count - done < BATCH ? count - done : BATCH;

        rc = renew_batch(rd, bt, items + done, few, deadline, &cause);
        if (rc == DIBS_OK)
            done += few;
    }
    dibsx_free(bt);
    if (rc == DIBS_OK)
        return rc;
    /* Those of earlier batches were renewed. */
    return dibsx_fail_at(err, done > 0 ? DIBS_UNKNOWN : rc, cause.origin, "%s",
                         cause.message);
}

/* The short way: one key, and nothing to hand over. DIBS_BUSY: take the other. */
static dibs_status release_alone(dibs__redis *rd, const dibs__leave *leave,
                                 dibsx_nsec deadline, dibs_error *err)
{
    redisReply *reply = NULL;
    dibs__words words;
    dibs__keys keys;
    dibs_status rc;

    dibs__keys_of(leave->name, &keys);
    dibs__script_begin(&words, DIBS__SCRIPT_alone, "1");
    dibs__words_add(&words, keys.key[0], keys.len[0]);
    dibs__words_puts(&words, leave->owner);
    rc = dibs__script_run(rd->steps, DIBS__SCRIPT_alone, &words, deadline,
                          &reply, err);
    if (rc == DIBS_OK)
        rc = dibs__reply_status(reply) == DIBS_OK ? DIBS_OK : DIBS_BUSY;
    dibs__reply_free(reply);
    return rc;
}

static dibs_status release(struct dibs__store *st, const dibs__leave *leave,
                           dibsx_nsec deadline, dibs_error *err)
{
    dibs__redis *rd = dibs__redis_of(st);
    redisReply *reply = NULL;
    char keep[NUMBER_MAX];
    dibs__words words;
    dibs__keys keys;
    dibs_status rc;
    int status;

    if (leave->alone && !leave->unanswered && leave->keep_ms <= 0) {
        rc = release_alone(rd, leave, deadline, err);
        if (rc != DIBS_BUSY)
            return rc;
    }
    begin(&words, DIBS__SCRIPT_release, leave->name, &keys);
    dibs__words_puts(&words, leave->owner);
    if (leave->unanswered || leave->keep_ms > 0) {
        dibs__words_puts(&words, leave->unanswered ? "1" : "0");
        add_number(&words, span_ms(leave->keep_ms), keep);
    }
    rc = dibs__script_run(rd->steps, DIBS__SCRIPT_release, &words, deadline,
                          &reply, err);
    if (rc != DIBS_OK)
        return rc;
    status = dibs__reply_status(reply);
    dibs__reply_free(reply);
    if (status == DIBS_OK)
        return DIBS_OK;
    if (status != DIBS_LOST)
        return dibs__reply_odd(err);
    return dibsx_fail(err, DIBS_LOST,
                      "this owner did not hold `" NAME_SHOWN "`", leave->name);
}

static dibs_status
take(struct dibs__store *st, const char *name, uint64_t fence,
     dibsx_nsec deadline, uint32_t *broken, dibs_error *err)
{
    dibs__redis *rd = dibs__redis_of(st);
    redisReply *reply = NULL;
    char number[NUMBER_MAX];
    int64_t count = 0;
    dibs__words words;
    dibs__keys keys;
    dibs_status rc;
    int status;

    *broken = 0;
    begin(&words, DIBS__SCRIPT_take, name, &keys);
    add_number(&words, (int64_t)fence, number);
    rc = dibs__script_run(rd->steps, DIBS__SCRIPT_take, &words, deadline,
                          &reply, err);
    if (rc != DIBS_OK)
        return rc;
    status = dibs__reply_status(reply);
    if (!dibs__reply_int(dibs__reply_item(reply, 1), &count))
        status = -1;
    dibs__reply_free(reply);
    *broken = (uint32_t)count;
    if (status == DIBS_OK)
        return DIBS_OK;
    if (status == DIBS_NOTFOUND)
        return dibsx_fail(err, DIBS_NOTFOUND, "nobody holds it");
    if (status == DIBS_STALE)
        return dibsx_fail(err, DIBS_STALE, "it is held under another fence");
    return dibs__reply_odd(err);
}

const dibs__lease_ops dibs__redis_lease_ops = {
    .acquire = acquire,
    .renew = renew,
    .release = release,
    .inspect = dibs__redis_inspect,
    .list = dibs__redis_list,
    .take = take,
};
