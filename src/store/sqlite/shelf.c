/* shelf.c - a queue of a database as the rule of store/deliver.h sees it: one statement for
 * each operation.
 *
 * Runs inside a change, on the thread that entered the connection. */
/* SPDX-License-Identifier: MIT */
#include "store/sqlite/shelf.h"
#include "base/fail.h"
#include <stdio.h>
#include <string.h>

/* An answer has what a step takes, what was handed over and what it told before. */
enum { ANSWER_MAX = 8 << 20, ID_SIZE = 9 };

static dibs__sqlite_shelf *of(dibs__shelf *sh)
{
    return (dibs__sqlite_shelf *)sh;
}

static void read_text(sqlite3_stmt *stmt, int column, char *out, size_t size)
{
    const char *text = (const char *)dibs__sql.column_text(stmt, column);

    snprintf(out, size, "%s", text ? text : "");
}

static uint64_t read_number(sqlite3_stmt *stmt, int column)
{
    return (uint64_t)dibs__sql.column_int64(stmt, column);
}

void dibs__sqlite_item_read(sqlite3_stmt *stmt, dibs__item *item)
{
    memset(item, 0, sizeof(*item));
    item->id = read_number(stmt, 0);
    item->priority = (int32_t)dibs__sql.column_int64(stmt, 1);
    item->place = read_number(stmt, 2);
    item->due_wall_us = dibs__sql.column_int64(stmt, 3);
    item->lane = read_number(stmt, 4);
    item->fence = read_number(stmt, 5);
    item->told = read_number(stmt, 6);
    item->limit_us = dibs__sql.column_int64(stmt, 7);
    item->attempts = (uint32_t)read_number(stmt, 8);
    item->lost = (uint32_t)read_number(stmt, 9);
    item->tries = (uint32_t)read_number(stmt, 10);
    read_text(stmt, 11, item->to, sizeof(item->to));
    read_text(stmt, 12, item->own, sizeof(item->own));
    read_text(stmt, 13, item->dedup, sizeof(item->dedup));
    read_text(stmt, 14, item->reason, sizeof(item->reason));
    item->len = (size_t)read_number(stmt, 15);
}

/* The one row of a statement that was asked: DIBS_NOTFOUND when there is none. */
/* `stmt` is set by the time that `rc` is known. */
static dibs_status
first_row(dibs__shelf *sh, dibs_status rc, sqlite3_stmt *const *stmt)
{
    return rc == DIBS_OK ? dibs__sqlite_row(of(sh)->cn, *stmt, sh->err) : rc;
}

static dibs_status
item_row(dibs__shelf *sh, dibs_status rc, sqlite3_stmt *stmt, dibs__item *out)
{
    rc = first_row(sh, rc, &stmt);
    if (rc != DIBS_OK)
        return rc;
    dibs__sqlite_item_read(stmt, out);
    dibs__sqlite_reset(stmt);
    return DIBS_OK;
}

static dibs_status
lane_row(dibs__shelf *sh, dibs_status rc, sqlite3_stmt *stmt, dibs__lane *out)
{
    rc = first_row(sh, rc, &stmt);
    if (rc != DIBS_OK)
        return rc;
    memset(out, 0, sizeof(*out));
    out->lane = read_number(stmt, 0);
    out->number = read_number(stmt, 1);
    out->stamp = read_number(stmt, 2);
    out->until_us = dibs__sql.column_int64(stmt, 3);
    out->waits_us = dibs__sql.column_int64(stmt, 4);
    out->want = (uint32_t)read_number(stmt, 5);
    out->hands = (uint32_t)read_number(stmt, 6);
    out->limit_ms = dibs__sql.column_int64(stmt, 7);
    read_text(stmt, 8, out->as, sizeof(out->as));
    read_text(stmt, 9, out->bell, sizeof(out->bell));
    read_text(stmt, 10, out->results, sizeof(out->results));
    dibs__sqlite_reset(stmt);
    return DIBS_OK;
}

/* ---- lanes */

static dibs_status lane_find(dibs__shelf *sh, uint64_t lane, dibs__lane *out)
{
    sqlite3_stmt *stmt;
    dibs_status rc =
        dibs__sqlite_ask(of(sh)->cn, &stmt, sh->err, DIBS__SQL_LANE, "ii",
                         of(sh)->q, (int64_t)lane);

    return lane_row(sh, rc, stmt, out);
}

static dibs_status lane_put(dibs__shelf *sh, const dibs__lane *lane)
{
    return dibs__sqlite_run(of(sh)->cn, sh->err, DIBS__SQL_LANE_PUT,
                            "iiiiiiiiittt", of(sh)->q, (int64_t)lane->lane,
                            (int64_t)lane->number, (int64_t)lane->stamp,
                            lane->until_us, lane->waits_us, (int64_t)lane->want,
                            (int64_t)lane->hands, lane->limit_ms, lane->as,
                            lane->bell, lane->results);
}

static dibs_status lane_drop(dibs__shelf *sh, uint64_t lane)
{
    return dibs__sqlite_run(of(sh)->cn, sh->err, DIBS__SQL_LANE_DROP, "ii",
                            of(sh)->q, (int64_t)lane);
}

static dibs_status lane_ended(dibs__shelf *sh, uint64_t after, dibs__lane *out)
{
    sqlite3_stmt *stmt;
    dibs_status rc =
        dibs__sqlite_ask(of(sh)->cn, &stmt, sh->err, DIBS__SQL_LANE_ENDED,
                         "iiii", of(sh)->q, sh->now_us,
                         (int64_t)DIBS__LANE_OVER, (int64_t)after);

    return lane_row(sh, rc, stmt, out);
}

static dibs_status
lane_waiting(dibs__shelf *sh, const char *as, dibs__lane *out)
{
    sqlite3_stmt *stmt;
    dibs_status rc = as ? dibs__sqlite_ask(of(sh)->cn, &stmt, sh->err,
                                           DIBS__SQL_LANE_WAITING_AS, "iit",
                                           of(sh)->q, sh->now_us, as)
                        : dibs__sqlite_ask(of(sh)->cn, &stmt, sh->err,
                                           DIBS__SQL_LANE_WAITING, "ii",
                                           of(sh)->q, sh->now_us);

    return lane_row(sh, rc, stmt, out);
}

static dibs_status lanes_waiting(dibs__shelf *sh, uint64_t *count)
{
    sqlite3_stmt *stmt;
    dibs_status rc = first_row(sh,
                               dibs__sqlite_ask(of(sh)->cn, &stmt, sh->err,
                                                DIBS__SQL_LANE_COUNTS, "ii",
                                                of(sh)->q, sh->now_us),
                               &stmt);

    if (rc != DIBS_OK)
        return rc;
    *count = read_number(stmt, 1);
    dibs__sqlite_reset(stmt);
    return DIBS_OK;
}

/* ---- workers */

static dibs_status worker_lives(dibs__shelf *sh, const char *worker, bool *out)
{
    sqlite3_stmt *stmt;
    dibs_status rc = first_row(sh,
                               dibs__sqlite_ask(of(sh)->cn, &stmt, sh->err,
                                                DIBS__SQL_LANE_LIVES, "iti",
                                                of(sh)->q, worker, sh->now_us),
                               &stmt);

    if (rc != DIBS_OK)
        return rc;
    *out = read_number(stmt, 0) != 0;
    dibs__sqlite_reset(stmt);
    return DIBS_OK;
}

static dibs_status
worker_richest(dibs__shelf *sh, char out[DIBS__WORKER_MAX], uint64_t *count)
{
    sqlite3_stmt *stmt;
    dibs_status rc =
        first_row(sh,
                  dibs__sqlite_ask(of(sh)->cn, &stmt, sh->err,
                                   DIBS__SQL_ITEM_RICHEST, "i", of(sh)->q),
                  &stmt);

    if (rc != DIBS_OK)
        return rc;
    read_text(stmt, 0, out, DIBS__WORKER_MAX);
    *count = read_number(stmt, 1);
    dibs__sqlite_reset(stmt);
    return DIBS_OK;
}

/* ---- items */

static dibs_status item_find(dibs__shelf *sh, uint64_t id, dibs__item *out)
{
    sqlite3_stmt *stmt;
    dibs_status rc =
        dibs__sqlite_ask(of(sh)->cn, &stmt, sh->err, DIBS__SQL_ITEM, "ii",
                         of(sh)->q, (int64_t)id);

    return item_row(sh, rc, stmt, out);
}

#define ITEM_TYPES "iiiiiiiiiiiitttt"
#define ITEM_WORDS(sh, item)                                                   \
    of(sh)->q, (int64_t)(item)->id, (int64_t)(item)->priority,                 \
        (int64_t)(item)->place, (item)->due_wall_us, (int64_t)(item)->lane,    \
        (int64_t)(item)->fence, (int64_t)(item)->told, (item)->limit_us,       \
        (int64_t)(item)->attempts, (int64_t)(item)->lost,                      \
        (int64_t)(item)->tries, (item)->to, (item)->own, (item)->dedup,        \
        (item)->reason

static dibs_status
item_make(dibs__shelf *sh, const dibs__item *item, const void *data)
{
    return dibs__sqlite_run(of(sh)->cn, sh->err, DIBS__SQL_ITEM_NEW,
                            ITEM_TYPES "b", ITEM_WORDS(sh, item), data,
                            item->len);
}

static dibs_status item_put(dibs__shelf *sh, const dibs__item *item)
{
    return dibs__sqlite_run(of(sh)->cn, sh->err, DIBS__SQL_ITEM_PUT, ITEM_TYPES,
                            ITEM_WORDS(sh, item));
}

static dibs_status item_drop(dibs__shelf *sh, uint64_t id)
{
    return dibs__sqlite_run(of(sh)->cn, sh->err, DIBS__SQL_ITEM_DROP, "ii",
                            of(sh)->q, (int64_t)id);
}

static dibs_status item_ready(dibs__shelf *sh, const char *own, dibs__item *out)
{
    sqlite3_stmt *stmt;
    dibs_status rc =
        dibs__sqlite_ask(of(sh)->cn, &stmt, sh->err, DIBS__SQL_ITEM_READY, "it",
                         of(sh)->q, own);

    return item_row(sh, rc, stmt, out);
}

static dibs_status
item_had(dibs__shelf *sh, uint64_t lane, uint64_t after, dibs__item *out)
{
    sqlite3_stmt *stmt;
    dibs_status rc =
        dibs__sqlite_ask(of(sh)->cn, &stmt, sh->err, DIBS__SQL_ITEM_HAD, "iii",
                         of(sh)->q, (int64_t)lane, (int64_t)after);

    return item_row(sh, rc, stmt, out);
}

/* Few are unheard, and only a repeat asks for others. */
static dibs_status item_told(dibs__shelf *sh, uint64_t lane, uint64_t told,
                             uint64_t after, dibs__item *out)
{
    sqlite3_stmt *stmt;
    dibs_status rc =
        told == 0
            ? dibs__sqlite_ask(of(sh)->cn, &stmt, sh->err,
                               DIBS__SQL_ITEM_UNHEARD, "iii", of(sh)->q,
                               (int64_t)lane, (int64_t)after)
            : dibs__sqlite_ask(of(sh)->cn, &stmt, sh->err, DIBS__SQL_ITEM_TOLD,
                               "iiii", of(sh)->q, (int64_t)lane, (int64_t)told,
                               (int64_t)after);

    return item_row(sh, rc, stmt, out);
}

static dibs_status item_later(dibs__shelf *sh, uint64_t skip, dibs__item *out)
{
    sqlite3_stmt *stmt;
    dibs_status rc =
        dibs__sqlite_ask(of(sh)->cn, &stmt, sh->err, DIBS__SQL_ITEM_LATER, "ii",
                         of(sh)->q, (int64_t)skip);

    return item_row(sh, rc, stmt, out);
}

static dibs_status item_late(dibs__shelf *sh, dibs__item *out)
{
    sqlite3_stmt *stmt;
    dibs_status rc =
        dibs__sqlite_ask(of(sh)->cn, &stmt, sh->err, DIBS__SQL_ITEM_LATE, "ii",
                         of(sh)->q, sh->now_us);

    return item_row(sh, rc, stmt, out);
}

static dibs_status
item_any(dibs__shelf *sh, dibs__item_place place, dibs__item *out)
{
    sqlite3_stmt *stmt;
    dibs_status rc;

    if (place == DIBS__PLACE_LATER)
        return item_later(sh, 0, out);
    rc = dibs__sqlite_ask(of(sh)->cn, &stmt, sh->err,
                          place == DIBS__PLACE_OUT ? DIBS__SQL_ITEM_OUT
                                                   : DIBS__SQL_ITEM_FIRST,
                          "i", of(sh)->q);
    return item_row(sh, rc, stmt, out);
}

static dibs_status is_held_up(dibs__shelf *sh, bool *out)
{
    sqlite3_stmt *stmt;
    dibs_status rc =
        first_row(sh,
                  dibs__sqlite_ask(of(sh)->cn, &stmt, sh->err,
                                   DIBS__SQL_ITEM_HELD_UP, "i", of(sh)->q),
                  &stmt);

    if (rc != DIBS_OK)
        return rc;
    *out = read_number(stmt, 0) != 0;
    dibs__sqlite_reset(stmt);
    return DIBS_OK;
}

/* ---- dedup ids */

static dibs_status dedup_find(dibs__shelf *sh, const char *id, dibs__dedup *out)
{
    sqlite3_stmt *stmt;
    dibs_status rc =
        first_row(sh,
                  dibs__sqlite_ask(of(sh)->cn, &stmt, sh->err, DIBS__SQL_DEDUP,
                                   "it", of(sh)->q, id),
                  &stmt);

    if (rc != DIBS_OK)
        return rc;
    out->id = read_number(stmt, 0);
    out->alive = read_number(stmt, 1) != 0;
    out->until_wall_us = dibs__sql.column_int64(stmt, 2);
    dibs__sqlite_reset(stmt);
    return DIBS_OK;
}

static dibs_status
dedup_put(dibs__shelf *sh, const char *id, const dibs__dedup *at)
{
    return dibs__sqlite_run(of(sh)->cn, sh->err, DIBS__SQL_DEDUP_PUT, "itiii",
                            of(sh)->q, id, (int64_t)at->id, (int64_t)at->alive,
                            at->until_wall_us);
}

static dibs_status dedup_drop(dibs__shelf *sh, const char *id)
{
    return dibs__sqlite_run(of(sh)->cn, sh->err, DIBS__SQL_DEDUP_DROP, "it",
                            of(sh)->q, id);
}

/* ---- dead letters */

static dibs_status
dead_put(dibs__shelf *sh, const dibs__item *item, const char *reason)
{
    dibs_status rc =
        dibs__sqlite_run(of(sh)->cn, sh->err, DIBS__SQL_DEAD_PUT, "iiiit",
                         (int64_t)item->id, sh->now_wall_us,
                         (int64_t)item->attempts, (int64_t)item->lost, reason);

    return rc == DIBS_OK ? item_drop(sh, item->id) : rc;
}

static dibs_status dead_drop(dibs__shelf *sh)
{
    return dibs__sqlite_run(of(sh)->cn, sh->err, DIBS__SQL_DEAD_DROP, "i",
                            of(sh)->q);
}

static dibs_status
dead_redrive(dibs__shelf *sh, uint64_t id, uint64_t as_id, dibs__item *out)
{
    dibs__sqlite_conn *cn = of(sh)->cn;
    sqlite3_stmt *stmt;
    int64_t position;
    dibs_status rc =
        id ? dibs__sqlite_ask(cn, &stmt, sh->err, DIBS__SQL_DEAD_FIND, "ii",
                              of(sh)->q, (int64_t)id)
           : dibs__sqlite_ask(cn, &stmt, sh->err, DIBS__SQL_DEAD_FIRST, "i",
                              of(sh)->q);

    rc = first_row(sh, rc, &stmt);
    if (rc != DIBS_OK)
        return rc;
    position = dibs__sql.column_int64(stmt, 0);
    dibs__sqlite_reset(stmt);
    if (position == 0)
        return DIBS_NOTFOUND;
    rc = dibs__sqlite_run(cn, sh->err, DIBS__SQL_DEAD_BACK, "ii", position,
                          (int64_t)as_id);
    if (rc == DIBS_OK)
        rc =
            dibs__sqlite_run(cn, sh->err, DIBS__SQL_DEAD_FORGET, "i", position);
    return rc == DIBS_OK ? item_find(sh, as_id, out) : rc;
}

/* ---- records of done items */

static dibs_status done_put(dibs__shelf *sh, const dibs__item *item,
                            const char *result, size_t len)
{
    return dibs__sqlite_run(of(sh)->cn, sh->err, DIBS__SQL_DONE_PUT,
                            "iiiiiittb", of(sh)->q, (int64_t)item->id,
                            sh->now_wall_us, (int64_t)item->priority,
                            (int64_t)item->attempts, (int64_t)item->lost,
                            item->to, item->dedup, result, len);
}

static dibs_status done_drop(dibs__shelf *sh)
{
    return dibs__sqlite_run(of(sh)->cn, sh->err, DIBS__SQL_DONE_DROP, "i",
                            of(sh)->q);
}

/* ---- lanes that push: of each item the id and whether it is a duplicate */

static dibs_status
pusher_find(dibs__shelf *sh, uint64_t lane, dibs__pusher *out)
{
    sqlite3_stmt *stmt;
    const unsigned char *bytes;
    size_t len;
    dibs_status rc =
        first_row(sh,
                  dibs__sqlite_ask(of(sh)->cn, &stmt, sh->err, DIBS__SQL_PUSHER,
                                   "ii", of(sh)->q, (int64_t)lane),
                  &stmt);

    if (rc != DIBS_OK)
        return rc;
    memset(out, 0, sizeof(*out));
    out->lane = lane;
    out->number = read_number(stmt, 0);
    out->rc = (dibs_status)dibs__sql.column_int64(stmt, 1);
    bytes = dibs__sql.column_blob(stmt, 2);
    len = (size_t)dibs__sql.column_bytes(stmt, 2);
    out->count = len / ID_SIZE;
    if (out->count > DIBS__QUEUE_BATCH || len % ID_SIZE || (len && !bytes))
        rc = dibsx_fail(sh->err, DIBS_INTERNAL,
                        "the answer to a push has impossible contents");
    for (size_t i = 0; rc == DIBS_OK && i < out->count; i++) {
        memcpy(&out->ids[i], bytes + i * ID_SIZE, sizeof(out->ids[i]));
        out->duplicate[i] = bytes[i * ID_SIZE + sizeof(out->ids[i])] != 0;
    }
    dibs__sqlite_reset(stmt);
    return rc;
}

static dibs_status pusher_put(dibs__shelf *sh, const dibs__pusher *pusher)
{
    unsigned char bytes[DIBS__QUEUE_BATCH * ID_SIZE];
    int64_t until_us = sh->now_us + 2 * (int64_t)DIBS__PUSH_KEPT_MS * 1000;

    for (size_t i = 0; i < pusher->count; i++) {
        memcpy(bytes + i * ID_SIZE, &pusher->ids[i], sizeof(pusher->ids[i]));
        bytes[i * ID_SIZE + sizeof(pusher->ids[i])] = pusher->duplicate[i];
    }
    return dibs__sqlite_run(of(sh)->cn, sh->err, DIBS__SQL_PUSHER_PUT, "iiiibi",
                            of(sh)->q, (int64_t)pusher->lane,
                            (int64_t)pusher->number, (int64_t)pusher->rc, bytes,
                            pusher->count * ID_SIZE, until_us);
}

/* ---- answers */

static void
ring(dibs__shelf *sh, const dibs__lane *lane, const dibs__item *item)
{
    dibs__notice notice = {.kind = DIBS__NOTICE_ITEMS,
                           .fence = item ? item->fence : 0};

    dibs__lane_address(lane->lane, notice.owner);
    (void)dibs__sqlite_notices_put(&of(sh)->cn->notices, lane->bell, &notice);
}

static dibs_status answer(dibs__shelf *sh, const dibs__item *item)
{
    dibs__delivery delivery = {.token = {.id = item->id,
                                         .fence = item->fence,
                                         .attempt = item->attempts},
                               .lost = item->lost,
                               .priority = item->priority};
    dibsx_buf *out = &of(sh)->answer;
    sqlite3_stmt *stmt;
    dibs_status rc =
        first_row(sh,
                  dibs__sqlite_ask(of(sh)->cn, &stmt, sh->err,
                                   DIBS__SQL_ITEM_DATA, "i", (int64_t)item->id),
                  &stmt);

    if (rc == DIBS_NOTFOUND)
        return dibsx_fail(sh->err, DIBS_INTERNAL, "an item has no data");
    if (rc != DIBS_OK)
        return rc;
    if (item->limit_us > 0)
        delivery.limit_ms = item->limit_us > sh->now_us
                                ? (item->limit_us - sh->now_us + 999) / 1000
                                : 1;
    delivery.len = (size_t)dibs__sql.column_bytes(stmt, 0);
    dibsx_buf_add(out, &delivery, sizeof(delivery));
    if (delivery.len > 0)
        dibsx_buf_add(out, dibs__sql.column_blob(stmt, 0), delivery.len);
    dibs__sqlite_reset(stmt);
    return dibsx_buf_ok(out) ? DIBS_OK
                             : dibsx_nomem(sh->err, "the items of an answer");
}

static const dibs__shelf_ops shelf_ops = {
    .lane_find = lane_find,
    .lane_put = lane_put,
    .lane_drop = lane_drop,
    .lane_ended = lane_ended,
    .lane_waiting = lane_waiting,
    .lanes_waiting = lanes_waiting,
    .worker_lives = worker_lives,
    .worker_richest = worker_richest,
    .item_find = item_find,
    .item_make = item_make,
    .item_put = item_put,
    .item_drop = item_drop,
    .item_ready = item_ready,
    .item_had = item_had,
    .item_told = item_told,
    .item_later = item_later,
    .item_late = item_late,
    .item_any = item_any,
    .is_held_up = is_held_up,
    .dedup_find = dedup_find,
    .dedup_put = dedup_put,
    .dedup_drop = dedup_drop,
    .dead_put = dead_put,
    .dead_drop = dead_drop,
    .dead_redrive = dead_redrive,
    .done_put = done_put,
    .done_drop = done_drop,
    .pusher_find = pusher_find,
    .pusher_put = pusher_put,
    .ring = ring,
    .answer = answer,
};

/* ---- the head */

static void read_head(sqlite3_stmt *stmt, dibs__queue_head *head)
{
    uint64_t *counts[] = {&head->items,   &head->dead,      &head->done,
                          &head->pushed,  &head->delivered, &head->acked,
                          &head->nacked,  &head->lost,      &head->died,
                          &head->dropped, &head->purged};

    head->conf.paused = read_number(stmt, 1) != 0;
    head->conf.serial = read_number(stmt, 2) != 0;
    head->conf.cap = (uint32_t)read_number(stmt, 3);
    head->conf.tries = (uint32_t)read_number(stmt, 4);
    head->conf.deads = (uint32_t)read_number(stmt, 5);
    head->conf.lost_max = (uint32_t)read_number(stmt, 6);
    head->conf.keep_done = (uint32_t)read_number(stmt, 7);
    for (int i = 0; i < 11; i++)
        *counts[i] = read_number(stmt, 8 + i);
}

/* A number of its own, which no queue before had. */
static dibs_status make_queue(dibs__sqlite_shelf *shelf, const char *queue)
{
    shelf->q = (int64_t)dibs__item_draw(&shelf->base);
    return dibs__sqlite_run(shelf->cn, shelf->base.err, DIBS__SQL_QUEUE_NEW,
                            "it", shelf->q, queue);
}

dibs_status
dibs__sqlite_shelf_init(dibs__sqlite_shelf *shelf, dibs__sqlite_conn *cn,
                        const char *queue, bool make, dibs_error *err)
{
    sqlite3_stmt *stmt;
    dibs_status rc;

    memset(shelf, 0, sizeof(*shelf));
    shelf->base.ops = &shelf_ops;
    shelf->base.now_us = dibsx_now() / 1000;
    shelf->base.now_wall_us = dibsx_wall_us();
    shelf->base.watermark = cn->watermark;
    shelf->base.bell = "";
    shelf->base.err = err;
    shelf->cn = cn;
    dibsx_buf_init(&shelf->answer, ANSWER_MAX);
    rc =
        first_row(&shelf->base,
                  dibs__sqlite_ask(cn, &stmt, err, DIBS__SQL_QUEUE, "t", queue),
                  &stmt);
    if (rc == DIBS_NOTFOUND)
        return make ? make_queue(shelf, queue) : DIBS_OK;
    if (rc != DIBS_OK)
        return rc;
    shelf->q = dibs__sql.column_int64(stmt, 0);
    read_head(stmt, &shelf->base.head);
    dibs__sqlite_reset(stmt);
    return DIBS_OK;
}

void dibs__sqlite_shelf_fini(dibs__sqlite_shelf *shelf)
{
    dibsx_buf_fini(&shelf->answer);
}

dibs_status dibs__sqlite_shelf_save(dibs__sqlite_shelf *shelf)
{
    const dibs__queue_head *head = &shelf->base.head;
    const dibs__queue_conf *conf = &head->conf;

    shelf->cn->watermark = shelf->base.watermark;
    if (!head->changed || shelf->q == 0)
        return DIBS_OK;
    return dibs__sqlite_run(shelf->cn, shelf->base.err, DIBS__SQL_QUEUE_PUT,
                            "iiiiiiiiiiiiiiiiiii", shelf->q,
                            (int64_t)conf->paused, (int64_t)conf->serial,
                            (int64_t)conf->cap, (int64_t)conf->tries,
                            (int64_t)conf->deads, (int64_t)conf->lost_max,
                            (int64_t)conf->keep_done, (int64_t)head->items,
                            (int64_t)head->dead, (int64_t)head->done,
                            (int64_t)head->pushed, (int64_t)head->delivered,
                            (int64_t)head->acked, (int64_t)head->nacked,
                            (int64_t)head->lost, (int64_t)head->died,
                            (int64_t)head->dropped, (int64_t)head->purged);
}
