/* witness.c - see witness.h. */
/* SPDX-License-Identifier: MIT */
#include "witness.h"
#include "witness_db.h"

#include <stdlib.h>
#include <time.h>

/* The rows of `effect` are in the order of their commits. `queue`: 0 the pool, 1 the line,
 * which is serial. `how`: outcome, `verb`: ending, of witness.h. */
static const char schema[] =
    "CREATE TABLE IF NOT EXISTS push (seq INTEGER PRIMARY KEY, queue INTEGER,"
    " who INTEGER, how INTEGER, id INTEGER, delay_ms INTEGER, tries INTEGER,"
    " sent_us INTEGER, told_us INTEGER);"
    "CREATE TABLE IF NOT EXISTS effect (number INTEGER PRIMARY KEY,"
    " queue INTEGER, id INTEGER, fence INTEGER, attempt INTEGER, seq INTEGER,"
    " who INTEGER, lost INTEGER, verb INTEGER, delay_ms INTEGER,"
    " at_us INTEGER);"
    "CREATE TABLE IF NOT EXISTS told (queue INTEGER, id INTEGER, fence INTEGER,"
    " how INTEGER, verb INTEGER, sent_us INTEGER);"
    "CREATE TABLE IF NOT EXISTS redrive (queue INTEGER, id INTEGER,"
    " seq INTEGER, how INTEGER);"
    "CREATE INDEX IF NOT EXISTS redrive_item ON redrive (queue, id);"
    "CREATE TABLE IF NOT EXISTS letter (queue INTEGER, id INTEGER,"
    " seq INTEGER, attempts INTEGER, lost INTEGER, reason INTEGER);"
    "CREATE TABLE IF NOT EXISTS address (seq INTEGER PRIMARY KEY,"
    " worker INTEGER);"
    "CREATE TABLE IF NOT EXISTS worker (who INTEGER PRIMARY KEY,"
    " worker INTEGER);"
    "CREATE TABLE IF NOT EXISTS loss (from_us INTEGER, to_us INTEGER);"
    "CREATE TABLE IF NOT EXISTS final (queue INTEGER, pushed INTEGER,"
    " acked INTEGER, ready INTEGER, later INTEGER, out INTEGER, dead INTEGER,"
    " faults INTEGER, nacked INTEGER, died INTEGER);";

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
    static const char sql[] =
        "INSERT INTO push VALUES (?, ?, ?, 0, 0, ?, ?, 0, 0)";
    static const char address[] = "INSERT INTO address VALUES (?, ?)";

    witness_db_run(wn->db, "BEGIN IMMEDIATE");
    for (size_t i = 0; i < count; i++) {
        witness_db_insert(wn->db, sql, 5, all[i].seq, (uint64_t)queue, who,
                          all[i].delay_ms, (uint64_t)all[i].tries);
        if (all[i].worker)
            witness_db_insert(wn->db, address, 2, all[i].seq,
                              (uint64_t)all[i].worker);
    }
    witness_db_run(wn->db, "COMMIT");
}

void witness_pushed(witness *wn, const pushed *all, size_t count)
{
    static const char sql[] = "UPDATE push SET how = ?, id = ?, sent_us = ?,"
                              " told_us = ? WHERE seq = ?";
    uint64_t told_us = wall_us();

    witness_db_run(wn->db, "BEGIN IMMEDIATE");
    for (size_t i = 0; i < count; i++)
        witness_db_insert(wn->db, sql, 5, (uint64_t)all[i].how, all[i].id,
                          all[i].sent_us, told_us, all[i].seq);
    witness_db_run(wn->db, "COMMIT");
}

void witness_worker(witness *wn, uint64_t who, uint32_t worker)
{
    witness_db_insert(wn->db, "INSERT INTO worker VALUES (?, ?)", 2, who,
                      (uint64_t)worker);
}

bool witness_effects(witness *wn, int queue, uint64_t who, const effect *all,
                     size_t count, bool (*is_valid)(void *arg), void *arg)
{
    static const char sql[] =
        "INSERT INTO effect VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
    bool valid;

    witness_db_run(wn->db, "BEGIN IMMEDIATE");
    for (size_t i = 0; i < count; i++)
        witness_db_insert(wn->db, sql, 10, (uint64_t)queue, all[i].id,
                          all[i].fence, (uint64_t)all[i].attempt, all[i].seq,
                          who, (uint64_t)all[i].lost, (uint64_t)all[i].end,
                          all[i].delay_ms, all[i].at_us);
    valid = is_valid(arg);
    witness_db_run(wn->db, valid ? "COMMIT" : "ROLLBACK");
    return valid;
}

void witness_told(witness *wn, int queue, const effect *all, size_t count)
{
    static const char sql[] = "INSERT INTO told VALUES (?, ?, ?, ?, ?, ?)";

    witness_db_run(wn->db, "BEGIN IMMEDIATE");
    for (size_t i = 0; i < count; i++)
        witness_db_insert(wn->db, sql, 6, (uint64_t)queue, all[i].id,
                          all[i].fence, (uint64_t)all[i].how,
                          (uint64_t)all[i].end, all[i].sent_us);
    witness_db_run(wn->db, "COMMIT");
}

void witness_redrive(witness *wn, int queue, const effect *dead)
{
    static const char sql[] = "INSERT INTO redrive VALUES (?, ?, ?, 0)";

    witness_db_insert(wn->db, sql, 3, (uint64_t)queue, dead->id, dead->seq);
}

void witness_redriven(witness *wn, int queue, const effect *dead, outcome how)
{
    static const char sql[] =
        "UPDATE redrive SET how = ? WHERE queue = ? AND id = ? AND how = 0";

    witness_db_insert(wn->db, sql, 3, (uint64_t)how, (uint64_t)queue, dead->id);
}

void witness_letter(witness *wn, int queue, const letter *lt)
{
    static const char sql[] = "INSERT INTO letter VALUES (?, ?, ?, ?, ?, ?)";

    witness_db_insert(wn->db, sql, 6, (uint64_t)queue, lt->id, lt->seq,
                      (uint64_t)lt->attempts, (uint64_t)lt->lost, lt->reason);
}

void witness_loss(witness *wn, uint64_t from_us, uint64_t to_us)
{
    witness_db_insert(wn->db, "INSERT INTO loss VALUES (?, ?)", 2, from_us,
                      to_us);
}

uint64_t wall_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

void witness_end(witness *wn, int queue, const left *at_end, uint64_t faults)
{
    static const char sql[] =
        "INSERT INTO final VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";

    witness_db_insert(wn->db, sql, 10, (uint64_t)queue, at_end->pushed,
                      at_end->acked, at_end->ready, at_end->later, at_end->out,
                      at_end->dead, faults, at_end->nacked, at_end->died);
}
