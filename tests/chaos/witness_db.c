/* witness_db.c - see witness_db.h. Owns the connection and its statements. */
/* SPDX-License-Identifier: MIT */
#include "witness_db.h"

#include <limits.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum { BUSY_MS = 120000, STATEMENTS = 8 };

struct witness_db {
    sqlite3 *db;
    struct {
        const char *sql; /* a literal: known by its address */
        sqlite3_stmt *stmt;
    } known[STATEMENTS];
};

_Noreturn static void fail(const witness_db *db, const char *what)
{
    fprintf(stderr, "the witness: %s: %s\n", what, sqlite3_errmsg(db->db));
    _Exit(2);
}

void witness_db_run(witness_db *db, const char *sql)
{
    if (sqlite3_exec(db->db, sql, NULL, NULL, NULL) != SQLITE_OK)
        fail(db, sql);
}

static sqlite3_stmt *prepare(witness_db *db, const char *sql)
{
    size_t i = 0;

    while (i < STATEMENTS - 1 && db->known[i].sql && db->known[i].sql != sql)
        i++;
    if (db->known[i].sql != sql) {
        sqlite3_finalize(db->known[i].stmt);
        if (sqlite3_prepare_v2(db->db, sql, -1, &db->known[i].stmt, NULL) !=
            SQLITE_OK)
            fail(db, sql);
        db->known[i].sql = sql;
    }
    return db->known[i].stmt;
}

static void bind_all(sqlite3_stmt *stmt, int count, va_list args)
{
    for (int i = 1; i <= count; i++)
        sqlite3_bind_int64(stmt, i, (sqlite3_int64)va_arg(args, uint64_t));
}

void witness_db_insert(witness_db *db, const char *sql, int count, ...)
{
    sqlite3_stmt *stmt = prepare(db, sql);
    va_list args;

    va_start(args, count);
    bind_all(stmt, count, args);
    va_end(args);
    if (sqlite3_step(stmt) != SQLITE_DONE)
        fail(db, sql);
    sqlite3_reset(stmt);
}

uint64_t witness_db_number(witness_db *db, const char *sql, int count, ...)
{
    sqlite3_stmt *stmt = prepare(db, sql);
    va_list args;
    uint64_t number;

    va_start(args, count);
    bind_all(stmt, count, args);
    va_end(args);
    if (sqlite3_step(stmt) != SQLITE_ROW)
        fail(db, sql);
    number = (uint64_t)sqlite3_column_int64(stmt, 0);
    sqlite3_reset(stmt);
    return number;
}

witness_db *witness_db_open(const char *folder, const char *schema)
{
    witness_db *db = calloc(1, sizeof(*db));
    char path[PATH_MAX];

    snprintf(path, sizeof(path), "%s/witness.db", folder);
    if (!db)
        return NULL;
    if (sqlite3_open(path, &db->db) != SQLITE_OK) {
        fprintf(stderr, "%s: %s\n", path, sqlite3_errmsg(db->db));
        witness_db_close(db);
        return NULL;
    }
    sqlite3_busy_timeout(db->db, BUSY_MS);
    witness_db_run(db, "PRAGMA journal_mode = WAL");
    witness_db_run(db, schema);
    /* It survives the death of processes, if not of the machine. */
    witness_db_run(db, "PRAGMA synchronous = OFF");
    return db;
}

void witness_db_close(witness_db *db)
{
    if (!db)
        return;
    for (size_t i = 0; i < STATEMENTS; i++)
        sqlite3_finalize(db->known[i].stmt);
    sqlite3_close(db->db);
    free(db);
}
