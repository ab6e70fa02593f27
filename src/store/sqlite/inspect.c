/* inspect.c - the reading lease steps: inspect and list.
 *
 * A page of names is read in one transaction, then shown with nothing locked, so
 * that the caller's function may use the store. Any thread. */
/* SPDX-License-Identifier: MIT */
#include "base/alloc.h"
#include "base/fail.h"
#include "store/sqlite/db.h"
#include <string.h>

/* A page ends with the name in which it reaches one of these. */
enum { PAGE_NAMES = 256, PAGE_PARTIES = 4096 };

typedef struct page_name {
    char name[DIBS_NAME_MAX + 1];
    size_t first; /* of its parties */
    size_t count;
} page_name;

typedef struct page {
    dibs__roll roll; /* the parties of all names, one after the other */
    page_name names[PAGE_NAMES];
    size_t count;
    bool more; /* there may be names beyond */
} page;

dibs_status dibs__sqlite_inspect(struct dibs__store *st, const char *name,
                                 dibsx_nsec deadline, dibs__entries_fn *each,
                                 void *arg, dibs_error *err)
{
    dibs__sqlite_conn *cn = dibs__sqlite_conn_of(st, DIBS__SQLITE_LEASE);
    dibs__display dp = {.each = each, .arg = arg};
    size_t count = 0;
    dibs_status rc = dibs__sqlite_enter(cn, deadline, err);

    if (rc != DIBS_OK)
        return rc;
    rc = dibs__sqlite_roll_load(cn, name, err);
    if (rc == DIBS_OK && !dibs__display_room(&dp, cn->roll.count))
        rc = dibsx_nomem(err, "the entries of a name");
    if (rc == DIBS_OK)
        count = dibs__roll_show(&cn->roll, dp.entries);
    dibs__sqlite_leave(cn);
    if (rc == DIBS_OK && count == 0)
        rc = dibsx_fail(err, DIBS_NOTFOUND, "nobody holds it or waits for it");
    if (rc == DIBS_OK)
        (void)each(name, dp.entries, count, arg);
    dibs__display_fini(&dp);
    return rc;
}

/* Finds or adds the name of a row in the page; NULL when it belongs to the next. */
static page_name *find_page_name(page *pg, const char *name, size_t len)
{
    page_name *last = pg->count ? &pg->names[pg->count - 1] : NULL;

    if (last && strcmp(last->name, name) == 0)
        return last;
    if (pg->count == PAGE_NAMES || pg->roll.count >= PAGE_PARTIES)
        return NULL;
    last = &pg->names[pg->count++];
    memcpy(last->name, name, len + 1);
    last->first = pg->roll.count;
    last->count = 0;
    return last;
}

/* DIBS_NOTFOUND: the page ends before this row. */
static dibs_status
page_add(page *pg, sqlite3_stmt *stmt, const char *begins, dibs_error *err)
{
    const char *name = (const char *)dibs__sql.column_text(stmt, 15);
    dibs__party *party;
    page_name *at;

    if (!name)
        return dibsx_nomem(err, "a name");
    if (strncmp(name, begins, strlen(begins)) != 0)
        return DIBS_NOTFOUND;
    if (strlen(name) > DIBS_NAME_MAX)
        return dibsx_fail(err, DIBS_INTERNAL, "a name is too long");
    at = find_page_name(pg, name, strlen(name));
    pg->more = !at;
    if (!at)
        return DIBS_NOTFOUND;
    party = dibs__roll_add(&pg->roll);
    if (!party)
        return dibsx_nomem(err, "a page of names");
    at->count++;
    return dibs__sqlite_party_read(stmt, party, err);
}

/* Reads the page after the last name of the one before. Locks: cn. */
static dibs_status
page_read(dibs__sqlite_conn *cn, page *pg, const char *begins, dibs_error *err)
{
    char after[DIBS_NAME_MAX + 1] = "";
    sqlite3_stmt *stmt;
    dibs_status rc;

    /* No owner sorts before "", and all sort before "~". */
    if (pg->count > 0)
        memcpy(after, pg->names[pg->count - 1].name, sizeof(after));
    rc = dibs__sqlite_ask(cn, &stmt, err, DIBS__SQL_PARTY_PAGE, "tt",
                          pg->count ? after : begins, pg->count ? "~" : "");
    dibs__roll_reset(&pg->roll);
    pg->roll.now_us = dibsx_now() / 1000;
    pg->count = 0;
    pg->more = false;
    while (rc == DIBS_OK) {
        rc = dibs__sqlite_row(cn, stmt, err);
        if (rc == DIBS_OK) {
            rc = page_add(pg, stmt, begins, err);
            if (rc != DIBS_OK)
                dibs__sqlite_reset(stmt);
        }
    }
    return rc == DIBS_NOTFOUND ? DIBS_OK : rc;
}

/* DIBS_NOTFOUND: the caller has seen enough. */
static dibs_status page_show(const page *pg, dibs__display *dp, dibs_error *err)
{
    for (size_t i = 0; i < pg->count; i++) {
        const page_name *at = &pg->names[i];
        dibs__roll roll = pg->roll;
        size_t count;

        roll.parties += at->first;
        roll.count = at->count;
        if (!dibs__display_room(dp, at->count))
            return dibsx_nomem(err, "the entries of a name");
        count = dibs__roll_show(&roll, dp->entries);
        if (count && !dp->each(at->name, dp->entries, count, dp->arg))
            return DIBS_NOTFOUND;
    }
    return DIBS_OK;
}

dibs_status dibs__sqlite_list(struct dibs__store *st, const char *begins,
                              dibsx_nsec deadline, dibs__entries_fn *each,
                              void *arg, dibs_error *err)
{
    dibs__sqlite_conn *cn = dibs__sqlite_conn_of(st, DIBS__SQLITE_LEASE);
    dibs__display dp = {.each = each, .arg = arg};
    page *pg = dibsx_zalloc(sizeof(*pg));
    dibs_status rc = DIBS_OK;

    if (!pg)
        return dibsx_nomem(err, "a page of names");
    do {
        rc = dibs__sqlite_enter(cn, deadline, err);
        if (rc != DIBS_OK)
            break;
        rc = page_read(cn, pg, begins, err);
        dibs__sqlite_leave(cn);
        if (rc == DIBS_OK)
            rc = page_show(pg, &dp, err);
    } while (rc == DIBS_OK && pg->more);
    dibs__roll_fini(&pg->roll);
    dibs__display_fini(&dp);
    dibsx_free(pg);
    return rc == DIBS_NOTFOUND ? DIBS_OK : rc;
}
