/* roster.c - the roster steps that are a script each: meet and roll_call.
 *
 * In a cluster a script has one item, as its keys are those of one slot. Any
 * thread. */
/* SPDX-License-Identifier: MIT */
#include "base/fail.h"
#include "store/meet.h"
#include "store/redis/cluster/slot_keys.h"
#include "store/redis/cluster/spread.h"
#include "store/redis/redis_store.h"
#include "store/redis/roster_list.h"
#include "store/redis/script.h"
#include "store/redis/wire/reply.h"
#include "store/redis/wire/roster_keys.h"
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* A script has PAGE items at most, so that their keys and words suffice. */
enum { NUMBER_MAX = 24, NUMBERS = 6, PAGE = 8, FLAGS_ROOM = 8 };

static const char *const verbs[] = {
    [DIBS__SIT] = "sit",       [DIBS__KEEP] = "keep",
    [DIBS__ARRIVE] = "arrive", [DIBS__WITHDRAW] = "withdraw",
    [DIBS__LEAVE] = "leave",   [DIBS__COUNT] = "count",
    [DIBS__LOOK] = "look",     [DIBS__RESET] = "reset",
};

/* The texts that a command borrows. */
typedef struct item_words {
    char keys[DIBS__ROSTER_KEYS][DIBS__KEY_MAX];
    char numbers[NUMBERS][NUMBER_MAX];
    char flags[FLAGS_ROOM];
} item_words;

static void write_flags(uint32_t flags, char out[FLAGS_ROOM])
{
    size_t len = 0;

    if (flags & DIBS__MEET_FIXED)
        out[len++] = 'f';
    if (flags & DIBS__MEET_BREAK)
        out[len++] = 'b';
    if (flags & DIBS__MEET_STRICT)
        out[len++] = 's';
    if (flags & DIBS__MEET_QUIET)
        out[len++] = 'q';
    out[len] = '\0';
}

static void
add_item(dibs__words *words, const dibs__meet *item, item_words *room)
{
    const int64_t numbers[NUMBERS] = {
        (int64_t)item->fence, (int64_t)item->after, item->need,
        item->ttl_ms,         item->settle_ms,      item->by_us};

    for (size_t i = 0; i < NUMBERS; i++)
        snprintf(room->numbers[i], NUMBER_MAX, "%" PRId64, numbers[i]);
    write_flags(item->flags, room->flags);
    dibs__words_puts(words, verbs[item->verb]);
    dibs__words_puts(words, item->id);
    for (size_t i = 0; i < 4; i++)
        dibs__words_puts(words, room->numbers[i]);
    dibs__words_puts(words, room->flags);
    dibs__words_puts(words, room->numbers[4]);
    dibs__words_puts(words, room->numbers[5]);
    dibs__words_puts(words, item->who ? item->who : "");
}

static bool read_answer(const redisReply *reply, dibs__meet *item)
{
    int64_t numbers[7];

    for (size_t i = 0; i < 7; i++)
        if (!dibs__reply_int(dibs__reply_item(reply, i), &numbers[i]) ||
            numbers[i] < 0)
            return false;
    if (numbers[0] > DIBS_MISMATCH || numbers[2] > UINT32_MAX ||
        numbers[3] > UINT32_MAX || numbers[4] > UINT32_MAX)
        return false;
    item->rc = (dibs_status)numbers[0];
    item->number = (uint64_t)numbers[1];
    item->here = (uint32_t)numbers[2];
    item->live = (uint32_t)numbers[3];
    item->parties = (uint32_t)numbers[4];
    item->left_ms = numbers[5];
    item->clock_us = numbers[6];
    return dibs__meet_credible(item);
}

static dibs_status
meet_page(dibs__redis *rd, dibs__route *route, dibs__meet *items, size_t count,
          dibsx_nsec deadline, dibs_error *err)
{
    item_words room[PAGE];
    char key_count[NUMBER_MAX];
    redisReply *reply = NULL;
    dibs__words words;
    dibs_status rc;

    assert(count <= PAGE);
    snprintf(key_count, sizeof(key_count), "%zu",
             DIBS__ROSTER_KEYS * count + 1);
    dibs__script_begin(&words, DIBS__SCRIPT_meet, key_count);
    for (size_t i = 0; i < count; i++) {
        dibs__keys_of_roster(items[i].name, room[i].keys);
        for (size_t k = 0; k < DIBS__ROSTER_KEYS; k++)
            dibs__words_puts(&words, room[i].keys[k]);
    }
    dibs__words_puts(&words, DIBS__KEY_FENCE);
    dibs__words_puts(&words, dibs__redis_publish(rd));
    for (size_t i = 0; i < count; i++)
        add_item(&words, &items[i], &room[i]);
    rc = dibs__script_run(route, DIBS__SCRIPT_meet, &words, deadline, &reply,
                          err);
    for (size_t i = 0; i < count && rc == DIBS_OK; i++)
        if (!read_answer(dibs__reply_item(reply, i), &items[i]))
            rc = dibs__reply_odd(err);
    dibs__reply_free(reply);
    return rc;
}

/* The items of a step in a cluster. */
typedef struct meeting {
    dibs__redis *rd;
    dibs__route *route;
    dibs__meet *items;
} meeting;

static int slot_of_item(void *arg, size_t i)
{
    const meeting *mt = arg;
    char keys[DIBS__ROSTER_KEYS][DIBS__KEY_MAX];

    dibs__keys_of_roster(mt->items[i].name, keys);
    return dibs__slot_of(keys[0], strlen(keys[0]));
}

static dibs_status
meet_one(void *arg, size_t i, dibsx_nsec until, dibs_error *err)
{
    const meeting *mt = arg;
    dibs_status rc = meet_page(mt->rd, mt->route, &mt->items[i], 1, until, err);

    if (rc != DIBS_OK)
        mt->items[i].rc = rc;
    return rc;
}

/* A server may take half of the time, or all if nothing else waits for it. */
static dibs_status
meet_in_cluster(meeting *mt, size_t count, dibsx_nsec deadline, dibs_error *err)
{
    int64_t all_ms = dibsx_wait_ms(deadline, dibsx_now());
    const dibs__spread spread = {.cluster = mt->rd->cluster,
                                 .count = count,
                                 .patience_ms = count > 1 && all_ms > 0
                                                    ? all_ms / 2 + 1
                                                    : all_ms,
                                 .deadline = deadline,
                                 .slot = slot_of_item,
                                 .call = meet_one,
                                 .arg = mt};

    return dibs__spread_run(&spread, err);
}

static dibs_status meet_all(struct dibs__store *st, dibs__meet *items,
                            size_t count, dibsx_nsec deadline, dibs_error *err)
{
    dibs__redis *rd = dibs__redis_of(st);
    dibs__route *route = rd->renewals;
    dibs_status rc = DIBS_OK;

    for (size_t i = 0; i < count; i++)
        if (items[i].verb != DIBS__KEEP)
            route = rd->steps;
    dibs__meet_clear(items, count, DIBS_UNAVAIL);
    if (rd->cluster) {
        meeting mt = {.rd = rd, .route = route, .items = items};

        return meet_in_cluster(&mt, count, deadline, err);
    }
    for (size_t i = 0, few; i < count && rc == DIBS_OK; i += few) {
        few = count - i < PAGE ? count - i : PAGE;
        rc = meet_page(rd, route, items + i, few, deadline, err);
        for (size_t k = i; rc != DIBS_OK && k < i + few; k++)
            items[k].rc = rc;
    }
    return rc;
}

static bool read_seat(const redisReply *reply, size_t at, dibs__seat_entry *out)
{
    int64_t numbers[4];

    memset(out, 0, sizeof(*out));
    dibs__reply_text(dibs__reply_item(reply, at), out->id, sizeof(out->id));
    for (size_t i = 0; i < 4; i++)
        if (!dibs__reply_int(dibs__reply_item(reply, at + 1 + i), &numbers[i]))
            return false;
    out->fence = (uint64_t)numbers[0];
    out->arrived = numbers[1] != 0;
    out->counts = numbers[2] != 0;
    out->left_ms = numbers[3];
    dibs__reply_text(dibs__reply_item(reply, at + 5), out->who,
                     sizeof(out->who));
    return true;
}

static dibs_status call_roll(struct dibs__store *st, const char *name,
                             dibsx_nsec deadline, dibs__roster_head *out,
                             dibs__seat_fn *each, void *arg, dibs_error *err)
{
    enum { HEAD = 4, SEAT = 6 };
    char keys[DIBS__ROSTER_KEYS][DIBS__KEY_MAX];
    redisReply *reply = NULL;
    dibs__seat_entry seat;
    dibs__words words;
    dibs_status rc;

    memset(out, 0, sizeof(*out));
    dibs__keys_of_roster(name, keys);
    dibs__script_begin(&words, DIBS__SCRIPT_roll_call, "3");
    for (size_t i = 0; i < DIBS__ROSTER_KEYS; i++)
        dibs__words_puts(&words, keys[i]);
    rc = dibs__script_run(dibs__redis_of(st)->steps, DIBS__SCRIPT_roll_call,
                          &words, deadline, &reply, err);
    if (rc == DIBS_OK && reply->type == REDIS_REPLY_NIL)
        rc = dibsx_fail(err, DIBS_NOTFOUND, "there is no such roster");
    else if (rc == DIBS_OK && !dibs__roster_head_read(reply, 0, out))
        rc = dibs__reply_odd(err);
    for (size_t at = HEAD;
         rc == DIBS_OK && each && at + SEAT <= reply->elements; at += SEAT) {
        if (!read_seat(reply, at, &seat))
            rc = dibs__reply_odd(err);
        else if (!each(&seat, arg))
            break;
    }
    dibs__reply_free(reply);
    return rc;
}

const dibs__roster_ops dibs__redis_roster_ops = {
    .meet = meet_all,
    .roll_call = call_roll,
    .rosters = dibs__redis_rosters,
};
