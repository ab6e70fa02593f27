/* inspect.c - inspect and list: rows of the view lease as entries.
 *
 * Any thread. Nothing is locked while the caller's function runs. */
/* SPDX-License-Identifier: MIT */
#include "base/fail.h"
#include "store/grant.h"
#include "store/postgres/step.h"
#include <string.h>

/* Names that a page looks for, and its rows in all. Also in query.c. */
enum { PAGE_NAMES = 64, PAGE_ROWS = 8192 };

/* Columns of a row. */
enum {
    NAME,
    OWNER,
    ROLE,
    MODE,
    PERMITS,
    CAPACITY,
    PRIORITY,
    SEQ,
    FENCE,
    CLAIM,
    TTL,
    SINCE,
    UNTIL,
    WHO,
    NOW
};

typedef struct word {
    const char *text;
    int value;
} word;

static const word roles[] = {{"holder", DIBS__HOLDER},
                             {"waiter", DIBS__WAITER},
                             {"ghost", DIBS__GHOST},
                             {"tomb", DIBS__TOMB}};
static const word modes[] = {{"exclusive", DIBS__EXCLUSIVE},
                             {"shared", DIBS__SHARED},
                             {"permits", DIBS__PERMITS}};

/* The number of a word; -1 when it is none. */
static int number_of(const word *words, size_t count, const char *text)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(words[i].text, text) == 0)
            return words[i].value;
    return -1;
}

static bool
read_text(const PGresult *rows, int row, int column, char *out, size_t size)
{
    const char *text = dibs__pg_text(rows, row, column);
    size_t len = strlen(text);

    if (len >= size)
        return false;
    memcpy(out, text, len + 1);
    return true;
}

static bool read_party(const PGresult *rows, int row, dibs__party *party)
{
    int role = number_of(roles, sizeof(roles) / sizeof(roles[0]),
                         dibs__pg_text(rows, row, ROLE));
    int mode = number_of(modes, sizeof(modes) / sizeof(modes[0]),
                         dibs__pg_text(rows, row, MODE));

    if (role < 0 || mode < 0 ||
        !read_text(rows, row, OWNER, party->owner, sizeof(party->owner)) ||
        !read_text(rows, row, WHO, party->who, sizeof(party->who)))
        return false;
    party->role = (dibs__role)role;
    party->mode = (dibs__mode)mode;
    party->permits = (uint32_t)dibs__pg_int(rows, row, PERMITS);
    party->capacity = (uint32_t)dibs__pg_int(rows, row, CAPACITY);
    party->priority = (int32_t)dibs__pg_int(rows, row, PRIORITY);
    party->seq = (uint64_t)dibs__pg_int(rows, row, SEQ);
    party->fence = (uint64_t)dibs__pg_int(rows, row, FENCE);
    party->claim = dibs__pg_int(rows, row, CLAIM) == 1;
    party->ttl_ms = dibs__pg_int(rows, row, TTL);
    party->since_us = dibs__pg_int(rows, row, SINCE);
    party->until_us = dibs__pg_int(rows, row, UNTIL);
    return true;
}

/* Shows the name whose rows are first..end-1. *shown is false when nobody has it.
 * DIBS_NOTFOUND: the caller has seen enough. */
static dibs_status
show_name(const PGresult *rows, int first, int end, dibs__roll *roll,
          dibs__display *dp, bool *shown, dibs_error *err)
{
    size_t count;

    dibs__roll_reset(roll);
    roll->now_us = dibs__pg_int(rows, first, NOW);
    for (int i = first; i < end; i++) {
        dibs__party *party = dibs__roll_add(roll);

        if (!party)
            return dibsx_nomem(err, "the parties of a name");
        if (!read_party(rows, i, party))
            return dibs__pg_odd(err);
    }
    if (!dibs__display_room(dp, roll->count))
        return dibsx_nomem(err, "the entries of a name");
    count = dibs__roll_show(roll, dp->entries);
    *shown = count > 0;
    if (count > 0 && !dp->each(dibs__pg_text(rows, first, NAME), dp->entries,
                               count, dp->arg))
        return DIBS_NOTFOUND;
    return DIBS_OK;
}

dibs_status
dibs__pg_inspect(struct dibs__store *st, const char *name, dibsx_nsec deadline,
                 dibs__entries_fn *each, void *arg, dibs_error *err)
{
    dibs__display dp = {.each = each, .arg = arg};
    dibs__pg_args args = {.count = 0};
    dibs__roll roll = {0};
    PGresult *rows = NULL;
    bool shown = false;
    dibs_status rc;
    int count;

    dibs__pg_arg_text(&args, name);
    rc = dibs__pg_look(dibs__pg_of(st), DIBS__PG_INSPECT, &args, deadline,
                       &rows, err);
    if (rc != DIBS_OK)
        return rc;
    count = dibs__pq.PQntuples(rows);
    if (count > 0)
        rc = show_name(rows, 0, count, &roll, &dp, &shown, err);
    if (rc == DIBS_NOTFOUND)
        rc = DIBS_OK;
    if (rc == DIBS_OK && !shown)
        rc = dibsx_fail(err, DIBS_NOTFOUND, "nobody holds it or waits for it");
    dibs__pq.PQclear(rows);
    dibs__roll_fini(&roll);
    dibs__display_fini(&dp);
    return rc;
}

/* The end of the name that begins in `first`. */
static int name_end(const PGresult *rows, int first, int count)
{
    const char *name = dibs__pg_text(rows, first, NAME);
    int end = first + 1;

    while (end < count && strcmp(dibs__pg_text(rows, end, NAME), name) == 0)
        end++;
    return end;
}

/* Shows a page and leaves its last name in `after`. A name that the page has cut
 * off is left for the next, unless it fills this one. DIBS_NOTFOUND: there is
 * nothing beyond, or the caller has seen enough. */
static dibs_status show_page(const PGresult *rows, const char *begins,
                             char after[DIBS_NAME_MAX + 1], dibs__roll *roll,
                             dibs__display *dp, dibs_error *err)
{
    int count = dibs__pq.PQntuples(rows), names = 0;
    dibs_status rc = DIBS_OK;

    for (int first = 0, end; rc == DIBS_OK && first < count; first = end) {
        const char *name = dibs__pg_text(rows, first, NAME);
        bool shown;

        end = name_end(rows, first, count);
        if (strncmp(name, begins, strlen(begins)) != 0)
            return DIBS_NOTFOUND;
        if (end == PAGE_ROWS && first > 0)
            return DIBS_OK;
        if (!read_text(rows, first, NAME, after, DIBS_NAME_MAX + 1))
            return dibs__pg_odd(err);
        names++;
        rc = show_name(rows, first, end, roll, dp, &shown, err);
    }
    if (rc == DIBS_OK && names < PAGE_NAMES && count < PAGE_ROWS)
        return DIBS_NOTFOUND;
    return rc;
}

dibs_status
dibs__pg_list(struct dibs__store *st, const char *begins, dibsx_nsec deadline,
              dibs__entries_fn *each, void *arg, dibs_error *err)
{
    char after[DIBS_NAME_MAX + 1] = "";
    dibs__display dp = {.each = each, .arg = arg};
    dibs__roll roll = {0};
    dibs_status rc = DIBS_OK;

    while (rc == DIBS_OK) {
        dibs__pg_args args = {.count = 0};
        PGresult *rows = NULL;

        dibs__pg_arg_text(&args, after[0] ? after : begins);
        dibs__pg_arg_int(&args, after[0] ? 0 : 1);
        rc = dibs__pg_look(dibs__pg_of(st), DIBS__PG_LIST, &args, deadline,
                           &rows, err);
        if (rc == DIBS_OK)
            rc = show_page(rows, begins, after, &roll, &dp, err);
        dibs__pq.PQclear(rows);
    }
    dibs__roll_fini(&roll);
    dibs__display_fini(&dp);
    return rc == DIBS_NOTFOUND ? DIBS_OK : rc;
}
