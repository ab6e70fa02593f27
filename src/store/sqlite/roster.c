/* roster.c - the roster steps: load the head and one seat, apply the rule of
 * store/meet.h, write back what it marked, all items in one transaction; send notices
 * once it is committed.
 *
 * Any thread. Latches use the connection whose commits reach the disk; seats do not
 * outlive the machine. There is no other run of this store: a boot ends all seats. */
/* SPDX-License-Identifier: MIT */
#include "base/buf.h"
#include "base/fail.h"
#include "store/meet.h"
#include "store/sqlite/db.h"
#include <stdio.h>
#include <string.h>

/* One seat in so many sweeps. */
enum { SWEEP_EVERY = 16 };

static int64_t now_us(void)
{
    return dibsx_now() / 1000;
}

static dibs_status fail_odd(dibs_error *err)
{
    return dibsx_fail(err, DIBS_INTERNAL, "a roster has impossible contents");
}

/* gen is 0 when there is none. Locks: cn. */
static dibs_status load_head(dibs__sqlite_conn *cn, const char *name,
                             dibs__roster *ro, dibs_error *err)
{
    sqlite3_stmt *stmt;
    dibs_status rc =
        dibs__sqlite_ask(cn, &stmt, err, DIBS__SQL_ROSTER, "t", name);
    int64_t kind;

    memset(ro, 0, sizeof(*ro));
    if (rc == DIBS_OK)
        rc = dibs__sqlite_row(cn, stmt, err);
    if (rc == DIBS_NOTFOUND)
        return DIBS_OK;
    if (rc != DIBS_OK)
        return rc;
    kind = dibs__sql.column_int64(stmt, 0);
    ro->head.kind = (dibs__roster_kind)kind;
    ro->head.gen = (uint64_t)dibs__sql.column_int64(stmt, 1);
    ro->head.need = (uint32_t)dibs__sql.column_int64(stmt, 2);
    ro->head.here = (uint32_t)dibs__sql.column_int64(stmt, 3);
    ro->seats = (uint32_t)dibs__sql.column_int64(stmt, 4);
    if (kind < DIBS__ROSTER_GROUP || kind > DIBS__ROSTER_LATCH ||
        !dibs__sql.column_text(stmt, 5) ||
        !dibs__meet_broken_read(ro,
                                (const char *)dibs__sql.column_text(stmt, 5)))
        rc = fail_odd(err);
    ro->kept_until_us = dibs__sql.column_int64(stmt, 6);
    dibs__sqlite_reset(stmt);
    return rc;
}

/* A roster without seats is none; its numbers go on with the watermark. Locks: cn. */
static dibs_status save_head(dibs__sqlite_conn *cn, const char *name,
                             const dibs__roster *ro, dibs_error *err)
{
    const dibs__roster_head *head = &ro->head;
    char broken[DIBS__BROKEN_TEXT];

    if (!ro->changed)
        return DIBS_OK;
    if (head->gen == 0 || (head->kind != DIBS__ROSTER_LATCH && ro->seats == 0))
        return dibs__sqlite_run(cn, err, DIBS__SQL_ROSTER_DROP, "t", name);
    dibs__meet_broken_write(ro, broken);
    return dibs__sqlite_run(cn, err, DIBS__SQL_ROSTER_PUT, "tiiiiiti", name,
                            (int64_t)head->kind, (int64_t)head->gen,
                            (int64_t)head->need, (int64_t)head->here,
                            (int64_t)ro->seats, broken, ro->kept_until_us);
}

static dibs_status load_seat(dibs__sqlite_conn *cn, const dibs__meet *item,
                             dibs__seat *seat, dibs_error *err)
{
    sqlite3_stmt *stmt;
    dibs_status rc = dibs__sqlite_ask(cn, &stmt, err, DIBS__SQL_SEAT, "tt",
                                      item->name, item->id);
    const char *who;
    int64_t kind;

    memset(seat, 0, sizeof(*seat));
    if (rc == DIBS_OK)
        rc = dibs__sqlite_row(cn, stmt, err);
    if (rc == DIBS_NOTFOUND)
        return DIBS_OK;
    if (rc != DIBS_OK)
        return rc;
    kind = dibs__sql.column_int64(stmt, 0);
    seat->mark = DIBS__SEAT_KEPT;
    seat->kind = (dibs__seat_kind)kind;
    seat->fence = (uint64_t)dibs__sql.column_int64(stmt, 1);
    seat->from = (uint64_t)dibs__sql.column_int64(stmt, 2);
    seat->rec = (uint64_t)dibs__sql.column_int64(stmt, 3);
    seat->counts_us = dibs__sql.column_int64(stmt, 4);
    seat->until_us = dibs__sql.column_int64(stmt, 5);
    who = (const char *)dibs__sql.column_text(stmt, 6);
    snprintf(seat->who, sizeof(seat->who), "%s", who ? who : "");
    if (kind < DIBS__SEAT_NEW || kind > DIBS__SEAT_COUNTED)
        rc = fail_odd(err);
    dibs__sqlite_reset(stmt);
    return rc;
}

static dibs_status save_seat(dibs__sqlite_conn *cn, const dibs__meet *item,
                             const dibs__seat *seat, dibs_error *err)
{
    if (seat->mark == DIBS__SEAT_GONE)
        return dibs__sqlite_run(cn, err, DIBS__SQL_SEAT_DROP, "tt", item->name,
                                item->id);
    if (seat->mark != DIBS__SEAT_PUT)
        return DIBS_OK;
    return dibs__sqlite_run(cn, err, DIBS__SQL_SEAT_PUT, "ttiiiiiit",
                            item->name, item->id, (int64_t)seat->kind,
                            (int64_t)seat->fence, (int64_t)seat->from,
                            (int64_t)seat->rec, seat->counts_us, seat->until_us,
                            seat->who);
}

/* Deletes the seats whose time is up by then. Locks: cn. */
static dibs_status end_seats(dibs__sqlite_conn *cn, const char *name,
                             int64_t by_us, dibs__roster *ro, dibs_error *err)
{
    sqlite3_stmt *stmt;
    uint32_t ended, used;
    dibs_status rc = dibs__sqlite_ask(cn, &stmt, err, DIBS__SQL_SEAT_ENDED,
                                      "ti", name, by_us);

    if (rc == DIBS_OK)
        rc = dibs__sqlite_row(cn, stmt, err);
    if (rc != DIBS_OK)
        return rc;
    ended = (uint32_t)dibs__sql.column_int64(stmt, 0);
    used = (uint32_t)dibs__sql.column_int64(stmt, 1);
    dibs__sqlite_reset(stmt);
    if (ended == 0)
        return DIBS_OK;
    dibs__meet_ended(ro, ended, used);
    return dibs__sqlite_run(cn, err, DIBS__SQL_SEAT_END, "ti", name, by_us);
}

static dibs_status forget_all(dibs__sqlite_conn *cn, const char *name,
                              dibs__roster *ro, dibs_error *err)
{
    if (!ro->forgets)
        return DIBS_OK;
    ro->forgets = false;
    return dibs__sqlite_run(cn, err, DIBS__SQL_SEAT_END, "ti", name, INT64_MAX);
}

static dibs_status tell_news(dibs__sqlite_conn *cn, const char *name,
                             const dibs__roster *ro, dibs_error *err)
{
    char topic[DIBS__TOPIC_MAX];
    dibs_status rc = DIBS_OK;

    dibs__topic_of_roster(name, topic);
    for (uint32_t i = 0; i < ro->news_count && rc == DIBS_OK; i++)
        rc = dibs__sqlite_tell(cn, topic,
                               ro->news[i].opened ? DIBS__NOTICE_OPENED
                                                  : DIBS__NOTICE_BROKEN,
                               ro->news[i].gen, err);
    return rc;
}

/* How long the first seat lives, or as many as the party needs. Locks: cn. */
static dibs_status find_left(dibs__sqlite_conn *cn, const dibs__roster *ro,
                             dibs__meet *item, dibs_error *err)
{
    bool keeps = item->verb == DIBS__KEEP;
    uint32_t need = ro->head.need ? ro->head.need : item->need;
    sqlite3_stmt *stmt;
    dibs_status rc;

    if (keeps ? item->rc != DIBS_OK || need == 0
              : item->verb != DIBS__ARRIVE || item->rc != DIBS_BUSY)
        return DIBS_OK;
    rc = keeps ? dibs__sqlite_ask(cn, &stmt, err, DIBS__SQL_SEAT_NTH, "tii",
                                  item->name, ro->now_us, (int64_t)need - 1)
               : dibs__sqlite_ask(cn, &stmt, err, DIBS__SQL_SEAT_FIRST, "t",
                                  item->name);
    if (rc == DIBS_OK)
        rc = dibs__sqlite_row(cn, stmt, err);
    if (rc == DIBS_NOTFOUND)
        return DIBS_OK;
    if (rc != DIBS_OK)
        return rc;
    item->left_ms = (dibs__sql.column_int64(stmt, 0) - ro->now_us) / 1000;
    dibs__sqlite_reset(stmt);
    return DIBS_OK;
}

/* One item, inside a change. Locks: cn. */
static dibs_status
meet_one(dibs__sqlite_conn *cn, dibs__meet *item, dibs_error *err)
{
    dibs__roster ro;
    dibs__seat seat;
    dibs_status rc = load_head(cn, item->name, &ro, err);

    if (rc != DIBS_OK)
        return rc;
    ro.now_us = now_us();
    ro.now_wall_us = dibsx_wall_us();
    ro.watermark = cn->watermark;
    (void)dibs__meet_begin(&ro, item, "");
    rc = forget_all(cn, item->name, &ro, err);
    if (rc == DIBS_OK && ro.seats > 0)
        rc = end_seats(cn, item->name, ro.now_us, &ro, err);
    if (rc == DIBS_OK)
        rc = load_seat(cn, item, &seat, err);
    if (rc != DIBS_OK)
        return rc;
    dibs__meet_apply(&ro, &seat, item);
    cn->watermark = ro.watermark;
    rc = forget_all(cn, item->name, &ro, err);
    if (rc == DIBS_OK)
        rc = save_seat(cn, item, &seat, err);
    if (rc == DIBS_OK)
        rc = save_head(cn, item->name, &ro, err);
    if (rc == DIBS_OK)
        rc = tell_news(cn, item->name, &ro, err);
    return rc == DIBS_OK ? find_left(cn, &ro, item, err) : rc;
}

/* Removes a roster that nobody has used for long. Locks: cn. */
static dibs_status sweep_rosters(dibs__sqlite_conn *cn, dibs_error *err)
{
    char name[DIBS_NAME_MAX + 1];
    const char *text;
    sqlite3_stmt *stmt;
    dibs_status rc = dibs__sqlite_ask(cn, &stmt, err, DIBS__SQL_ROSTER_OLD,
                                      "ii", now_us(), dibsx_wall_us());

    if (rc == DIBS_OK)
        rc = dibs__sqlite_row(cn, stmt, err);
    if (rc == DIBS_NOTFOUND)
        return DIBS_OK;
    if (rc != DIBS_OK)
        return rc;
    text = (const char *)dibs__sql.column_text(stmt, 0);
    snprintf(name, sizeof(name), "%s", text ? text : "");
    dibs__sqlite_reset(stmt);
    rc = dibs__sqlite_run(cn, err, DIBS__SQL_SEAT_END, "ti", name, INT64_MAX);
    return rc == DIBS_OK
               ? dibs__sqlite_run(cn, err, DIBS__SQL_ROSTER_DROP, "t", name)
               : rc;
}

static dibs__sqlite_role role_of(const dibs__meet *items, size_t count)
{
    bool keeps = true;

    for (size_t i = 0; i < count; i++) {
        if (items[i].verb == DIBS__COUNT || items[i].verb == DIBS__RESET)
            return DIBS__SQLITE_VALUE;
        keeps = keeps && items[i].verb == DIBS__KEEP;
    }
    return keeps ? DIBS__SQLITE_RENEW : DIBS__SQLITE_LEASE;
}

static dibs_status meet_all(struct dibs__store *st, dibs__meet *items,
                            size_t count, dibsx_nsec deadline, dibs_error *err)
{
    dibs__sqlite_conn *cn;
    uint64_t before;
    dibs_status rc =
        dibs__sqlite_step_begin(st, role_of(items, count), deadline, &cn, err);

    dibs__meet_clear(items, count, rc);
    if (rc != DIBS_OK)
        return rc;
    before = cn->watermark;
    for (size_t i = 0; i < count && rc == DIBS_OK; i++)
        rc = meet_one(cn, &items[i], err);
    if (rc == DIBS_OK && cn->watermark > before &&
        cn->watermark % SWEEP_EVERY == 0)
        rc = sweep_rosters(cn, err);
    rc = dibs__sqlite_step_end(st, cn, rc, err);
    if (rc != DIBS_OK)
        dibs__meet_clear(items, count, rc);
    return rc;
}

static void
read_entry(sqlite3_stmt *stmt, const dibs__roster *ro, dibs__seat_entry *seat)
{
    int64_t kind = dibs__sql.column_int64(stmt, 0);
    uint64_t rec = (uint64_t)dibs__sql.column_int64(stmt, 2);
    bool latch = kind == DIBS__SEAT_COUNTED;
    const char *who = (const char *)dibs__sql.column_text(stmt, 5);
    const char *id = (const char *)dibs__sql.column_text(stmt, 6);

    memset(seat, 0, sizeof(*seat));
    seat->fence = (uint64_t)dibs__sql.column_int64(stmt, 1);
    seat->arrived =
        latch || (kind == DIBS__SEAT_ARRIVED && rec == ro->head.gen);
    seat->counts = latch || (kind != DIBS__SEAT_NEW &&
                             dibs__sql.column_int64(stmt, 3) <= ro->now_us);
    seat->left_ms = ((latch ? ro->kept_until_us - ro->now_wall_us
                            : dibs__sql.column_int64(stmt, 4) - ro->now_us) +
                     999) /
                    1000;
    snprintf(seat->who, sizeof(seat->who), "%s", who ? who : "");
    snprintf(seat->id, sizeof(seat->id), "%s", id ? id : "");
}

/* Copies the seats, so that the store is not locked while the caller looks at
 * them. Locks: cn. */
static dibs_status
copy_seats(dibs__sqlite_conn *cn, const char *name, const dibs__roster *ro,
           dibsx_buf *seats, dibs_error *err)
{
    sqlite3_stmt *stmt;
    dibs_status rc =
        dibs__sqlite_ask(cn, &stmt, err, DIBS__SQL_SEAT_LIST, "tii", name,
                         ro->now_us, (int64_t)DIBS__ROLL_CALL_MAX);

    while (rc == DIBS_OK) {
        dibs__seat_entry seat;

        rc = dibs__sqlite_row(cn, stmt, err);
        if (rc != DIBS_OK)
            break;
        read_entry(stmt, ro, &seat);
        dibsx_buf_add(seats, &seat, sizeof(seat));
    }
    if (rc == DIBS_NOTFOUND)
        rc = dibsx_buf_ok(seats) ? DIBS_OK : dibsx_nomem(err, "a roll call");
    return rc;
}

static dibs_status call_roll(struct dibs__store *st, const char *name,
                             dibsx_nsec deadline, dibs__roster_head *out,
                             dibs__seat_fn *each, void *arg, dibs_error *err)
{
    dibs__sqlite_conn *cn = dibs__sqlite_conn_of(st, DIBS__SQLITE_LEASE);
    dibs_status rc = dibs__sqlite_enter(cn, deadline, err);
    dibs__seat_entry seat;
    dibs__roster ro;
    dibsx_buf seats;

    memset(out, 0, sizeof(*out));
    if (rc != DIBS_OK)
        return rc;
    dibsx_buf_init(&seats, DIBS__ROLL_CALL_MAX * sizeof(seat));
    rc = load_head(cn, name, &ro, err);
    ro.now_us = now_us();
    ro.now_wall_us = dibsx_wall_us();
    if (rc == DIBS_OK && each && ro.head.gen != 0)
        rc = copy_seats(cn, name, &ro, &seats, err);
    dibs__sqlite_leave(cn);
    if (rc == DIBS_OK &&
        (ro.head.gen == 0 || (ro.head.kind == DIBS__ROSTER_LATCH &&
                              ro.kept_until_us <= ro.now_wall_us)))
        rc = dibsx_fail(err, DIBS_NOTFOUND, "there is no such roster");
    if (rc == DIBS_OK)
        *out = ro.head;
    for (size_t at = 0; rc == DIBS_OK && at < seats.len; at += sizeof(seat)) {
        memcpy(&seat, seats.data + at, sizeof(seat));
        if (!each(&seat, arg))
            break;
    }
    dibsx_buf_fini(&seats);
    return rc;
}

static dibs_status read_row(sqlite3_stmt *stmt, const dibs__roster_query *query,
                            dibs__roster_row *row, dibs_error *err)
{
    const char *name = (const char *)dibs__sql.column_text(stmt, 0);

    if (!name)
        return dibsx_nomem(err, "a name");
    if (strncmp(name, query->begins, strlen(query->begins)) != 0)
        return DIBS_NOTFOUND;
    memset(row, 0, sizeof(*row));
    snprintf(row->name, sizeof(row->name), "%s", name);
    row->head.kind = query->kind;
    row->head.gen = (uint64_t)dibs__sql.column_int64(stmt, 1);
    row->head.need = (uint32_t)dibs__sql.column_int64(stmt, 2);
    row->head.here = (uint32_t)dibs__sql.column_int64(stmt, 3);
    row->live = (uint32_t)dibs__sql.column_int64(stmt, 4);
    row->counts = (uint32_t)dibs__sql.column_int64(stmt, 5);
    return DIBS_OK;
}

/* Copies the rosters of a list, as copy_seats() does seats. Locks: cn. */
static dibs_status
copy_rosters(dibs__sqlite_conn *cn, const dibs__roster_query *query,
             dibsx_buf *rows, dibs_error *err)
{
    bool later = strcmp(query->after, query->begins) > 0;
    sqlite3_stmt *stmt;
    dibs_status rc =
        dibs__sqlite_ask(cn, &stmt, err, DIBS__SQL_ROSTER_LIST, "ttiiii",
                         later ? query->after : query->begins, query->after,
                         (int64_t)query->kind, now_us(), dibsx_wall_us(),
                         (int64_t)dibs__roster_max(query));

    while (rc == DIBS_OK) {
        dibs__roster_row row;

        rc = dibs__sqlite_row(cn, stmt, err);
        if (rc != DIBS_OK)
            break;
        rc = read_row(stmt, query, &row, err);
        if (rc == DIBS_OK)
            dibsx_buf_add(rows, &row, sizeof(row));
        else
            dibs__sqlite_reset(stmt);
    }
    if (rc == DIBS_NOTFOUND)
        rc = dibsx_buf_ok(rows) ? DIBS_OK
                                : dibsx_nomem(err, "a list of rosters");
    return rc;
}

static dibs_status
list_rosters(struct dibs__store *st, const dibs__roster_query *query,
             dibsx_nsec deadline, dibs__roster_fn *each, void *arg,
             dibs_error *err)
{
    dibs__sqlite_conn *cn = dibs__sqlite_conn_of(st, DIBS__SQLITE_LEASE);
    dibs_status rc = dibs__sqlite_enter(cn, deadline, err);
    dibs__roster_row row;
    dibsx_buf rows;

    if (rc != DIBS_OK)
        return rc;
    dibsx_buf_init(&rows, (size_t)DIBS__ROSTER_LIST_MAX * sizeof(row));
    rc = copy_rosters(cn, query, &rows, err);
    dibs__sqlite_leave(cn);
    for (size_t at = 0; rc == DIBS_OK && at < rows.len; at += sizeof(row)) {
        memcpy(&row, rows.data + at, sizeof(row));
        if (!each(&row, arg))
            break;
    }
    dibsx_buf_fini(&rows);
    return rc;
}

const dibs__roster_ops dibs__sqlite_roster_ops = {
    .meet = meet_all,
    .roll_call = call_roll,
    .rosters = list_rosters,
};
