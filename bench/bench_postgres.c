/* bench_postgres.c - locks on a PostgreSQL server, beside the bare driver.
 *
 *     bench_postgres pair BLOCKS URL   one thread, beside pg_try_advisory_lock and
 *                                      unlock through libpq
 *     bench_postgres crew BLOCKS URL   32 threads, beside one
 *
 * bench/pairs.h has the form of the output. */
/* SPDX-License-Identifier: MIT */
#include "bench/pairs.h"
#include "bench/samples.h"

#include <libpq-fe.h>
#include <stdlib.h>
#include <string.h>

enum { CREW = 32, ONE_PAIRS = 300 };

static void run(PGconn *pq, const char *sql)
{
    PGresult *result = PQexec(pq, sql);

    if (PQresultStatus(result) != PGRES_TUPLES_OK)
        give_up(sql, PQerrorMessage(pq));
    PQclear(result);
}

/* The least that a lock can cost here: it lives in the memory of the server, for
 * as long as the connection does. */
static void bare_pair(void *pq)
{
    run(pq, "SELECT pg_try_advisory_lock(1)");
    run(pq, "SELECT pg_advisory_unlock(1)");
}

int main(int argc, char **argv)
{
    long count = argc == 4 ? strtol(argv[2], NULL, 10) : 0;
    dibs_client *client;
    dibs_lock *lock;
    PGconn *pq;

    if (count < 1 || count > 10000)
        give_up("usage", "bench_postgres pair|crew 1-10000 URL");
    pq = PQconnectdb(argv[3]);
    if (PQstatus(pq) != CONNECTION_OK)
        give_up("connect", PQerrorMessage(pq));
    client = client_open(argv[3]);
    lock = lock_new(client, CREW, 0);
    if (strcmp(argv[1], "pair") == 0)
        measure_pairs(&(side){bare_pair, pq}, &(side){lock_pair, lock},
                      (size_t)count);
    else if (strcmp(argv[1], "crew") == 0)
        measure_crew(&(side){lock_pair, lock}, ONE_PAIRS, client, CREW,
                     (size_t)count);
    else
        give_up("usage", "bench_postgres measures pair or crew");
    dibs_lock_free(lock);
    dibs_close(client);
    PQfinish(pq);
    return 0;
}
