/* server.h - a real PostgreSQL cluster for a test, on a loopback port and a unix
 * socket, in a folder of its own, with the schema set up.
 *
 * It runs as a user without rights: as root, it becomes "postgres" or "nobody". It
 * is ended with the thread that started it, whatever becomes of that, so it is
 * started from a thread that lives as long as the test. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_TESTS_POSTGRES_SERVER_H
#define DIBS_TESTS_POSTGRES_SERVER_H

#include <libpq-fe.h>
#include <stdbool.h>
#include <sys/types.h>

enum { PG_URL_MAX = 512, PG_SETTINGS_MAX = 8 };

/* What a standby calls itself; the program that copies a primary does not. */
#define PG_STANDBY "standby"

typedef struct pg_server {
    pid_t pid; /* 0 when it does not run */
    pid_t bouncer_pid;
    int port;
    int bouncer_port;
    int sessions; /* that the pooler shares out; 0: 10 */
    char dir[64];
    char cert[32];       /* which of certs.h it shows; "": no TLS */
    bool durable;        /* waits for the disk; set it before a restart */
    const char *primary; /* of a standby: the URL of its primary */
} pg_server;

/* Makes a cluster and starts it; the user "dibs" owns all. False when it does not
 * come up; why is on stderr. End with pg_stop(). */
bool pg_start(pg_server *sv);

/* The same with TLS, showing this certificate of certs.h. */
bool pg_start_tls(pg_server *sv, const char *cert);

/* An asynchronous standby of another server. It has what that has. */
bool pg_start_standby(pg_server *sv, const pg_server *primary);

/* From now on, nothing is answered that the standby does not have; the same goes
 * when it has taken over. Waits until that is so. */
bool pg_make_synchronous(const pg_server *primary, const pg_server *standby);

/* Waits until a standby has all that there is, and keeps up. */
bool pg_await_synchronous(const pg_server *primary);

/* Ends it and removes its folder. A server that was not started is a no-op. */
void pg_stop(pg_server *sv);

/* Makes a server that has ended a standby of another, on its port, with nothing
 * of what it had. */
bool pg_follow(pg_server *sv, const pg_server *primary);

void pg_kill(pg_server *sv);    /* at once, without a checkpoint, and waits */
void pg_crash(pg_server *sv);   /* kill -9 of all of it, and waits */
bool pg_restart(pg_server *sv); /* on the same port, with what it kept */
void pg_pause(pg_server *sv);   /* SIGSTOP to all of it */
void pg_resume(pg_server *sv);

/* Starts pgbouncer in transaction mode before it. */
bool pg_start_bouncer(pg_server *sv);

/* Runs SQL as the owner. */
bool pg_tell(const pg_server *sv, const char *sql);

/* The first cell that it answers as a number; -1 when it fails or has none. */
long long pg_number(const pg_server *sv, const char *sql);

/* The same through the pooler. */
long long pg_pooled_number(const pg_server *sv, const char *sql);

/* A connection of the owner, or NULL; end it with PQfinish(). */
PGconn *pg_connect(const pg_server *sv);

/* Runs those lines of a file that begin with CREATE ROLE, GRANT or REVOKE. */
bool pg_tell_rights(const pg_server *sv, const char *path);

/* The URLs by which a client reaches it. */
void pg_url(const pg_server *sv, char out[PG_URL_MAX]);
void pg_unix_url(const pg_server *sv, char out[PG_URL_MAX]);
void pg_tls_url(const pg_server *sv, const char *host, char out[PG_URL_MAX]);
void pg_role_url(const pg_server *sv, const char *role, char out[PG_URL_MAX]);
/* Through the pooler: with the doorbell past it, and without. */
void pg_bouncer_url(const pg_server *sv, char out[PG_URL_MAX]);
void pg_pooled_url(const pg_server *sv, char out[PG_URL_MAX]);

#endif
