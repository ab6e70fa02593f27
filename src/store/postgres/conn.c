/* conn.c - one connection to a server: made, asked and given up within a
 * deadline.
 *
 * Owns the PGconn. libpq never blocks here: every wait is a poll of ours
 * (exchange.c), and a connection on which an answer is overdue is closed, never
 * used again. */
/* SPDX-License-Identifier: MIT */
#include "store/postgres/conn.h"
#include "base/alloc.h"
#include "base/fail.h"
#include "base/forget.h"
#include "store/postgres/error.h"
#include "store/postgres/exchange.h"
#include "store/postgres/login.h"
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A statement is prepared when it is used for the third time: a program that
 * asks once or twice does without the extra round trip. */
enum { PREPARE_AT = 3, PREPARED = 255, NAME_MAX_LEN = 16 };

/* Every step finds its rows by an index, also when the tables were small the last
 * time that the server counted, and in the order of its arguments. A step can hang on
 * a lock only: each says for how long. The maximum is below DIBS__TOMB_MS: a hanging
 * request ends before the tombstone that keeps it from doing harm. There is no timeout
 * of the statement and no cancel: a server that waits for its standby would stop
 * waiting and report success. */
enum { LOCK_MAX_MS = 8000 };

#define SESSION                                                                \
    "SET lock_timeout = 8000; SET statement_timeout = 0; "                     \
    "SET idle_in_transaction_session_timeout = 8000; "                         \
    "SET default_transaction_isolation = 'read committed'; "                   \
    "SET jit = off; SET enable_seqscan = off; SET enable_bitmapscan = off; "   \
    "SET enable_hashjoin = off; SET enable_mergejoin = off; "                  \
    "SET plan_cache_mode = force_generic_plan"

/* The server gives up a statement whose client has gone, so that it takes no lock for
 * a client that has ended. Not every server can. */
#define WATCH_CLIENT     "SET client_connection_check_interval = 500"
#define WATCH_CLIENT_MIN 140000

/* libpq keeps for good every setting that a server reports, be it new each time. */
#define RECEIVED_MAX ((size_t)64 << 20)

#define IDLE_LOOK    (20 * DIBSX_MS)

dibs_status
dibs__pg_conn_run(dibs__pg_conn *cn, const char *sql, dibsx_nsec deadline,
                  PGresult **out, dibs_error *err)
{
    dibs__pg_outcome oc = {0};
    bool sent = dibs__pq.PQsendQuery(cn->pq, sql) == 1;
    dibs_status rc =
        dibs__pg_finish(cn, sent, DIBS__PG_ROOM, deadline, &oc, err);

    if (out)
        *out = oc.rows;
    else
        dibs__pq.PQclear(oc.rows);
    return rc;
}

static void name_of(dibs__pg_query query, char out[NAME_MAX_LEN])
{
    snprintf(out, NAME_MAX_LEN, "dibs%d", (int)query);
}

/* Prepares a statement that is used again and again. Where that does not work the
 * statement is sent whole. */
static void prepare_query(dibs__pg_conn *cn, dibs__pg_query query,
                          const char *text, dibsx_nsec deadline)
{
    char name[NAME_MAX_LEN];
    dibs__pg_outcome oc = {0};
    dibs_status rc;
    bool sent;

    if (cn->pooled || cn->uses[query] == PREPARED ||
        ++cn->uses[query] < PREPARE_AT)
        return;
    name_of(query, name);
    sent = dibs__pq.PQsendPrepare(cn->pq, name, text, 0, NULL) == 1;
    rc = dibs__pg_finish(cn, sent, DIBS__PG_ROOM, deadline, &oc, NULL);
    cn->uses[query] = rc == DIBS_OK ? PREPARED : 0;
    dibs__pq.PQclear(oc.rows);
}

static bool send_query(dibs__pg_conn *cn, dibs__pg_query query,
                       const char *text, const dibs__pg_args *args)
{
    char name[NAME_MAX_LEN];

    if (cn->uses[query] != PREPARED)
        return dibs__pq.PQsendQueryParams(cn->pq, text, args->count, NULL,
                                          args->values, args->lengths,
                                          args->formats, 1) == 1;
    name_of(query, name);
    return dibs__pq.PQsendQueryPrepared(cn->pq, name, args->count, args->values,
                                        args->lengths, args->formats, 1) == 1;
}

/* Queries for many rows have long answers. */
static size_t room_of(dibs__pg_query query)
{
    if (query == DIBS__PG_COMMIT || query == DIBS__PG_GET_MANY)
        return DIBS__PG_ROOM_VALUES;
    return query == DIBS__PG_INSPECT || query == DIBS__PG_LIST ||
                   query == DIBS__PG_VALUE_GET ||
                   query == DIBS__PG_VALUE_LIST || query == DIBS__PG_LOG_READ ||
                   query == DIBS__PG_RESERVE || query == DIBS__PG_PEEK ||
                   query == DIBS__PG_PEEK_DEAD ||
                   query == DIBS__PG_QUEUE_LIST || query == DIBS__PG_FIRST ||
                   query == DIBS__PG_ROSTERS || query == DIBS__PG_ROLL_CALL
               ? DIBS__PG_ROOM_ROWS
               : DIBS__PG_ROOM;
}

/* For how long the server may wait for a lock: until shortly before the deadline of
 * the caller. A caller that learns in time of a failure knows that nothing has
 * changed, and keeps the connection. */
static int64_t lock_ms_of(dibsx_nsec deadline)
{
    int64_t left_ms = dibsx_wait_ms(deadline, dibsx_now());
    int64_t wait_ms = left_ms - left_ms / 4;

    if (left_ms < 0 || wait_ms > LOCK_MAX_MS)
        return LOCK_MAX_MS;
    return wait_ms > 0 ? wait_ms : 1; /* 0 is for ever */
}

dibs_status dibs__pg_conn_ask(dibs__pg_conn *cn, const dibs__pg_texts *texts,
                              dibs__pg_query query, const dibs__pg_args *args,
                              dibsx_nsec deadline, PGresult **out, bool *again,
                              dibs_error *err)
{
    const char *text = cn->pooled ? texts->pooled[query] : texts->of[query];
    dibs__pg_args with = *args;
    dibs__pg_outcome oc = {0};
    dibs_status rc;
    bool sent;

    *again = false;
    prepare_query(cn, query, text, deadline);
    if (cn->dead) {
        *again = true;
        return dibsx_fail(err, DIBS_UNAVAIL,
                          "the connection was lost before anything was sent");
    }
    if (dibs__pg_waits(query))
        dibs__pg_arg_int(&with, lock_ms_of(deadline));
    sent = send_query(cn, query, text, &with);
    rc = dibs__pg_finish(cn, sent, room_of(query), deadline, &oc, err);
    *out = oc.rows;
    if (rc == DIBS_OK || oc.fatal)
        return rc;
    *again = dibs__pg_again(oc.state);
    if (dibs__pg_stale(oc.state)) {
        *again = cn->pooled = true;
        memset(cn->uses, 0, sizeof(cn->uses));
    }
    return rc;
}

int dibs__pg_conn_fd(const dibs__pg_conn *cn)
{
    return cn->gate.set ? cn->gate.server_fd : dibs__pq.PQsocket(cn->pq);
}

bool dibs__pg_conn_is_worn(const dibs__pg_conn *cn)
{
    return cn->dead || cn->received > RECEIVED_MAX;
}

/* Servers send nothing unasked to an idle connection, but farewell. One that was used
 * just now is not checked. */
bool dibs__pg_conn_lives(const dibs__pg_conn *cn)
{
    struct pollfd at = {.fd = dibs__pg_conn_fd(cn), .events = POLLIN};

    if (cn->dead || at.fd < 0)
        return false;
    return dibsx_now() - cn->used_at < IDLE_LOOK || poll(&at, 1, 0) == 0;
}

void dibs__pg_conn_close(dibs__pg_conn *cn)
{
    if (!cn)
        return;
    dibs__pq.PQfinish(cn->pq);
    if (cn->gate.set)
        dibs__pg_gate_let_out(&cn->gate); /* its farewell */
    dibs__pg_gate_fini(&cn->gate);
    dibsx_free(cn);
}

dibs_status dibs__pg_version_odd(long long found, dibs_error *err)
{
    if (found > DIBS__PG_VERSION)
        return dibsx_fail(err, DIBS_REFUSED,
                          "the schema was made by a newer dibs; upgrade this "
                          "one (version %lld, %d is known)",
                          found, DIBS__PG_VERSION);
    return dibsx_fail(err, DIBS_REFUSED,
                      "the schema is of an older dibs; run `dibs store "
                      "upgrade` (version %lld, %d is needed)",
                      found, DIBS__PG_VERSION);
}

/* A pooler reports another process than the server's own. The doorbell may have a
 * connection of its own past it. */
static bool is_pooled(const dibs__pg_conn *cn, const dibs__pg_conf *conf,
                      dibs__pg_use use, long pid)
{
    bool apart = use == DIBS__PG_FOR_LISTEN && conf->listens_apart;

    if (conf->pooler == DIBS__PG_POOLER_NONE)
        return false;
    if (conf->pooler == DIBS__PG_POOLER_TRANSACTION && !apart)
        return true;
    return pid != dibs__pq.PQbackendPID(cn->pq);
}

/* Reads pid, recovery, isolation, and the version unless it is set up yet. */
static dibs_status
judge_server(dibs__pg_conn *cn, const dibs__pg_conf *conf, const PGresult *row,
             dibs__pg_use use, dibs_error *err)
{
    long pid = strtol(dibs__pg_text(row, 0, 0), NULL, 10);
    long long version = strtoll(dibs__pg_text(row, 0, 3), NULL, 10);

    cn->pooled = is_pooled(cn, conf, use, pid);
    if (*dibs__pg_text(row, 0, 1) == '1')
        return dibsx_fail(err, DIBS_UNAVAIL,
                          "the server is a standby, which is read-only; "
                          "connect to its primary");
    if (cn->pooled && strcmp(dibs__pg_text(row, 0, 2), "read committed") != 0)
        return dibsx_fail(err, DIBS_REFUSED,
                          "transactions are not \"read committed\" here; ALTER "
                          "ROLE ... SET default_transaction_isolation");
    if (use != DIBS__PG_FOR_SETUP && version != DIBS__PG_VERSION)
        return dibs__pg_version_odd(version, err);
    return DIBS_OK;
}

/* Settings that last as long as the session. */
static dibs_status
set_session(dibs__pg_conn *cn, dibsx_nsec deadline, dibs_error *err)
{
    dibs_status rc = dibs__pg_conn_run(cn, SESSION, deadline, NULL, err);

    if (rc != DIBS_OK || dibs__pq.PQserverVersion(cn->pq) < WATCH_CLIENT_MIN)
        return rc;
    rc = dibs__pg_conn_run(cn, WATCH_CLIENT, deadline, NULL, err);
    return cn->dead ? rc : DIBS_OK;
}

static dibs_status
greet_server(dibs__pg_conn *cn, const dibs__pg_conf *conf, dibs__pg_use use,
             dibsx_nsec deadline, dibs_error *err)
{
    bool setup = use == DIBS__PG_FOR_SETUP;
    char *sql = dibs__pg_with_schema(
        conf, setup ? "SELECT pg_backend_pid(), pg_is_in_recovery()::integer, "
                      "current_setting('transaction_isolation'), 0"
                    : "SELECT pg_backend_pid(), pg_is_in_recovery()::integer, "
                      "current_setting('transaction_isolation'), version FROM "
                      "@schema@.meta");
    PGresult *row = NULL;
    dibs_status rc;

    if (!sql)
        return dibsx_nomem(err, "a statement");
    rc = dibs__pg_conn_run(cn, sql, deadline, &row, err);
    dibsx_free(sql);
    if (rc == DIBS_OK && dibs__pq.PQntuples(row) != 1)
        rc = dibsx_fail(err, DIBS_REFUSED,
                        "the schema is not set up in this database; run `dibs "
                        "store init`");
    if (rc == DIBS_OK)
        rc = judge_server(cn, conf, row, use, err);
    dibs__pq.PQclear(row);
    return rc == DIBS_OK && !cn->pooled && !setup
               ? set_session(cn, deadline, err)
               : rc;
}

dibs_status
dibs__pg_conn_open(const dibs__pg_conf *conf, dibs__pg_use use,
                   dibsx_nsec deadline, dibs__pg_conn **out, dibs_error *err)
{
    const dibs__pg_words *words =
        use == DIBS__PG_FOR_LISTEN ? &conf->listen : &conf->steps;
    dibs__pg_conn *cn = dibsx_zalloc(sizeof(*cn));
    dibs_status rc;

    *out = NULL;
    if (cn)
        cn->pq =
            dibs__pq.PQconnectStartParams((const char *const *)words->names,
                                          (const char *const *)words->values,
                                          0);
    if (!cn || !cn->pq) {
        dibsx_free(cn);
        return dibsx_nomem(err, "a connection");
    }
    rc = dibs__pg_login(cn, conf->cleartext, deadline, err);
    dibsx_forget();
    if (rc == DIBS_OK)
        rc = greet_server(cn, conf, use, deadline, err);
    if (rc == DIBS_OK) {
        *out = cn;
        return rc;
    }
    dibs__pg_conn_close(cn);
    if (rc != DIBS_UNKNOWN)
        return rc;
    /* The greeting has changed nothing. */
    if (err)
        err->status = DIBS_UNAVAIL;
    return DIBS_UNAVAIL;
}
