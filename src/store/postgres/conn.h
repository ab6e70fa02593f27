/* conn.h - one connection to a server: made, asked and given up within a
 * deadline.
 *
 * Used by one thread at a time. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_POSTGRES_CONN_H
#define DIBS_STORE_POSTGRES_CONN_H

#include "base/clock.h"
#include "store/postgres/gate.h"
#include "store/postgres/query.h"
#include "store/postgres/schema.h"

typedef struct dibs__pg_conn {
    PGconn *pq;
    struct dibs__pg_conn *next; /* of those that are idle */
    struct dibs__pg_pool *home; /* to which it belongs, or NULL */
    bool pooled;  /* a pooler is in between: nothing lasts beyond a statement */
    bool dead;    /* of no more use */
    unsigned era; /* of its pool when it was made */
    size_t received;        /* bytes, since it was made */
    size_t received_before; /* until the exchange that is under way */
    dibs__pg_gate gate;
    void (*on_notice)(void *arg, const char *text); /* or NULL */
    void *notice_arg;
    dibsx_nsec used_at;
    unsigned char uses[DIBS__PG_QUERIES]; /* up to when it is prepared */
} dibs__pg_conn;

/* The purpose of a connection. */
typedef enum dibs__pg_use {
    DIBS__PG_FOR_STEPS,
    DIBS__PG_FOR_LISTEN,
    DIBS__PG_FOR_SETUP /* whatever the schema is like */
} dibs__pg_use;

/* Connects, and makes sure that server and schema are fit.
 *   DIBS_UNAVAIL  not reached in time, or read-only
 *   DIBS_DENIED   the server refused the user, its certificate is bad, or it asked
 *                 for the password in clear text where others could read it
 *   DIBS_REFUSED  the schema is not there, or of another version; TLS and none
 *                 met
 *   DIBS_INVALID  there is no such database, or libpq cannot use the URL
 * Close it with dibs__pg_conn_close(). */
DIBS_MUST_CHECK dibs_status dibs__pg_conn_open(const dibs__pg_conf *conf,
                                               dibs__pg_use use,
                                               dibsx_nsec deadline,
                                               dibs__pg_conn **out,
                                               dibs_error *err);
void dibs__pg_conn_close(dibs__pg_conn *cn); /* NULL is a no-op */

/* Whether it is of no more use, or has received so much that another had better be
 * made. */
bool dibs__pg_conn_is_worn(const dibs__pg_conn *cn);

/* Whether an idle connection is still there, as far as is known at once. */
bool dibs__pg_conn_lives(const dibs__pg_conn *cn);

/* The descriptor that can be read when the server has said something. */
int dibs__pg_conn_fd(const dibs__pg_conn *cn);

/* Asks one of the queries. DIBS_OK: *out has its rows; free it with PQclear. Else
 * as in dibs__pg_fail(); DIBS_UNKNOWN when no answer came. *again: it has changed
 * nothing and may be asked again at once, of this connection unless that is dead.
 */
DIBS_MUST_CHECK dibs_status dibs__pg_conn_ask(
    dibs__pg_conn *cn, const dibs__pg_texts *texts, dibs__pg_query query,
    const dibs__pg_args *args, dibsx_nsec deadline, PGresult **out, bool *again,
    dibs_error *err);

/* Runs SQL as it is, several statements perhaps. *out, which may be NULL, is the
 * last result, in text. */
DIBS_MUST_CHECK dibs_status dibs__pg_conn_run(dibs__pg_conn *cn,
                                              const char *sql,
                                              dibsx_nsec deadline,
                                              PGresult **out, dibs_error *err);

/* The refusal of a schema of another version. */
dibs_status dibs__pg_version_odd(long long found, dibs_error *err);

#endif
