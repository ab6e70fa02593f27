/* party.c - rows of the table party: read, written, swept.
 *
 * Owns nothing. Every function runs inside a transaction of its caller. */
/* SPDX-License-Identifier: MIT */
#include "base/fail.h"
#include "store/sqlite/db.h"
#include <stdio.h>
#include <string.h>

/* How long a party must have been dead to be swept. A step on its name drops it at
 * once. */
#define SWEPT_AFTER_US ((int64_t)60 * 1000 * 1000)

static bool
read_text(sqlite3_stmt *stmt, int column, char *out, size_t size, size_t *len)
{
    const char *text = (const char *)dibs__sql.column_text(stmt, column);

    if (!text)
        return false;
    *len = (size_t)dibs__sql.column_bytes(stmt, column);
    if (*len >= size || memchr(text, '\0', *len))
        return false;
    memcpy(out, text, *len + 1);
    return true;
}

static bool read_int(sqlite3_stmt *stmt, int column, int64_t low, int64_t high,
                     int64_t *out)
{
    *out = dibs__sql.column_int64(stmt, column);
    return *out >= low && *out <= high;
}

static bool party_read(sqlite3_stmt *stmt, dibs__party *party)
{
    int64_t role, mode, permits, capacity, priority, seq, fence, claim, tell;
    size_t owner_len, len;

    if (!read_text(stmt, 0, party->owner, sizeof(party->owner), &owner_len) ||
        owner_len != DIBS_OWNER_SIZE - 1 ||
        !read_int(stmt, 1, DIBS__HOLDER, DIBS__TOMB, &role) ||
        !read_int(stmt, 2, DIBS__EXCLUSIVE, DIBS__PERMITS, &mode) ||
        !read_int(stmt, 3, 0, UINT32_MAX, &permits) ||
        !read_int(stmt, 4, 0, UINT32_MAX, &capacity) ||
        !read_int(stmt, 5, INT32_MIN, INT32_MAX, &priority) ||
        !read_int(stmt, 6, 0, INT64_MAX, &seq) ||
        !read_int(stmt, 7, 0, INT64_MAX, &fence) ||
        !read_int(stmt, 8, 0, 1, &claim) ||
        !read_int(stmt, 9, 0, INT64_MAX, &party->ttl_ms) ||
        !read_int(stmt, 10, 0, INT64_MAX, &party->since_us) ||
        !read_int(stmt, 11, 0, INT64_MAX, &party->until_us) ||
        !read_text(stmt, 12, party->bell, sizeof(party->bell), &len) ||
        !read_text(stmt, 13, party->who, sizeof(party->who), &len) ||
        !read_int(stmt, 14, 0, 1, &tell))
        return false;
    if ((role == DIBS__HOLDER && fence == 0) ||
        party->ttl_ms > DIBS__SPAN_MAX_MS)
        return false;
    party->role = (dibs__role)role;
    party->mode = (dibs__mode)mode;
    party->permits = (uint32_t)permits;
    party->capacity = (uint32_t)capacity;
    party->priority = (int32_t)priority;
    party->seq = (uint64_t)seq;
    party->fence = (uint64_t)fence;
    party->claim = claim != 0;
    party->tell = tell != 0;
    return true;
}

static dibs_status fail_row(dibs_error *err)
{
    return dibsx_fail(err, DIBS_INTERNAL,
                      "the table party holds a row that is none; run `dibs "
                      "doctor`");
}

dibs_status
dibs__sqlite_party_read(sqlite3_stmt *stmt, dibs__party *party, dibs_error *err)
{
    return party_read(stmt, party) ? DIBS_OK : fail_row(err);
}

/* A lease does not last longer than one can be asked for. */
static bool lasts_too_long(const dibs__roll *roll, const dibs__party *party)
{
    int64_t most_ms =
        party->ttl_ms > DIBS__LEASE_MAX_MS ? party->ttl_ms : DIBS__LEASE_MAX_MS;

    return party->role == DIBS__HOLDER &&
           party->until_us - roll->now_us > most_ms * 1000;
}

dibs_status
dibs__sqlite_roll_load(dibs__sqlite_conn *cn, const char *name, dibs_error *err)
{
    dibs__roll *roll = &cn->roll;
    sqlite3_stmt *stmt;
    dibs_status rc =
        dibs__sqlite_ask(cn, &stmt, err, DIBS__SQL_PARTY_ROLL, "t", name);

    dibs__roll_reset(roll);
    roll->watermark = cn->watermark;
    roll->now_us = dibsx_now() / 1000;
    roll->now_wall_us = dibsx_wall_us();
    while (rc == DIBS_OK) {
        dibs__party *party;

        rc = dibs__sqlite_row(cn, stmt, err);
        if (rc != DIBS_OK)
            break;
        party = dibs__roll_add(roll);
        rc = party ? dibs__sqlite_party_read(stmt, party, err)
                   : dibsx_nomem(err, "the parties of a name");
        if (rc == DIBS_OK && lasts_too_long(roll, party))
            rc = fail_row(err);
        if (rc != DIBS_OK)
            dibs__sqlite_reset(stmt);
    }
    return rc == DIBS_NOTFOUND ? DIBS_OK : rc;
}

static dibs_status put_party(dibs__sqlite_conn *cn, const char *name,
                             const dibs__party *party, dibs_error *err)
{
    return dibs__sqlite_run(cn, err, DIBS__SQL_PARTY_PUT, "ttiiiiiiiiiiitti",
                            name, party->owner, (int64_t)party->role,
                            (int64_t)party->mode, (int64_t)party->permits,
                            (int64_t)party->capacity, (int64_t)party->priority,
                            (int64_t)party->seq, (int64_t)party->fence,
                            (int64_t)party->claim, party->ttl_ms,
                            party->since_us, party->until_us, party->bell,
                            party->who, (int64_t)party->tell);
}

void dibs__sqlite_roll_notify(dibs__sqlite_conn *cn)
{
    for (size_t i = 0; i < cn->roll.count; i++)
        if (cn->roll.parties[i].notify)
            dibs__sqlite_notices_add(&cn->notices, &cn->roll.parties[i]);
}

dibs_status
dibs__sqlite_roll_save(dibs__sqlite_conn *cn, const char *name, dibs_error *err)
{
    dibs_status rc = DIBS_OK;

    for (size_t i = 0; i < cn->roll.count && rc == DIBS_OK; i++) {
        const dibs__party *party = &cn->roll.parties[i];

        if (party->mark == DIBS__ADDED || party->mark == DIBS__CHANGED)
            rc = put_party(cn, name, party, err);
        else if (party->mark == DIBS__DROPPED)
            rc = dibs__sqlite_run(cn, err, DIBS__SQL_PARTY_DROP, "tt", name,
                                  party->owner);
    }
    dibs__sqlite_roll_notify(cn);
    cn->watermark = cn->roll.watermark;
    return rc;
}

/* The first text that a query answers; "" when there is none. */
static dibs_status
one_text(dibs__sqlite_conn *cn, dibs__sqlite_query query, const char *arg,
         char *out, size_t size, dibs_error *err)
{
    sqlite3_stmt *stmt;
    dibs_status rc = dibs__sqlite_ask(cn, &stmt, err, query, "t", arg);
    size_t len;

    out[0] = '\0';
    if (rc == DIBS_OK)
        rc = dibs__sqlite_row(cn, stmt, err);
    if (rc != DIBS_OK)
        return rc == DIBS_NOTFOUND ? DIBS_OK : rc;
    if (!read_text(stmt, 0, out, size, &len))
        out[0] = '\0';
    dibs__sqlite_reset(stmt);
    return DIBS_OK;
}

dibs_status dibs__sqlite_sweep(dibs__sqlite_conn *cn, dibs_error *err)
{
    char from[DIBS_NAME_MAX + 1], to[DIBS_NAME_MAX + 1];
    int64_t dead_us = cn->roll.now_us - SWEPT_AFTER_US;
    dibs_status rc =
        one_text(cn, DIBS__SQL_META, "swept", from, sizeof(from), err);

    if (rc == DIBS_OK)
        rc = one_text(cn, DIBS__SQL_PARTY_SWEPT, from, to, sizeof(to), err);
    if (rc == DIBS_OK)
        rc = dibs__sqlite_run(cn, err, DIBS__SQL_PARTY_SWEEP, "ti", from,
                              dead_us);
    /* Past the end `to` is empty, and the next sweep begins anew. */
    if (rc == DIBS_OK && strcmp(from, to) != 0)
        rc = dibs__sqlite_run(cn, err, DIBS__SQL_META_SET, "tt", "swept", to);
    return rc;
}
