/* setup.c - the schema: looked at, made, brought up to date.
 *
 * One transaction under one lock: of many programs that do it at once, one does the
 * work and the others find it done. Any thread. */
/* SPDX-License-Identifier: MIT */
#include "base/alloc.h"
#include "base/fail.h"
#include "store/postgres/error.h"
#include "store/postgres/postgres_store.h"
#include <stdlib.h>
#include <string.h>

extern const char dibs__pg_sql_schema[]; /* sql/schema.sql, and so on */
extern const char dibs__pg_sql_grant[];
extern const char dibs__pg_sql_lease[];
extern const char dibs__pg_sql_batch[];
extern const char dibs__pg_sql_turn[];
extern const char dibs__pg_sql_topic[];
extern const char dibs__pg_sql_value[];
extern const char dibs__pg_sql_rate[];
extern const char dibs__pg_sql_roster[];
extern const char dibs__pg_sql_meter[];
extern const char dibs__pg_sql_events[];
extern const char dibs__pg_sql_queue[];
extern const char dibs__pg_sql_commit[];
extern const char dibs__pg_sql_done[];
extern const char dibs__pg_sql_queue_common[];
extern const char dibs__pg_sql_queue_item[];
extern const char dibs__pg_sql_queue_step[];
extern const char dibs__pg_sql_queue_admin[];
extern const char dibs__pg_sql_hand_over[];
extern const char dibs__pg_sql_dead_worker[];
extern const char dibs__pg_sql_show[];
extern const char dibs__pg_sql_meet[];
extern const char dibs__pg_sql_serve[];
extern const char dibs__pg_sql_settle[];
extern const char dibs__pg_sql_bury[];
extern const char dibs__pg_sql_outcome[];

enum { PARTS_MAX = 8 };

/* The SQL that makes version i + 1 out of version i; 0 is no schema. */
static const char *const makers[DIBS__PG_VERSION][PARTS_MAX] = {
    {dibs__pg_sql_schema, dibs__pg_sql_grant, dibs__pg_sql_lease,
     dibs__pg_sql_batch, dibs__pg_sql_turn, dibs__pg_sql_topic,
     dibs__pg_sql_value},
    {dibs__pg_sql_rate},
    {dibs__pg_sql_roster},
    {dibs__pg_sql_meter},
    {dibs__pg_sql_events, dibs__pg_sql_queue},
    {dibs__pg_sql_commit},
    {dibs__pg_sql_done, dibs__pg_sql_queue_common, dibs__pg_sql_queue_item,
     dibs__pg_sql_queue_step, dibs__pg_sql_queue_admin},
    {dibs__pg_sql_hand_over},
    {dibs__pg_sql_dead_worker},
    {dibs__pg_sql_show},
    {dibs__pg_sql_meet},
    {dibs__pg_sql_serve},
    {dibs__pg_sql_settle},
    {dibs__pg_sql_bury, dibs__pg_sql_outcome},
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
    for (int i = from; i < DIBS__PG_VERSION; i++)
        for (size_t k = 0; k < PARTS_MAX && makers[i][k] && rc == DIBS_OK; k++)
            rc = run_sql(cn, conf, makers[i][k], deadline, NULL, err);
    return rc;
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
