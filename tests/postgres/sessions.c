/* sessions.c - see sessions.h. */
/* SPDX-License-Identifier: MIT */
#include "sessions.h"

#include <poll.h>
#include <stdarg.h>
#include <stdlib.h>

PGconn *session[SESSIONS];
char queue[32];

int tell(PGconn *pq, char *out, const char *format, ...)
{
    char sql[SQL_MAX];
    PGresult *result;
    va_list args;
    int rows;

    va_start(args, format);
    vsnprintf(sql, sizeof(sql), format, args);
    va_end(args);
    result = PQexec(pq, sql);
    if (PQresultStatus(result) != PGRES_TUPLES_OK &&
        PQresultStatus(result) != PGRES_COMMAND_OK)
        fail_msg("%s: %s", sql, PQresultErrorMessage(result));
    rows = PQntuples(result);
    if (out)
        snprintf(out, SQL_MAX, "%s", rows ? PQgetvalue(result, 0, 0) : "");
    PQclear(result);
    return rows;
}

long long count(const char *what)
{
    char sql[SQL_MAX];

    snprintf(sql, sizeof(sql), "SELECT count(*) FROM dibs.%s", what);
    return pg_number(&world_sv, sql);
}

bool is_over(PGconn *pq)
{
    assert_int_equal(PQconsumeInput(pq), 1);
    return !PQisBusy(pq);
}

void await_second(PGconn *pq)
{
    dibsx_nsec end = dibsx_after_ms(dibsx_now(), PG_BOUND_MS);

    while (!is_over(pq) && count("meta WHERE EXISTS (SELECT FROM pg_locks "
                                 "WHERE NOT granted)") == 0) {
        IN_TIME(dibsx_now() < end);
        poll(NULL, 0, 1);
    }
}

int finish(PGconn *pq)
{
    PGresult *result = PQgetResult(pq);
    int rows = PQntuples(result);

    assert_int_equal(PQresultStatus(result), PGRES_TUPLES_OK);
    while (result) {
        PQclear(result);
        result = PQgetResult(pq);
    }
    return rows;
}

long long looked_at(void)
{
    char sum[SQL_MAX];

    tell(session[0], sum,
         "SELECT sum(pg_stat_get_xact_tuples_returned(c.oid)) FROM pg_class AS "
         "c WHERE c.relnamespace = 'dibs'::regnamespace AND c.relkind IN "
         "('r', 'i')");
    return strtoll(sum, NULL, 10);
}

int open_sessions(void **state)
{
    static int number;

    (void)state;
    snprintf(queue, sizeof(queue), "jobs%d", number++);
    for (int i = 0; i < SESSIONS; i++)
        session[i] = pg_connect(&world_sv);
    return session[0] && session[1] ? 0 : -1;
}

int close_sessions(void **state)
{
    (void)state;
    for (int i = 0; i < SESSIONS; i++)
        PQfinish(session[i]);
    return 0;
}
