/* event_witness.c - see event_witness.h. */
/* SPDX-License-Identifier: MIT */
#include "event_witness.h"

/* The rows of `got`, `trim` and `accepted` are in the order of their commits. `how`: outcome,
 * of witness.h. `kind`: 0 an event, 1 a gap, 2 a fork, from `since` up to and with
 * `position`. `trimmed`: up to where trims had been announced by then. */
static const char schema[] =
    "CREATE TABLE IF NOT EXISTS publish (seq INTEGER PRIMARY KEY, who INTEGER,"
    " how INTEGER, position INTEGER);"
    "CREATE TABLE IF NOT EXISTS trim (number INTEGER PRIMARY KEY,"
    " through INTEGER);"
    "CREATE TABLE IF NOT EXISTS got (number INTEGER PRIMARY KEY, grp INTEGER,"
    " who INTEGER, turn INTEGER, kind INTEGER, since INTEGER,"
    " position INTEGER, seq INTEGER, trimmed INTEGER);"
    "CREATE INDEX IF NOT EXISTS got_position ON got (grp, position);"
    "CREATE TABLE IF NOT EXISTS accepted (number INTEGER PRIMARY KEY,"
    " grp INTEGER, who INTEGER, turn INTEGER, position INTEGER);"
    "CREATE TABLE IF NOT EXISTS final (last INTEGER, faults INTEGER);";

witness_db *event_witness_open(const char *folder)
{
    return witness_db_open(folder, schema);
}

void event_witness_publish(witness_db *db, uint64_t seq, uint64_t who)
{
    static const char sql[] = "INSERT INTO publish VALUES (?, ?, 0, 0)";

    witness_db_insert(db, sql, 2, seq, who);
}

void event_witness_published(witness_db *db, uint64_t seq, outcome how,
                             uint64_t position)
{
    static const char sql[] =
        "UPDATE publish SET how = ?, position = ? WHERE seq = ?";

    witness_db_insert(db, sql, 3, (uint64_t)how, position, seq);
}

void event_witness_trim(witness_db *db, uint64_t through)
{
    static const char sql[] = "INSERT INTO trim VALUES (NULL, ?)";

    witness_db_insert(db, sql, 1, through);
}

void event_witness_got(witness_db *db, const reading *by, uint64_t kind,
                       uint64_t from, uint64_t position, uint64_t seq)
{
    static const char sql[] =
        "INSERT INTO got VALUES (NULL, ?, ?, ?, ?, ?, ?, ?,"
        " coalesce((SELECT max(through) FROM trim), 0))";

    witness_db_insert(db, sql, 7, by->group, by->who, by->turn, kind, from,
                      position, seq);
}

void event_witness_accepted(witness_db *db, const reading *by,
                            const uint64_t *positions, size_t count)
{
    static const char sql[] = "INSERT INTO accepted VALUES (NULL, ?, ?, ?, ?)";

    witness_db_run(db, "BEGIN IMMEDIATE");
    for (size_t i = 0; i < count; i++)
        witness_db_insert(db, sql, 4, by->group, by->who, by->turn,
                          positions[i]);
    witness_db_run(db, "COMMIT");
}

uint64_t event_witness_last(witness_db *db, uint64_t group)
{
    static const char sql[] = "SELECT max(position) FROM got WHERE grp = ?";

    return witness_db_number(db, sql, 1, group);
}

void event_witness_end(witness_db *db, uint64_t last, uint64_t faults)
{
    static const char sql[] = "INSERT INTO final VALUES (?, ?)";

    witness_db_insert(db, sql, 2, last, faults);
}
