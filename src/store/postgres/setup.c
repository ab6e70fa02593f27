/* setup.c - the schema: looked at, made, brought up to date.
 *
 * One transaction under one lock: of many programs that do it at once, one does the
 * work and the others find it done. Any thread. */
/* SPDX-License-Identifier: MIT */
#include "base/alloc.h"
#include "base/fail.h"
#include "store/postgres/error.h"
#include "store/postgres/postgres_store.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern const char dibs__pg_tables_1_leases[]; /* sql/tables/1_leases.sql, ... */
extern const char dibs__pg_tables_2_rates[];
extern const char dibs__pg_tables_3_rosters[];
extern const char dibs__pg_tables_4_meters[];
extern const char dibs__pg_tables_5_logs[];
extern const char dibs__pg_tables_5_queues[];
extern const char dibs__pg_tables_6_entries[];
extern const char dibs__pg_tables_7_records[];
extern const char dibs__pg_sql_grant[]; /* sql/grant.sql, ... */
extern const char dibs__pg_sql_lease[];
extern const char dibs__pg_sql_batch[];
extern const char dibs__pg_sql_turn[];
extern const char dibs__pg_sql_topic[];
extern const char dibs__pg_sql_value[];
extern const char dibs__pg_sql_log[];
extern const char dibs__pg_sql_rate[];
extern const char dibs__pg_sql_roster[];
extern const char dibs__pg_sql_meter[];
extern const char dibs__pg_sql_commit[];
extern const char dibs__pg_sql_queue_common[];
extern const char dibs__pg_sql_queue_item[];
extern const char dibs__pg_sql_queue_lane[];
extern const char dibs__pg_sql_queue_step[];
extern const char dibs__pg_sql_queue_settle[];
extern const char dibs__pg_sql_queue_admin[];

/* The SQL that makes version `version` of the tables out of the one before it; 0 is no
 * schema. */
static const struct {
    int version;
    const char *sql;
} tables[] = {
    {1, dibs__pg_tables_1_leases},  {2, dibs__pg_tables_2_rates},
    {3, dibs__pg_tables_3_rosters}, {4, dibs__pg_tables_4_meters},
    {5, dibs__pg_tables_5_logs},    {5, dibs__pg_tables_5_queues},
    {6, dibs__pg_tables_6_entries}, {7, dibs__pg_tables_7_records},
};

/* The functions are those of this version: they replace all that are there. */
static const char *const functions[] = {
    dibs__pg_sql_grant,       dibs__pg_sql_lease,
    dibs__pg_sql_batch,       dibs__pg_sql_turn,
    dibs__pg_sql_topic,       dibs__pg_sql_value,
    dibs__pg_sql_log,         dibs__pg_sql_rate,
    dibs__pg_sql_roster,      dibs__pg_sql_meter,
    dibs__pg_sql_commit,      dibs__pg_sql_queue_common,
    dibs__pg_sql_queue_item,  dibs__pg_sql_queue_lane,
    dibs__pg_sql_queue_step,  dibs__pg_sql_queue_settle,
    dibs__pg_sql_queue_admin,
};

enum {
    TABLES = sizeof(tables) / sizeof(tables[0]),
    FUNCTIONS = sizeof(functions) / sizeof(functions[0])
};

static dibs_status
run_sql(dibs__pg_conn *cn, const dibs__pg_conf *conf, const char *sql,
        dibsx_nsec deadline, PGresult **out, dibs_error *err)
{
    char *text = dibs__pg_with_schema(conf, sql);
    dibs_status rc;

    if (!text)
        return dibsx_nomem(err, "a statement");
    rc = dibs__pg_conn_run(cn, text, deadline, out, err);
    dibsx_free(text);
    return rc;
}

/* The one cell that a statement answers, as a number. */
static dibs_status
read_number(dibs__pg_conn *cn, const dibs__pg_conf *conf, const char *sql,
            dibsx_nsec deadline, int *out, dibs_error *err)
{
    PGresult *rows = NULL;
    dibs_status rc = run_sql(cn, conf, sql, deadline, &rows, err);

    if (rc == DIBS_OK)
        *out = dibs__pq.PQntuples(rows) == 1
                   ? (int)strtol(dibs__pg_text(rows, 0, 0), NULL, 10)
                   : 0;
    dibs__pq.PQclear(rows);
    return rc;
}

static dibs_status
find_version(dibs__pg_conn *cn, const dibs__pg_conf *conf, dibsx_nsec deadline,
             int *found, dibs_error *err)
{
    dibs_status rc = read_number(
        cn, conf, "SELECT (to_regclass('@schema@.meta') IS NOT NULL)::integer",
        deadline, found, err);

    if (rc == DIBS_OK && *found)
        rc = read_number(cn, conf, "SELECT version FROM @schema@.meta",
                         deadline, found, err);
    return rc;
}

/* Refuses a task that does not fit the version found. */
static dibs_status
check_version(dibs_store_task task, int found, dibs_error *err)
{
    if (found > DIBS__PG_VERSION)
        return dibs__pg_version_odd(found, err);
    if (task == DIBS_STORE_INIT && found > 0 && found < DIBS__PG_VERSION)
        return dibs__pg_version_odd(found, err);
    if (task == DIBS_STORE_UPGRADE && found == 0)
        return dibsx_fail(err, DIBS_REFUSED,
                          "there is no schema to upgrade; run `dibs store "
                          "init`");
    return DIBS_OK;
}

static dibs_status write_version(dibs__pg_conn *cn, const dibs__pg_conf *conf,
                                 dibsx_nsec deadline, dibs_error *err)
{
    char sql[64];

    snprintf(sql, sizeof(sql), "UPDATE @schema@.meta SET version = %d",
             DIBS__PG_VERSION);
    return run_sql(cn, conf, sql, deadline, NULL, err);
}

static dibs_status make_schema(dibs__pg_conn *cn, const dibs__pg_conf *conf,
                               int from, dibsx_nsec deadline, dibs_error *err)
{
    int there = 0;
    dibs_status rc =
        read_number(cn, conf,
                    "SELECT (to_regnamespace('@schema@') IS NOT NULL)::integer",
                    deadline, &there, err);

    if (rc == DIBS_OK && !there)
        rc = run_sql(cn, conf, "CREATE SCHEMA @schema@", deadline, NULL, err);
    for (size_t i = 0; i < TABLES && rc == DIBS_OK; i++)
        if (tables[i].version > from)
            rc = run_sql(cn, conf, tables[i].sql, deadline, NULL, err);
    for (size_t i = 0; i < FUNCTIONS && rc == DIBS_OK; i++)
        rc = run_sql(cn, conf, functions[i], deadline, NULL, err);
    return rc == DIBS_OK ? write_version(cn, conf, deadline, err) : rc;
}

/* Inside the transaction, under the lock. */
static dibs_status change_schema(dibs__pg_conn *cn, const dibs__pg_conf *conf,
                                 dibs_store_task task, dibsx_nsec deadline,
                                 dibs_store_state *out, dibs_error *err)
{
    dibs_status rc = find_version(cn, conf, deadline, &out->found, err);

    if (rc == DIBS_OK)
        rc = check_version(task, out->found, err);
    if (rc != DIBS_OK || out->found == DIBS__PG_VERSION)
        return rc;
    rc = make_schema(cn, conf, out->found, deadline, err);
    out->changed = rc == DIBS_OK;
    return rc == DIBS_OK ? find_version(cn, conf, deadline, &out->found, err)
                         : rc;
}

dibs_status
dibs__pg_setup(dibs__store *st, dibs_store_task task, dibsx_nsec deadline,
               dibs_store_state *out, dibs_error *err)
{
    const dibs__pg_conf *conf = &dibs__pg_of(st)->conf;
    dibs__pg_conn *cn = NULL;
    dibs_status rc =
        dibs__pg_conn_open(conf, DIBS__PG_FOR_SETUP, deadline, &cn, err);

    out->needed = true;
    out->known = DIBS__PG_VERSION;
    if (rc != DIBS_OK)
        return rc;
    if (task == DIBS_STORE_STATUS) {
        rc = find_version(cn, conf, deadline, &out->found, err);
    } else {
        rc = dibs__pg_conn_run(cn,
                               "BEGIN ISOLATION LEVEL READ COMMITTED; SELECT "
                               "pg_advisory_xact_lock(1684628083, 0)",
                               deadline, NULL, err);
        if (rc == DIBS_OK)
            rc = change_schema(cn, conf, task, deadline, out, err);
        if (rc == DIBS_OK)
            rc = dibs__pg_conn_run(cn, "COMMIT", deadline, NULL, err);
    }
    out->changed = out->changed && rc == DIBS_OK;
    dibs__pg_conn_close(cn);
    return rc;
}
