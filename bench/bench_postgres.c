/* bench_postgres.c - locks and limits on a PostgreSQL server, beside the bare driver.
 *
 *     bench_postgres pair BLOCKS URL   one thread, beside pg_try_advisory_lock and
 *                                      unlock through libpq, prepared
 *     bench_postgres crew BLOCKS URL   32 threads, beside one
 *     bench_postgres draw BLOCKS URL   a token of a limit, beside an UPDATE of a row of
 *                                      a table that is not logged either
 *     bench_postgres draws BLOCKS URL  8 threads that take tokens, beside 8 connections
 *                                      that update the row: "BARE OURS RATIO" in each
 *                                      second
 *
 * bench/pairs.h has the form of the other output. */
/* SPDX-License-Identifier: MIT */
#include "bench/limits.h"
#include "bench/pairs.h"
#include "bench/samples.h"

#include <libpq-fe.h>
#include <stdlib.h>
#include <string.h>

enum { CREW = 32, ONE_PAIRS = 300, DRAWERS = 8, DRAWS = 50 };

static void end_query(PGconn *pq, PGresult *result, const char *what)
{
    ExecStatusType status = PQresultStatus(result);

    if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK)
        give_up(what, PQerrorMessage(pq));
    PQclear(result);
}

static void run(PGconn *pq, const char *sql)
{
    end_query(pq, PQexec(pq, sql), sql);
}

static PGconn *connect_bare(const char *url)
{
    PGconn *pq = PQconnectdb(url);

    if (PQstatus(pq) != CONNECTION_OK)
        give_up("connect", PQerrorMessage(pq));
    return pq;
}

static void prepare(PGconn *pq, const char *name, const char *sql)
{
    end_query(pq, PQprepare(pq, name, sql, 0, NULL), sql);
}

static void run_prepared(PGconn *pq, const char *name)
{
    end_query(pq, PQexecPrepared(pq, name, 0, NULL, NULL, NULL, 0), name);
}

/* The least that a lock can cost here: it lives in the memory of the server, for
 * as long as the connection does. */
static void bare_pair(void *pq)
{
    run_prepared(pq, "lock");
    run_prepared(pq, "unlock");
}

static void measure_pair(PGconn *pq, dibs_client *client, size_t blocks)
{
    dibs_lock *lock = lock_new(client, 0, 0);

    prepare(pq, "lock", "SELECT pg_try_advisory_lock(1)");
    prepare(pq, "unlock", "SELECT pg_advisory_unlock(1)");
    measure_pairs(&(side){bare_pair, pq}, &(side){lock_pair, lock}, blocks);
    dibs_lock_free(lock);
}

static void measure_threads(dibs_client *client, size_t blocks)
{
    dibs_lock *lock = lock_new(client, CREW, 0);

    measure_crew(&(side){lock_pair, lock}, ONE_PAIRS, client, CREW, blocks);
    dibs_lock_free(lock);
}

/* ---- limits */

static void make_row(PGconn *pq)
{
    run(pq, "SET client_min_messages = warning");
    run(pq, "DROP TABLE IF EXISTS bench_raw_limit");
    run(pq, "CREATE UNLOGGED TABLE bench_raw_limit (id int PRIMARY KEY, "
            "taken bigint)");
    run(pq, "INSERT INTO bench_raw_limit VALUES (1, 0)");
}

static void prepare_update(PGconn *pq)
{
    prepare(pq, "take",
            "UPDATE bench_raw_limit SET taken = taken + 1 "
            "WHERE id = 1 RETURNING taken");
}

/* The least that a token can cost here. */
static void bare_take(void *pq)
{
    run_prepared(pq, "take");
}

static void measure_draw(PGconn *pq, dibs_client *client, size_t blocks)
{
    dibs_limit *limit = limit_new(client, "bench-limit", 0);

    make_row(pq);
    prepare_update(pq);
    measure_pairs(&(side){bare_take, pq}, &(side){limit_take, limit}, blocks);
    dibs_limit_free(limit);
}

static void
measure_draws(PGconn *pq, dibs_client *client, size_t blocks, const char *url)
{
    dibs_limit *limit = limit_new(client, "bench-limit", 0);
    side theirs[DRAWERS], own[DRAWERS];
    crew *bare, *ours;

    make_row(pq);
    for (int i = 0; i < DRAWERS; i++) {
        theirs[i] = (side){bare_take, connect_bare(url)};
        prepare_update(theirs[i].arg);
        own[i] = (side){limit_take, limit};
    }
    bare = crew_new(theirs, DRAWERS, DRAWS);
    ours = crew_new(own, DRAWERS, DRAWS);
    measure_rates(&(side){crew_turn, bare}, &(side){crew_turn, ours},
                  DRAWERS * DRAWS, blocks);
    crew_free(bare);
    crew_free(ours);
    for (int i = 0; i < DRAWERS; i++)
        PQfinish(theirs[i].arg);
    dibs_limit_free(limit);
}

int main(int argc, char **argv)
{
    long count = argc == 4 ? strtol(argv[2], NULL, 10) : 0;
    dibs_client *client;
    PGconn *pq;

    if (count < 1 || count > 10000)
        give_up("usage", "bench_postgres pair|crew|draw|draws 1-10000 URL");
    pq = connect_bare(argv[3]);
    client = client_open(argv[3]);
    if (strcmp(argv[1], "pair") == 0)
        measure_pair(pq, client, (size_t)count);
    else if (strcmp(argv[1], "crew") == 0)
        measure_threads(client, (size_t)count);
    else if (strcmp(argv[1], "draw") == 0)
        measure_draw(pq, client, (size_t)count);
    else if (strcmp(argv[1], "draws") == 0)
        measure_draws(pq, client, (size_t)count, argv[3]);
    else
        give_up("usage", "bench_postgres measures pair, crew, draw or draws");
    dibs_close(client);
    PQfinish(pq);
    return 0;
}
