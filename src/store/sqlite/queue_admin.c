/* queue_admin.c - the queue steps of an operator: set, stats, peek, purge, redrive,
 * remove, list. Any thread. */
/* SPDX-License-Identifier: MIT */
#include "base/fail.h"
#include "store/refuse.h"
#include "store/sqlite/shelf.h"
#include <stdio.h>
#include <string.h>

/* Items that one peek copies, and the bytes of these. */
enum { PEEK_MAX = 1000, PEEK_BYTES = 16 << 20 };

static dibs_status fail_none(dibs_error *err)
{
    return dibsx_fail(err, DIBS_NOTFOUND, "there is no such queue");
}

/* Enters the queue for a change; makes it if asked to. Needs an end_change() also after a
 * failure, unless *cn is NULL. */
static dibs_status
begin_change(struct dibs__store *st, const char *queue, bool make,
             dibsx_nsec deadline, dibs__sqlite_shelf *shelf, dibs_error *err)
{
    dibs_status rc = dibs__sqlite_step_begin(st, DIBS__SQLITE_VALUE, deadline,
                                             &shelf->cn, err);

    if (rc != DIBS_OK) {
        shelf->cn = NULL;
        return rc;
    }
    rc = dibs__sqlite_shelf_init(shelf, shelf->cn, queue, make, err);
    return rc == DIBS_OK && shelf->q == 0 ? fail_none(err) : rc;
}

static dibs_status end_change(struct dibs__store *st, dibs__sqlite_shelf *shelf,
                              dibs_status rc, dibs_error *err)
{
    if (!shelf->cn)
        return rc;
    if (rc < DIBS_UNAVAIL) {
        dibs_status saved = dibs__sqlite_shelf_save(shelf);

        rc = saved == DIBS_OK ? rc : saved;
    }
    rc = dibs__sqlite_step_end(st, shelf->cn, rc, err);
    dibs__sqlite_shelf_fini(shelf);
    return rc;
}

static dibs_status set_once(struct dibs__store *st, const char *queue,
                            uint32_t fields, const dibs__queue_conf *conf,
                            dibsx_nsec deadline, bool *more, dibs_error *err)
{
    dibs__sqlite_shelf shelf;
    dibs_status rc = begin_change(st, queue, true, deadline, &shelf, err);

    *more = false;
    if (rc == DIBS_OK)
        rc = dibs__deliver_set(&shelf.base, fields, conf, more);
    return end_change(st, &shelf, rc, err);
}

/* Records that are too many go in pieces, each in a transaction, between which others have
 * their turn and may change what the first piece has set. If the time is over meanwhile, the
 * settings may not be all there. */
static dibs_status
set_queue(struct dibs__store *st, const char *queue, uint32_t fields,
          const dibs__queue_conf *conf, dibsx_nsec deadline, dibs_error *err)
{
    dibs_error failure = {0};
    bool more = false;
    dibs_status rc = set_once(st, queue, fields, conf, deadline, &more, err);

    while (rc == DIBS_OK && more) {
        rc = set_once(st, queue, DIBS__SET_KEEP_DONE, conf, deadline, &more,
                      &failure);
        if (rc != DIBS_OK)
            return dibsx_fail_at(err, DIBS_UNKNOWN, failure.origin,
                                 "not all records of done items were dropped: "
                                 "%s; repeat the call",
                                 failure.message);
    }
    return rc;
}

/* The numbers of two statements. Locks: cn. */
static dibs_status
count_all(dibs__sqlite_shelf *shelf, dibs__queue_stats *out, dibs_error *err)
{
    const dibs__queue_head *head = &shelf->base.head;
    sqlite3_stmt *stmt;
    int64_t first;
    dibs_status rc = dibs__sqlite_ask(shelf->cn, &stmt, err,
                                      DIBS__SQL_ITEM_COUNTS, "i", shelf->q);

    if (rc == DIBS_OK)
        rc = dibs__sqlite_row(shelf->cn, stmt, err);
    if (rc != DIBS_OK)
        return rc;
    out->later = (uint64_t)dibs__sql.column_int64(stmt, 0);
    out->out = (uint64_t)dibs__sql.column_int64(stmt, 1);
    first = dibs__sql.column_int64(stmt, 2);
    dibs__sqlite_reset(stmt);
    out->ready = head->items - out->later - out->out;
    if (first > 0 && first < shelf->base.now_wall_us)
        out->oldest_ms = (shelf->base.now_wall_us - first) / 1000;
    rc = dibs__sqlite_ask(shelf->cn, &stmt, err, DIBS__SQL_LANE_COUNTS, "ii",
                          shelf->q, shelf->base.now_us);
    if (rc == DIBS_OK)
        rc = dibs__sqlite_row(shelf->cn, stmt, err);
    if (rc != DIBS_OK)
        return rc;
    out->lanes = (uint64_t)dibs__sql.column_int64(stmt, 0);
    out->waiting = (uint64_t)dibs__sql.column_int64(stmt, 1);
    dibs__sqlite_reset(stmt);
    return DIBS_OK;
}

/* It tidies first, so that what it counts is what a reserve would find. */
static dibs_status
read_stats(struct dibs__store *st, const char *queue, dibsx_nsec deadline,
           dibs__queue_stats *out, dibs_error *err)
{
    dibs__sqlite_shelf shelf;
    const dibs__queue_head *head = &shelf.base.head;
    dibs_status rc = begin_change(st, queue, false, deadline, &shelf, err);

    memset(out, 0, sizeof(*out));
    if (rc == DIBS_OK)
        rc = dibs__deliver_tidy(&shelf.base);
    if (rc == DIBS_OK) {
        out->conf = dibs__deliver_conf(head);
        out->dead = head->dead;
        out->done = head->done < head->conf.keep_done ? head->done
                                                      : head->conf.keep_done;
        out->beyond = head->done - out->done;
        out->pushed = head->pushed;
        out->delivered = head->delivered;
        out->acked = head->acked;
        out->nacked = head->nacked;
        out->lost = head->lost;
        out->died = head->died;
        out->dropped = head->dropped;
        out->purged = head->purged;
        rc = count_all(&shelf, out, err);
    }
    rc = end_change(st, &shelf, rc, err);
    if (rc != DIBS_OK)
        memset(out, 0, sizeof(*out));
    return rc;
}

static void read_text(sqlite3_stmt *stmt, int column, char *out, size_t size)
{
    const char *text = (const char *)dibs__sql.column_text(stmt, column);

    snprintf(out, size, "%s", text ? text : "");
}

/* Locks: cn. */
static void add_view(dibsx_buf *views, sqlite3_stmt *stmt, int column,
                     dibs__item_view *view)
{
    view->len = (size_t)dibs__sql.column_bytes(stmt, column);
    dibsx_buf_add(views, view, sizeof(*view));
    if (view->len > 0)
        dibsx_buf_add(views, dibs__sql.column_blob(stmt, column), view->len);
}

static void add_item(dibsx_buf *views, sqlite3_stmt *stmt,
                     dibs__item_place place, int64_t now_wall_us)
{
    dibs__item_view view = {.place = place};
    dibs__item item;

    dibs__sqlite_item_read(stmt, &item);
    view.id = item.id;
    view.priority = item.priority;
    view.attempts = item.attempts;
    view.lost = item.lost;
    view.lane = item.lane;
    view.fence = item.fence;
    if (item.due_wall_us > now_wall_us)
        view.due_ms = (item.due_wall_us - now_wall_us + 999) / 1000;
    memcpy(view.to, item.to, sizeof(view.to));
    memcpy(view.dedup, item.dedup, sizeof(view.dedup));
    memcpy(view.reason, item.reason, sizeof(view.reason));
    add_view(views, stmt, 16, &view);
}

/* A dead letter, or a record of a done item. */
static void
add_ended(dibsx_buf *views, sqlite3_stmt *stmt, dibs__item_place place)
{
    dibs__item_view view = {.place = place};

    view.id = (uint64_t)dibs__sql.column_int64(stmt, 0);
    view.priority = (int32_t)dibs__sql.column_int64(stmt, 1);
    view.attempts = (uint32_t)dibs__sql.column_int64(stmt, 2);
    view.lost = (uint32_t)dibs__sql.column_int64(stmt, 3);
    view.ended_wall_us = dibs__sql.column_int64(stmt, 4);
    read_text(stmt, 5, view.to, sizeof(view.to));
    read_text(stmt, 6, view.dedup, sizeof(view.dedup));
    read_text(stmt, 7, view.reason, sizeof(view.reason));
    add_view(views, stmt, 8, &view);
}

static dibs__sqlite_query query_of(dibs__item_place place)
{
    switch (place) {
    case DIBS__PLACE_LATER:
        return DIBS__SQL_ITEM_PEEK_LATER;
    case DIBS__PLACE_OUT:
        return DIBS__SQL_ITEM_PEEK_OUT;
    case DIBS__PLACE_DEAD:
        return DIBS__SQL_DEAD_PEEK;
    case DIBS__PLACE_DONE:
        return DIBS__SQL_DONE_PEEK;
    case DIBS__PLACE_READY:
        break;
    }
    return DIBS__SQL_ITEM_PEEK_READY;
}

/* Copies up to `max` items. Locks: cn. */
static dibs_status
copy_items(const dibs__sqlite_shelf *shelf, dibs__item_place place, size_t skip,
           size_t max, dibsx_buf *views, dibs_error *err)
{
    sqlite3_stmt *stmt;
    size_t kept = shelf->base.head.conf.keep_done;
    dibs_status rc;

    /* Records beyond the bound are about to go. */
    if (place == DIBS__PLACE_DONE && max > (kept > skip ? kept - skip : 0))
        max = kept > skip ? kept - skip : 0;
    rc = dibs__sqlite_ask(shelf->cn, &stmt, err, query_of(place), "iii",
                          shelf->q, (int64_t)skip, (int64_t)max);
    while (rc == DIBS_OK) {
        rc = dibs__sqlite_row(shelf->cn, stmt, err);
        if (rc != DIBS_OK)
            break;
        if (place == DIBS__PLACE_DEAD || place == DIBS__PLACE_DONE)
            add_ended(views, stmt, place);
        else
            add_item(views, stmt, place, shelf->base.now_wall_us);
        if (!dibsx_buf_ok(views) || views->len > PEEK_BYTES / 2) {
            dibs__sqlite_reset(stmt);
            rc = DIBS_NOTFOUND;
        }
    }
    if (!dibsx_buf_ok(views))
        return dibsx_nomem(err, "a look at a queue");
    return rc == DIBS_NOTFOUND ? DIBS_OK : rc;
}

static void show_items(const dibsx_buf *views, dibs__item_fn *each, void *arg)
{
    bool more = true;

    for (size_t at = 0; more && at < views->len;) {
        dibs__item_view view;

        memcpy(&view, views->data + at, sizeof(view));
        at += sizeof(view);
        view.data = views->data + at;
        at += view.len;
        more = each(&view, arg);
    }
}

static dibs_status
peek_queue(struct dibs__store *st, const char *queue, dibs__item_place place,
           size_t skip, size_t max, dibsx_nsec deadline, dibs__item_fn *each,
           void *arg, dibs_error *err)
{
    dibs__sqlite_conn *cn = dibs__sqlite_conn_of(st, DIBS__SQLITE_VALUE);
    dibs_status rc = dibs__sqlite_enter(cn, deadline, err);
    dibs__sqlite_shelf shelf;
    dibsx_buf views;

    if (rc != DIBS_OK)
        return rc;
    dibsx_buf_init(&views, PEEK_BYTES);
    rc = dibs__sqlite_shelf_init(&shelf, cn, queue, false, err);
    if (rc == DIBS_OK)
        rc = shelf.q == 0
                 ? fail_none(err)
                 : copy_items(&shelf, place, skip,
                              max < PEEK_MAX ? max : PEEK_MAX, &views, err);
    dibs__sqlite_leave(cn);
    if (rc == DIBS_OK)
        show_items(&views, each, arg);
    dibs__sqlite_shelf_fini(&shelf);
    dibsx_buf_fini(&views);
    return rc;
}

static size_t at_most(size_t max)
{
    return max < DIBS__PURGE_MAX ? max : DIBS__PURGE_MAX;
}

static dibs_status
purge_queue(struct dibs__store *st, const char *queue, uint32_t places,
            size_t max, dibsx_nsec deadline, size_t *purged, dibs_error *err)
{
    dibs__sqlite_shelf shelf;
    dibs_status rc = begin_change(st, queue, false, deadline, &shelf, err);

    *purged = 0;
    if (rc == DIBS_OK)
        rc = dibs__deliver_purge(&shelf.base, places, at_most(max), purged);
    rc = end_change(st, &shelf, rc, err);
    if (rc != DIBS_OK)
        *purged = 0;
    return rc;
}

static dibs_status redrive_queue(struct dibs__store *st, const char *queue,
                                 uint64_t id, size_t max, dibsx_nsec deadline,
                                 size_t *redriven, dibs_error *err)
{
    dibs__sqlite_shelf shelf;
    dibs_status rc = begin_change(st, queue, false, deadline, &shelf, err);

    *redriven = 0;
    if (rc == DIBS_OK)
        rc = dibs__deliver_redrive(&shelf.base, id, at_most(max), redriven);
    rc = end_change(st, &shelf, rc, err);
    if (rc != DIBS_OK)
        *redriven = 0;
    return rc;
}

static dibs_status remove_queue(struct dibs__store *st, const char *queue,
                                dibsx_nsec deadline, dibs_error *err)
{
    dibs__sqlite_shelf shelf;
    dibs__queue_stats stats = {.ready = 0};
    dibs_status rc = begin_change(st, queue, false, deadline, &shelf, err);

    if (rc == DIBS_OK)
        rc = dibs__deliver_tidy(&shelf.base);
    if (rc == DIBS_OK)
        rc = count_all(&shelf, &stats, err);
    if (rc == DIBS_OK &&
        (shelf.base.head.items || shelf.base.head.dead || stats.lanes))
        rc = dibs__refuse_removal((int64_t)shelf.base.head.items,
                                  (int64_t)shelf.base.head.dead,
                                  (int64_t)stats.lanes, err);
    if (rc == DIBS_OK)
        rc = dibs__sqlite_run(shelf.cn, err, DIBS__SQL_LANE_FORGET, "i",
                              shelf.q);
    if (rc == DIBS_OK)
        rc = dibs__sqlite_run(shelf.cn, err, DIBS__SQL_DONE_FORGET, "i",
                              shelf.q);
    if (rc == DIBS_OK)
        rc =
            dibs__sqlite_run(shelf.cn, err, DIBS__SQL_QUEUE_DROP, "i", shelf.q);
    return end_change(st, &shelf, rc, err);
}

/* ---- list */

/* Copies the names, each with its NUL. Locks: cn. */
static dibs_status
copy_names(dibs__sqlite_conn *cn, const char *begins, const char *after,
           size_t max, dibsx_buf *names, dibs_error *err)
{
    sqlite3_stmt *stmt;
    dibs_status rc =
        dibs__sqlite_ask(cn, &stmt, err, DIBS__SQL_QUEUE_LIST, "tti",
                         strcmp(after, begins) > 0 ? after : begins, after,
                         (int64_t)max);

    while (rc == DIBS_OK) {
        const char *name;

        rc = dibs__sqlite_row(cn, stmt, err);
        if (rc != DIBS_OK)
            break;
        name = (const char *)dibs__sql.column_text(stmt, 0);
        if (!name)
            rc = dibsx_nomem(err, "a name");
        else if (strncmp(name, begins, strlen(begins)) != 0)
            rc = DIBS_NOTFOUND;
        else
            dibsx_buf_add(names, name, strlen(name) + 1);
        if (rc != DIBS_OK)
            dibs__sqlite_reset(stmt);
    }
    if (!dibsx_buf_ok(names))
        return dibsx_nomem(err, "a list of names");
    return rc == DIBS_NOTFOUND ? DIBS_OK : rc;
}

static dibs_status
list_queues(struct dibs__store *st, const char *begins, const char *after,
            size_t max, dibsx_nsec deadline, dibs__queue_fn *each, void *arg,
            dibs_error *err)
{
    dibs__sqlite_conn *cn = dibs__sqlite_conn_of(st, DIBS__SQLITE_VALUE);
    dibs_status rc = dibs__sqlite_enter(cn, deadline, err);
    dibsx_buf names;
    bool more = true;

    if (rc != DIBS_OK)
        return rc;
    dibsx_buf_init(&names, (size_t)DIBS__QUEUE_LIST_MAX * (DIBS_NAME_MAX + 1));
    rc = copy_names(cn, begins, after,
                    max < DIBS__QUEUE_LIST_MAX ? max : DIBS__QUEUE_LIST_MAX,
                    &names, err);
    dibs__sqlite_leave(cn);
    for (size_t at = 0; rc == DIBS_OK && more && at < names.len;) {
        const char *name = (const char *)names.data + at;

        at += strlen(name) + 1;
        more = each(name, arg);
    }
    dibsx_buf_fini(&names);
    return rc;
}

const dibs__queue_admin_ops dibs__sqlite_queue_admin_ops = {
    .set = set_queue,
    .stats = read_stats,
    .peek = peek_queue,
    .purge = purge_queue,
    .redrive = redrive_queue,
    .remove = remove_queue,
    .list = list_queues,
};
