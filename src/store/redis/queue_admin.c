/* queue_admin.c - the queue steps of an operator, each a script: set, stats, peek, purge,
 * redrive, remove, list.
 *
 * Any thread. */
/* SPDX-License-Identifier: MIT */
#include "base/fail.h"
#include "store/redis/queue_words.h"
#include "store/redis/scan.h"
#include "store/refuse.h"
#include <stdlib.h>
#include <string.h>

enum { PEEK_MAX = 1000 }; /* items that one peek shows */

static dibs_status fail_none(dibs_error *err)
{
    return dibsx_fail(err, DIBS_NOTFOUND, "there is no such queue");
}

static dibs_status
run_admin(struct dibs__store *st, dibs__script script, dibs__words *words,
          dibsx_nsec deadline, redisReply **reply, dibs_error *err)
{
    dibs_status rc = dibs__script_run(dibs__redis_of(st)->steps, script, words,
                                      deadline, reply, err);

    if (rc == DIBS_OK && dibs__reply_status(*reply) == DIBS_NOTFOUND)
        rc = fail_none(err);
    return rc;
}

/* ---- set */

static const struct {
    const char *name;
    uint32_t field;
} settings[] = {
    {"paused", DIBS__SET_PAUSED},
    {"serial", DIBS__SET_SERIAL},
    {"cap", DIBS__SET_CAP},
    {"tries", DIBS__SET_TRIES},
    {"deads", DIBS__SET_DEADS},
    {"lost_max", DIBS__SET_LOST_MAX},
    {"keep_done", DIBS__SET_KEEP_DONE},
};

enum { SETTINGS = sizeof(settings) / sizeof(settings[0]) };

static dibs_status
set_queue(struct dibs__store *st, const char *queue, uint32_t fields,
          const dibs__queue_conf *conf, dibsx_nsec deadline, dibs_error *err)
{
    const uint32_t values[SETTINGS] = {conf->paused,   conf->serial,
                                       conf->cap,      conf->tries,
                                       conf->deads,    conf->lost_max,
                                       conf->keep_done};
    char numbers[SETTINGS][DIBS__NUMBER_MAX];
    redisReply *reply = NULL;
    dibs__queue_names names;
    dibs__words words;
    dibs_status rc;

    dibs__queue_begin(&words, DIBS__SCRIPT_queue_set, queue, &names);
    for (size_t i = 0; i < SETTINGS; i++) {
        if (!(fields & settings[i].field))
            continue;
        dibs__words_puts(&words, settings[i].name);
        if (values[i] > 0)
            dibs__words_number(&words, values[i], numbers[i]);
        else
            dibs__words_puts(&words, "");
    }
    rc = run_admin(st, DIBS__SCRIPT_queue_set, &words, deadline, &reply, err);
    dibs__reply_free(reply);
    return rc;
}

/* ---- stats */

enum { STATS = 23 };

static bool read_numbers(const redisReply *reply, int64_t numbers[STATS])
{
    for (size_t i = 0; i < STATS; i++)
        if (!dibs__reply_int(dibs__reply_item(reply, 1 + i), &numbers[i]) ||
            numbers[i] < 0)
            return false;
    for (size_t i = 2; i < 7; i++)
        if (numbers[i] > UINT32_MAX)
            return false;
    return true;
}

static void fill_stats(const int64_t *at, dibs__queue_stats *out)
{
    uint64_t *const totals[] = {&out->pushed,  &out->delivered, &out->acked,
                                &out->nacked,  &out->lost,      &out->died,
                                &out->dropped, &out->purged};

    out->conf = (dibs__queue_conf){.paused = at[0] == 1,
                                   .serial = at[1] == 1,
                                   .cap = (uint32_t)at[2],
                                   .tries = (uint32_t)at[3],
                                   .deads = (uint32_t)at[4],
                                   .lost_max = (uint32_t)at[5],
                                   .keep_done = (uint32_t)at[6]};
    out->ready = (uint64_t)at[7];
    out->later = (uint64_t)at[8];
    out->out = (uint64_t)at[9];
    out->dead = (uint64_t)at[10];
    out->done = (uint64_t)at[11];
    out->lanes = (uint64_t)at[12];
    out->waiting = (uint64_t)at[13];
    out->oldest_ms = at[14];
    for (size_t i = 0; i < sizeof(totals) / sizeof(totals[0]); i++)
        *totals[i] = (uint64_t)at[15 + i];
}

static dibs_status
read_stats(struct dibs__store *st, const char *queue, dibsx_nsec deadline,
           dibs__queue_stats *out, dibs_error *err)
{
    int64_t numbers[STATS];
    redisReply *reply = NULL;
    dibs__queue_names names;
    dibs__words words;
    dibs_status rc;

    memset(out, 0, sizeof(*out));
    dibs__queue_begin(&words, DIBS__SCRIPT_queue_stats, queue, &names);
    rc = run_admin(st, DIBS__SCRIPT_queue_stats, &words, deadline, &reply, err);
    if (rc == DIBS_OK) {
        if (read_numbers(reply, numbers))
            fill_stats(numbers, out);
        else
            rc = dibs__reply_odd(err);
    }
    dibs__reply_free(reply);
    return rc;
}

/* ---- peek */

enum { VIEW = 12 }; /* words of an item */

static bool read_view(const redisReply *reply, size_t at,
                      dibs__item_place place, dibs__item_view *view)
{
    const redisReply *data = dibs__reply_item(reply, at + 11);
    int64_t numbers[5], fence, dead_us;
    char lane[DIBS__LANE_WORD];

    memset(view, 0, sizeof(*view));
    for (size_t i = 0; i < 5; i++)
        if (!dibs__reply_int(dibs__reply_item(reply, at + i), &numbers[i]))
            return false;
    if (!dibs__reply_int(dibs__reply_item(reply, at + 6), &fence) ||
        !dibs__reply_int(dibs__reply_item(reply, at + 7), &dead_us) || !data ||
        data->type != REDIS_REPLY_STRING)
        return false;
    dibs__reply_text(dibs__reply_item(reply, at + 5), lane, sizeof(lane));
    view->id = (uint64_t)numbers[0];
    view->place = place;
    view->priority = (int32_t)numbers[1];
    view->attempts = (uint32_t)numbers[2];
    view->lost = (uint32_t)numbers[3];
    view->due_ms = numbers[4];
    view->lane = strtoull(lane, NULL, 16);
    view->fence = (uint64_t)fence;
    view->ended_wall_us = dead_us;
    dibs__reply_text(dibs__reply_item(reply, at + 8), view->to,
                     sizeof(view->to));
    dibs__reply_text(dibs__reply_item(reply, at + 9), view->dedup,
                     sizeof(view->dedup));
    dibs__reply_text(dibs__reply_item(reply, at + 10), view->reason,
                     sizeof(view->reason));
    view->data = data->str;
    view->len = data->len;
    return true;
}

static const char *letter_of(dibs__item_place place)
{
    switch (place) {
    case DIBS__PLACE_LATER:
        return "l";
    case DIBS__PLACE_OUT:
        return "o";
    case DIBS__PLACE_DEAD:
        return "d";
    case DIBS__PLACE_DONE:
        return "k";
    case DIBS__PLACE_READY:
        break;
    }
    return "r";
}

static dibs_status
peek_queue(struct dibs__store *st, const char *queue, dibs__item_place place,
           size_t skip, size_t max, dibsx_nsec deadline, dibs__item_fn *each,
           void *arg, dibs_error *err)
{
    char numbers[2][DIBS__NUMBER_MAX];
    redisReply *reply = NULL;
    dibs__queue_names names;
    dibs__item_view view;
    dibs__words words;
    dibs_status rc;

    dibs__queue_begin(&words, DIBS__SCRIPT_queue_peek, queue, &names);
    dibs__words_puts(&words, letter_of(place));
    dibs__words_number(&words, (int64_t)(skip < UINT32_MAX ? skip : UINT32_MAX),
                       numbers[0]);
    dibs__words_number(&words, (int64_t)(max < PEEK_MAX ? max : PEEK_MAX),
                       numbers[1]);
    rc = run_admin(st, DIBS__SCRIPT_queue_peek, &words, deadline, &reply, err);
    for (size_t at = 1; rc == DIBS_OK && at < reply->elements; at += VIEW) {
        if (!read_view(reply, at, place, &view))
            rc = dibs__reply_odd(err);
        else if (!each(&view, arg))
            break;
    }
    dibs__reply_free(reply);
    return rc;
}

/* ---- purge, redrive, remove */

/* OK and a number, or FULL. */
static dibs_status
read_count(const redisReply *reply, size_t *count, dibs_error *err)
{
    int status = dibs__reply_status(reply);
    int64_t number;

    if (status == DIBS_FULL)
        return dibs__queue_full(reply, err);
    if (status != DIBS_OK ||
        !dibs__reply_int(dibs__reply_item(reply, 1), &number) || number < 0)
        return dibs__reply_odd(err);
    *count = (size_t)number;
    return DIBS_OK;
}

static int64_t at_most(size_t max)
{
    return max < DIBS__PURGE_MAX ? (int64_t)max : DIBS__PURGE_MAX;
}

static dibs_status
purge_queue(struct dibs__store *st, const char *queue, uint32_t places,
            size_t max, dibsx_nsec deadline, size_t *purged, dibs_error *err)
{
    static const dibs__item_place all[] = {DIBS__PLACE_READY, DIBS__PLACE_LATER,
                                           DIBS__PLACE_OUT, DIBS__PLACE_DEAD,
                                           DIBS__PLACE_DONE};
    char letters[6], number[DIBS__NUMBER_MAX];
    size_t len = 0;
    redisReply *reply = NULL;
    dibs__queue_names names;
    dibs__words words;
    dibs_status rc;

    *purged = 0;
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        if (places & all[i])
            letters[len++] = letter_of(all[i])[0];
    letters[len] = '\0';
    dibs__queue_begin(&words, DIBS__SCRIPT_queue_purge, queue, &names);
    dibs__words_puts(&words, letters);
    dibs__words_number(&words, at_most(max), number);
    rc = run_admin(st, DIBS__SCRIPT_queue_purge, &words, deadline, &reply, err);
    if (rc == DIBS_OK)
        rc = read_count(reply, purged, err);
    dibs__reply_free(reply);
    return rc;
}

static dibs_status redrive_queue(struct dibs__store *st, const char *queue,
                                 uint64_t id, size_t max, dibsx_nsec deadline,
                                 size_t *redriven, dibs_error *err)
{
    char numbers[2][DIBS__NUMBER_MAX];
    redisReply *reply = NULL;
    dibs__queue_names names;
    dibs__words words;
    dibs_status rc;

    *redriven = 0;
    dibs__queue_begin(&words, DIBS__SCRIPT_queue_redrive, queue, &names);
    dibs__words_number(&words, (int64_t)id, numbers[0]);
    dibs__words_number(&words, at_most(max), numbers[1]);
    rc = run_admin(st, DIBS__SCRIPT_queue_redrive, &words, deadline, &reply,
                   err);
    if (rc == DIBS_OK)
        rc = read_count(reply, redriven, err);
    dibs__reply_free(reply);
    return rc;
}

static dibs_status fail_busy(const redisReply *reply, dibs_error *err)
{
    int64_t numbers[3];

    for (size_t i = 0; i < 3; i++)
        if (!dibs__reply_int(dibs__reply_item(reply, 1 + i), &numbers[i]))
            return dibs__reply_odd(err);
    return dibs__refuse_removal(numbers[0], numbers[1], numbers[2], err);
}

static dibs_status remove_queue(struct dibs__store *st, const char *queue,
                                dibsx_nsec deadline, dibs_error *err)
{
    redisReply *reply = NULL;
    dibs__queue_names names;
    dibs__words words;
    dibs_status rc;

    dibs__queue_begin(&words, DIBS__SCRIPT_queue_remove, queue, &names);
    rc =
        run_admin(st, DIBS__SCRIPT_queue_remove, &words, deadline, &reply, err);
    if (rc == DIBS_OK && dibs__reply_status(reply) == DIBS_BUSY)
        rc = fail_busy(reply, err);
    dibs__reply_free(reply);
    return rc;
}

/* ---- list */

static bool name_of(const char *key, size_t len, const char *begins,
                    char out[DIBS_NAME_MAX + 1])
{
    return dibs__queue_key_name(key, len, out) &&
           strncmp(out, begins, strlen(begins)) == 0;
}

static dibs_status
list_queues(struct dibs__store *st, const char *begins, const char *after,
            size_t max, dibsx_nsec deadline, dibs__queue_fn *each, void *arg,
            dibs_error *err)
{
    char texts[DIBS__QUEUE_KEY_BEGINS][DIBS__KEY_MAX];
    const char *const text[] = {texts[0], texts[1], texts[2]};
    dibs__names names;
    size_t shown = 0;
    dibs_status rc;

    if (max > DIBS__QUEUE_LIST_MAX)
        max = DIBS__QUEUE_LIST_MAX;
    dibs__queue_keys_begin(begins, texts);
    rc = dibs__scan_paced(dibs__redis_of(st)->steps, text,
                          DIBS__QUEUE_KEY_BEGINS, begins, name_of, deadline,
                          &names, err);
    for (size_t i = 0; rc == DIBS_OK && i < names.count && shown < max; i++) {
        if (strcmp(names.name[i], after) <= 0)
            continue;
        shown++;
        if (!each(names.name[i], arg))
            break;
    }
    dibs__names_fini(&names);
    return rc;
}

const dibs__queue_admin_ops dibs__redis_queue_admin_ops = {
    .set = set_queue,
    .stats = read_stats,
    .peek = peek_queue,
    .purge = purge_queue,
    .redrive = redrive_queue,
    .remove = remove_queue,
    .list = list_queues,
};
