/* queue_bare_postgres.c - a queue as a bare driver has it on PostgreSQL: a table. */
/* SPDX-License-Identifier: MIT */
#include "bench/queue_bare.h"
#include "bench/samples.h"

#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct bare {
    PGconn *conn[BARE_FLYING];
    char *url;
    const char *take;
};

/* One that takes from the queue locks its row first, and the others wait. */
#define TURN "WITH turn AS (SELECT FROM bench.queue FOR UPDATE) "
#define TAKE                                                                   \
    "DELETE FROM bench.item WHERE id = ANY (ARRAY(SELECT id FROM bench.item "  \
    "ORDER BY id LIMIT $1::integer FOR UPDATE SKIP LOCKED)) "

static void must(PGconn *pq, PGresult *result, const char *what)
{
    ExecStatusType status = PQresultStatus(result);

    if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK)
        give_up(what, PQerrorMessage(pq));
    PQclear(result);
}

static void run(PGconn *pq, const char *sql)
{
    must(pq, PQexec(pq, sql), sql);
}

/* Connections are made when they are needed first. */
static PGconn *conn_of(bare *b, int at)
{
    PGconn *pq = b->conn[at];

    if (pq)
        return pq;
    b->conn[at] = pq = PQconnectdb(b->url);
    if (PQstatus(pq) != CONNECTION_OK)
        give_up("connect", PQerrorMessage(pq));
    must(pq,
         PQprepare(pq, "push",
                   "INSERT INTO bench.item(data) SELECT repeat('x', 100) "
                   "FROM generate_series(1, $1::integer)",
                   1, NULL),
         "push");
    must(pq, PQprepare(pq, "take", b->take, 1, NULL), "take");
    return pq;
}

static bare *open_for(const char *url, const char *take)
{
    bare *b = calloc(1, sizeof(*b));
    PGconn *pq;

    if (!b || !(b->url = strdup(url)))
        give_up("bare", "out of memory");
    b->take = take;
    pq = PQconnectdb(url);
    if (PQstatus(pq) != CONNECTION_OK)
        give_up("connect", PQerrorMessage(pq));
    run(pq, "SET client_min_messages = warning");
    run(pq, "DROP SCHEMA IF EXISTS bench CASCADE");
    run(pq, "CREATE SCHEMA bench");
    run(pq, "CREATE TABLE bench.item(id bigserial PRIMARY KEY, data text)");
    run(pq, "CREATE TABLE bench.queue AS SELECT 'queue' AS name");
    PQfinish(pq);
    return b;
}

static bare *open_table(const char *url)
{
    return open_for(url, TAKE "RETURNING data");
}

/* The lock is in what is asked for, so that it is taken before any item is. */
static bare *open_turns(const char *url)
{
    return open_for(url, TURN TAKE "AND EXISTS (SELECT FROM turn) "
                                   "RETURNING data");
}

static void close_table(bare *b)
{
    for (int i = 0; i < BARE_FLYING; i++)
        PQfinish(b->conn[i]);
    free(b->url);
    free(b);
}

static void send_query(PGconn *pq, const char *name, int batch)
{
    char number[16];
    const char *const values[] = {number};

    snprintf(number, sizeof(number), "%d", batch);
    if (!PQsendQueryPrepared(pq, name, 1, values, NULL, NULL, 0))
        give_up(name, PQerrorMessage(pq));
}

static void read_result(PGconn *pq, const char *name, int batch)
{
    PGresult *result;

    while ((result = PQgetResult(pq)) != NULL) {
        if (strcmp(name, "take") == 0 && PQntuples(result) != batch)
            give_up("bare", "the table has too few items");
        must(pq, result, name);
    }
}

/* Every connection has one request on the way, and is asked in its turn. */
static void fly(bare *b, const char *name, int flying, int times, int batch)
{
    int sent = 0;

    for (; sent < flying && sent < times; sent++)
        send_query(conn_of(b, sent), name, batch);
    flying = sent;
    for (int i = 0; i < times; i++) {
        PGconn *pq = b->conn[i % flying];

        read_result(pq, name, batch);
        if (sent++ < times)
            send_query(pq, name, batch);
    }
}

static void push_table(bare *b, int flying, int times, int batch)
{
    fly(b, "push", flying, times, batch);
}

static void take_table(bare *b, int flying, int times, int batch)
{
    fly(b, "take", flying, times, batch);
}

const bare_ops bare_table = {open_table, close_table, push_table, take_table};
const bare_ops bare_turns = {open_turns, close_table, push_table, take_table};

long long bare_postgres_bytes(bare *b)
{
    PGresult *result =
        PQexec(conn_of(b, 0),
               "SELECT sum(pg_total_relation_size(c.oid)) FROM pg_class AS c "
               "JOIN pg_namespace AS n ON n.oid = c.relnamespace "
               "WHERE c.relkind = 'r' AND n.nspname IN ('dibs', 'bench')");
    long long bytes;

    if (PQresultStatus(result) != PGRES_TUPLES_OK)
        give_up("bytes", PQerrorMessage(b->conn[0]));
    bytes = strtoll(PQgetvalue(result, 0, 0), NULL, 10);
    PQclear(result);
    return bytes;
}
