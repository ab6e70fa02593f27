/* roster.c - the roster steps: meet, a function for each item, roll_call and rosters.
 *
 * Items are done one after the other, each in a transaction of its own, so that no two
 * clients wait for each other's rosters. Any thread. */
/* SPDX-License-Identifier: MIT */
#include "base/fail.h"
#include "store/meet.h"
#include "store/postgres/step.h"
#include <stdio.h>
#include <string.h>

enum { FLAGS_ROOM = 8 };

static const char *const verbs[] = {
    [DIBS__SIT] = "sit",       [DIBS__KEEP] = "keep",
    [DIBS__ARRIVE] = "arrive", [DIBS__WITHDRAW] = "withdraw",
    [DIBS__LEAVE] = "leave",   [DIBS__COUNT] = "count",
    [DIBS__LOOK] = "look",     [DIBS__RESET] = "reset",
};

static void write_flags(uint32_t flags, char out[FLAGS_ROOM])
{
    snprintf(out, FLAGS_ROOM, "%s%s%s%s", flags & DIBS__MEET_FIXED ? "f" : "",
             flags & DIBS__MEET_BREAK ? "b" : "",
             flags & DIBS__MEET_STRICT ? "s" : "",
             flags & DIBS__MEET_QUIET ? "q" : "");
}

static bool
read_answer(dibs__pg_answer *answer, int64_t status, dibs__meet *item)
{
    int64_t number, here, live, parties;

    if (status < DIBS_OK || status > DIBS_MISMATCH ||
        !dibs__pg_word(answer, 0, INT64_MAX, &number) ||
        !dibs__pg_word(answer, 0, UINT32_MAX, &here) ||
        !dibs__pg_word(answer, 0, UINT32_MAX, &live) ||
        !dibs__pg_word(answer, 0, UINT32_MAX, &parties) ||
        !dibs__pg_word(answer, 0, INT64_MAX, &item->left_ms) ||
        !dibs__pg_word(answer, 0, INT64_MAX, &item->clock_us))
        return false;
    item->rc = (dibs_status)status;
    item->number = (uint64_t)number;
    item->here = (uint32_t)here;
    item->live = (uint32_t)live;
    item->parties = (uint32_t)parties;
    return dibs__meet_credible(item);
}

static dibs_status meet_one(struct dibs__store *st, dibs__meet *item,
                            dibsx_nsec deadline, dibs_error *err)
{
    dibs__pg_args args = {.count = 0};
    dibs__pg_answer answer;
    char who[DIBS__WHO_MAX], flags[FLAGS_ROOM];
    int64_t status;
    dibs_status rc;

    write_flags(item->flags, flags);
    dibs__pg_arg_text(&args, item->name);
    dibs__pg_arg_text(&args, verbs[item->verb]);
    dibs__pg_arg_text(&args, item->id);
    dibs__pg_arg_int(&args, (int64_t)item->fence);
    dibs__pg_arg_int(&args, (int64_t)item->after);
    dibs__pg_arg_int(&args, item->need);
    dibs__pg_arg_int(&args, dibs__pg_span(item->ttl_ms));
    dibs__pg_arg_text(&args, flags);
    dibs__pg_arg_int(&args, dibs__pg_span(item->settle_ms));
    dibs__pg_arg_int(&args, item->by_us);
    dibs__pg_arg_text(&args, dibs__pg_who(item->who ? item->who : "", who));
    rc = dibs__pg_call(dibs__pg_of(st), DIBS__PG_MEET, &args, deadline, &answer,
                       &status, err);
    if (rc == DIBS_OK && !read_answer(&answer, status, item))
        rc = dibs__pg_odd(err);
    dibs__pg_answer_fini(&answer);
    return rc;
}

static dibs_status meet_all(struct dibs__store *st, dibs__meet *items,
                            size_t count, dibsx_nsec deadline, dibs_error *err)
{
    dibs_status rc = DIBS_OK;

    dibs__meet_clear(items, count, DIBS_UNAVAIL);
    for (size_t i = 0; i < count && rc == DIBS_OK; i++) {
        rc = meet_one(st, &items[i], deadline, err);
        if (rc != DIBS_OK)
            items[i].rc = rc;
    }
    return rc;
}

static bool read_head(const PGresult *rows, dibs__roster_head *out)
{
    int64_t kind = dibs__pg_int(rows, 0, 0);

    if (kind < DIBS__ROSTER_GROUP || kind > DIBS__ROSTER_LATCH)
        return false;
    out->kind = (dibs__roster_kind)kind;
    out->gen = (uint64_t)dibs__pg_int(rows, 0, 1);
    out->need = (uint32_t)dibs__pg_int(rows, 0, 2);
    out->here = (uint32_t)dibs__pg_int(rows, 0, 3);
    return true;
}

static void read_seat(const PGresult *rows, int row, dibs__seat_entry *out)
{
    memset(out, 0, sizeof(*out));
    out->fence = (uint64_t)dibs__pg_int(rows, row, 4);
    out->arrived = dibs__pg_int(rows, row, 5) != 0;
    out->counts = dibs__pg_int(rows, row, 6) != 0;
    out->left_ms = dibs__pg_int(rows, row, 7);
    snprintf(out->id, sizeof(out->id), "%s", dibs__pg_text(rows, row, 8));
    snprintf(out->who, sizeof(out->who), "%s", dibs__pg_text(rows, row, 9));
}

/* A roster without live seats has one row, whose id is empty. */
static dibs_status call_roll(struct dibs__store *st, const char *name,
                             dibsx_nsec deadline, dibs__roster_head *out,
                             dibs__seat_fn *each, void *arg, dibs_error *err)
{
    dibs__pg_args args = {.count = 0};
    PGresult *rows = NULL;
    dibs__seat_entry seat;
    dibs_status rc;
    int count = 0;

    memset(out, 0, sizeof(*out));
    dibs__pg_arg_text(&args, name);
    rc = dibs__pg_look(dibs__pg_of(st), DIBS__PG_ROLL_CALL, &args, deadline,
                       &rows, err);
    if (rc == DIBS_OK) {
        count = dibs__pq.PQntuples(rows);
        if (count == 0)
            rc = dibsx_fail(err, DIBS_NOTFOUND, "there is no such roster");
        else if (!read_head(rows, out))
            rc = dibs__pg_odd(err);
    }
    for (int i = 0; rc == DIBS_OK && each && i < count; i++) {
        read_seat(rows, i, &seat);
        if (!seat.id[0] || !each(&seat, arg))
            break;
    }
    dibs__pq.PQclear(rows);
    return rc;
}

static dibs_status
read_row(const PGresult *rows, int at, const dibs__roster_query *query,
         dibs__roster_row *row, dibs_error *err)
{
    const char *name = dibs__pg_text(rows, at, 5);

    if (strncmp(name, query->begins, strlen(query->begins)) != 0)
        return DIBS_NOTFOUND;
    if (strlen(name) > DIBS_NAME_MAX)
        return dibs__pg_odd(err);
    memset(row, 0, sizeof(*row));
    row->head.kind = query->kind;
    row->head.gen = (uint64_t)dibs__pg_int(rows, at, 0);
    row->head.need = (uint32_t)dibs__pg_int(rows, at, 1);
    row->head.here = (uint32_t)dibs__pg_int(rows, at, 2);
    row->live = (uint32_t)dibs__pg_int(rows, at, 3);
    row->counts = (uint32_t)dibs__pg_int(rows, at, 4);
    if (row->counts > row->live ||
        (query->kind != DIBS__ROSTER_LATCH && row->live == 0))
        return dibs__pg_odd(err);
    memcpy(row->name, name, strlen(name) + 1);
    return DIBS_OK;
}

static dibs_status
list_rosters(struct dibs__store *st, const dibs__roster_query *query,
             dibsx_nsec deadline, dibs__roster_fn *each, void *arg,
             dibs_error *err)
{
    bool later = strcmp(query->after, query->begins) >= 0 && query->after[0];
    dibs__pg_args args = {.count = 0};
    PGresult *rows = NULL;
    dibs__roster_row row;
    dibs_status rc;
    int count;

    dibs__pg_arg_text(&args, later ? query->after : query->begins);
    dibs__pg_arg_int(&args, later ? 0 : 1);
    dibs__pg_arg_int(&args, (int64_t)query->kind);
    dibs__pg_arg_int(&args, (int64_t)dibs__roster_max(query));
    rc = dibs__pg_look(dibs__pg_of(st), DIBS__PG_ROSTERS, &args, deadline,
                       &rows, err);
    count = rc == DIBS_OK ? dibs__pq.PQntuples(rows) : 0;
    for (int i = 0; i < count && rc == DIBS_OK; i++) {
        rc = read_row(rows, i, query, &row, err);
        if (rc == DIBS_OK && !each(&row, arg))
            break;
    }
    dibs__pq.PQclear(rows);
    return rc == DIBS_NOTFOUND ? DIBS_OK : rc;
}

const dibs__roster_ops dibs__pg_roster_ops = {
    .meet = meet_all,
    .roll_call = call_roll,
    .rosters = list_rosters,
};
