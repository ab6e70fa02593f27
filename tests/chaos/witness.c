/* witness.c - see witness.h. */
/* SPDX-License-Identifier: MIT */
#include "witness.h"

#include <limits.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum { BUSY_MS = 120000, STATEMENTS = 8 };

/* The rows of `effect` are in the order of their commits. `queue`: 0 the pool, 1 the line,
 * which is serial. `how`: outcome, of witness.h. */
static const char schema[] =
    "PRAGMA journal_mode = WAL;"
    "CREATE TABLE IF NOT EXISTS push (seq INTEGER PRIMARY KEY, queue INTEGER,"
    " who INTEGER, how INTEGER, id INTEGER);"
    "CREATE TABLE IF NOT EXISTS effect (number INTEGER PRIMARY KEY,"
    " queue INTEGER, id INTEGER, fence INTEGER, attempt INTEGER, seq INTEGER,"
    " who INTEGER);"
    "CREATE TABLE IF NOT EXISTS told (queue INTEGER, id INTEGER, fence INTEGER,"
    " how INTEGER);"
    "CREATE TABLE IF NOT EXISTS final (queue INTEGER, pushed INTEGER,"
    " acked INTEGER, ready INTEGER, later INTEGER, out INTEGER, dead INTEGER,"
    " faults INTEGER);";

struct witness {
    sqlite3 *db;
    struct {
        const char *sql; /* a literal: known by its address */
        sqlite3_stmt *stmt;
    } known[STATEMENTS];
};

_Noreturn static void fail(const witness *wn, const char *what)
{
    fprintf(stderr, "the witness: %s: %s\n", what, sqlite3_errmsg(wn->db));
    _Exit(2);
}

static void run(witness *wn, const char *sql)
{
    if (sqlite3_exec(wn->db, sql, NULL, NULL, NULL) != SQLITE_OK)
        fail(wn, sql);
}

static sqlite3_stmt *prepare(witness *wn, const char *sql)
{
    size_t i = 0;

    while (i < STATEMENTS - 1 && wn->known[i].sql && wn->known[i].sql != sql)
        i++;
    if (wn->known[i].sql != sql) {
        sqlite3_finalize(wn->known[i].stmt);
        if (sqlite3_prepare_v2(wn->db, sql, -1, &wn->known[i].stmt, NULL) !=
            SQLITE_OK)
            fail(wn, sql);
        wn->known[i].sql = sql;
    }
    return wn->known[i].stmt;
}

/* Numbers as uint64_t. */
static void insert(witness *wn, const char *sql, int count, ...)
{
    sqlite3_stmt *stmt = prepare(wn, sql);
    va_list args;

    va_start(args, count);
    for (int i = 1; i <= count; i++)
        sqlite3_bind_int64(stmt, i, (sqlite3_int64)va_arg(args, uint64_t));
    va_end(args);
    if (sqlite3_step(stmt) != SQLITE_DONE)
        fail(wn, sql);
    sqlite3_reset(stmt);
}

witness *witness_open(const char *folder)
{
    witness *wn = calloc(1, sizeof(*wn));
    char path[PATH_MAX];

    snprintf(path, sizeof(path), "%s/witness.db", folder);
    if (!wn)
        return NULL;
    if (sqlite3_open(path, &wn->db) != SQLITE_OK) {
        fprintf(stderr, "%s: %s\n", path, sqlite3_errmsg(wn->db));
        witness_close(wn);
        return NULL;
    }
    sqlite3_busy_timeout(wn->db, BUSY_MS);
    run(wn, schema);
    /* It survives the death of processes, if not of the machine. */
    run(wn, "PRAGMA synchronous = OFF");
    return wn;
}

void witness_close(witness *wn)
{
    if (!wn)
        return;
    for (size_t i = 0; i < STATEMENTS; i++)
        sqlite3_finalize(wn->known[i].stmt);
    sqlite3_close(wn->db);
    free(wn);
}

void witness_push(witness *wn, int queue, uint64_t who, const pushed *all,
                  size_t count)
{
    static const char sql[] = "INSERT INTO push VALUES (?, ?, ?, 0, 0)";

    run(wn, "BEGIN IMMEDIATE");
    for (size_t i = 0; i < count; i++)
        insert(wn, sql, 3, all[i].seq, (uint64_t)queue, who);
    run(wn, "COMMIT");
}

void witness_pushed(witness *wn, const pushed *all, size_t count)
{
    static const char sql[] = "UPDATE push SET how = ?, id = ? WHERE seq = ?";

    run(wn, "BEGIN IMMEDIATE");
    for (size_t i = 0; i < count; i++)
        insert(wn, sql, 3, (uint64_t)all[i].how, all[i].id, all[i].seq);
    run(wn, "COMMIT");
}

bool witness_effects(witness *wn, int queue, uint64_t who, const effect *all,
                     size_t count, bool (*is_valid)(void *arg), void *arg)
{
    static const char sql[] =
        "INSERT INTO effect VALUES (NULL, ?, ?, ?, ?, ?, ?)";
    bool valid;

    run(wn, "BEGIN IMMEDIATE");
    for (size_t i = 0; i < count; i++)
        insert(wn, sql, 6, (uint64_t)queue, all[i].id, all[i].fence,
               (uint64_t)all[i].attempt, all[i].seq, who);
    valid = is_valid(arg);
    run(wn, valid ? "COMMIT" : "ROLLBACK");
    return valid;
}

void witness_told(witness *wn, int queue, const effect *all, size_t count)
{
    static const char sql[] = "INSERT INTO told VALUES (?, ?, ?, ?)";

    run(wn, "BEGIN IMMEDIATE");
    for (size_t i = 0; i < count; i++)
        insert(wn, sql, 4, (uint64_t)queue, all[i].id, all[i].fence,
               (uint64_t)all[i].how);
    run(wn, "COMMIT");
}

void witness_end(witness *wn, int queue, const left *at_end, uint64_t faults)
{
    static const char sql[] =
        "INSERT INTO final VALUES (?, ?, ?, ?, ?, ?, ?, ?)";

    insert(wn, sql, 8, (uint64_t)queue, at_end->pushed, at_end->acked,
           at_end->ready, at_end->later, at_end->out, at_end->dead, faults);
}
