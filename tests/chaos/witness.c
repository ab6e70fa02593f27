/* witness.c - see witness.h. */
/* SPDX-License-Identifier: MIT */
#include "witness.h"
#include "witness_db.h"

#include <stdlib.h>

/* The rows of `effect` are in the order of their commits. `queue`: 0 the pool, 1 the line,
 * which is serial. `how`: outcome, of witness.h. */
static const char schema[] =
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
    witness_db *db;
};

witness *witness_open(const char *folder)
{
    witness *wn = calloc(1, sizeof(*wn));

    if (!wn)
        return NULL;
    wn->db = witness_db_open(folder, schema);
    if (wn->db)
        return wn;
    free(wn);
    return NULL;
}

void witness_close(witness *wn)
{
    if (!wn)
        return;
    witness_db_close(wn->db);
    free(wn);
}

void witness_push(witness *wn, int queue, uint64_t who, const pushed *all,
                  size_t count)
{
    static const char sql[] = "INSERT INTO push VALUES (?, ?, ?, 0, 0)";

    witness_db_run(wn->db, "BEGIN IMMEDIATE");
    for (size_t i = 0; i < count; i++)
        witness_db_insert(wn->db, sql, 3, all[i].seq, (uint64_t)queue, who);
    witness_db_run(wn->db, "COMMIT");
}

void witness_pushed(witness *wn, const pushed *all, size_t count)
{
    static const char sql[] = "UPDATE push SET how = ?, id = ? WHERE seq = ?";

    witness_db_run(wn->db, "BEGIN IMMEDIATE");
    for (size_t i = 0; i < count; i++)
        witness_db_insert(wn->db, sql, 3, (uint64_t)all[i].how, all[i].id,
                          all[i].seq);
    witness_db_run(wn->db, "COMMIT");
}

bool witness_effects(witness *wn, int queue, uint64_t who, const effect *all,
                     size_t count, bool (*is_valid)(void *arg), void *arg)
{
    static const char sql[] =
        "INSERT INTO effect VALUES (NULL, ?, ?, ?, ?, ?, ?)";
    bool valid;

    witness_db_run(wn->db, "BEGIN IMMEDIATE");
    for (size_t i = 0; i < count; i++)
        witness_db_insert(wn->db, sql, 6, (uint64_t)queue, all[i].id,
                          all[i].fence, (uint64_t)all[i].attempt, all[i].seq,
                          who);
    valid = is_valid(arg);
    witness_db_run(wn->db, valid ? "COMMIT" : "ROLLBACK");
    return valid;
}

void witness_told(witness *wn, int queue, const effect *all, size_t count)
{
    static const char sql[] = "INSERT INTO told VALUES (?, ?, ?, ?)";

    witness_db_run(wn->db, "BEGIN IMMEDIATE");
    for (size_t i = 0; i < count; i++)
        witness_db_insert(wn->db, sql, 4, (uint64_t)queue, all[i].id,
                          all[i].fence, (uint64_t)all[i].how);
    witness_db_run(wn->db, "COMMIT");
}

void witness_end(witness *wn, int queue, const left *at_end, uint64_t faults)
{
    static const char sql[] =
        "INSERT INTO final VALUES (?, ?, ?, ?, ?, ?, ?, ?)";

    witness_db_insert(wn->db, sql, 8, (uint64_t)queue, at_end->pushed,
                      at_end->acked, at_end->ready, at_end->later, at_end->out,
                      at_end->dead, faults);
}
