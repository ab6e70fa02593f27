/* server.h - a real redis-server for a test, on a loopback port and a unix
 * socket, in a folder of its own.
 *
 * It is ended with the thread that started it, whatever becomes of that, so it
 * is started from a thread that lives as long as the test. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_TESTS_REDIS_SERVER_H
#define DIBS_TESTS_REDIS_SERVER_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum { SERVER_ARGS_MAX = 24 };

typedef struct server {
    pid_t pid; /* 0 when it does not run */
    int port;
    int tls_port; /* 0 when it has none */
    char dir[64];
    char socket[80];
    char cert[32]; /* which of certs.h it shows; "": no TLS */
    bool aof;
    bool sentinel;
    bool paused;
    char host[16];          /* on which it listens */
    const char *clock_path; /* of a clock_shim, borrowed; NULL: none */
    const char *args[SERVER_ARGS_MAX + 1]; /* further ones, borrowed */
} server;

/* Where one is, if not on 127.0.0.1 with the clock of the machine. */
typedef struct server_place {
    const char *host;       /* NULL: 127.0.0.1 */
    const char *clock_path; /* of a clock_shim, borrowed; NULL: none */
} server_place;

/* Starts one there that keeps its data over a restart, or nothing. */
bool server_start_at(server *sv, const server_place *at, bool durable,
                     const char *const *args);

/* Starts one that keeps its data over a restart (AOF, synced every second), with
 * further arguments up to a NULL. False when it does not come up; why is on
 * stderr. End with server_stop(). */
bool server_start(server *sv, const char *const *args);

/* The same, kept nowhere: a restart begins with nothing. */
bool server_start_forgetful(server *sv, const char *const *args);

/* With a TLS port as well, showing this certificate of certs.h; it wants one of
 * its clients. */
bool server_start_tls(server *sv, const char *cert);

/* A sentinel, with these lines of configuration. `host`: NULL: 127.0.0.1. */
bool server_start_sentinel(server *sv, const char *host, const char *lines);

/* Ends it and removes its folder. A server that was not started is a no-op. */
void server_stop(server *sv);

/* Waits until what the server has done is written to its file: while an older
 * part is being synced, it keeps the newer for a while. */
void server_await_written(const server *sv);

void server_kill(server *sv); /* -9, and waits until it is gone */
void server_forget(
    const server *sv); /* removes what one that was killed kept */
/* Cuts off so many bytes of the end of what one that was killed kept, in whole transactions
 * and an eighth of it at most. False: there is nothing to cut. */
bool server_lose(const server *sv, size_t bytes);
bool server_restart(server *sv); /* on the same ports, with what it kept */
void server_pause(server *sv);   /* SIGSTOP: it is there and does not answer */
void server_resume(server *sv);

/* Runs a command, words up to a NULL, on a connection of its own; the reply is
 * as asker_read() has it. NULL when there was none. Free it with free(). Any
 * thread. */
char *server_ask(const server *sv, ...) __attribute__((sentinel));

/* Runs a command; false when it was an error or had no reply. */
bool server_tell(const server *sv, ...) __attribute__((sentinel));

/* The number of a field of `INFO SECTION`, of a command's statistics that of the
 * calls, of an error's how often; -1 when it is not there. */
long long server_info(const server *sv, const char *section, const char *field);

/* Makes the server refuse writes for want of replicas, until it has refused one.
 * A thread sees to that; the end waits for it. */
typedef struct server_refusal {
    const server *sv;
    pthread_t thread;
    long long before;
} server_refusal;

bool server_refusal_begin(server_refusal *rf, const server *sv);
void server_refusal_end(server_refusal *rf);

enum { SERVER_URL_MAX = 400 };

/* Whether it runs and is a master. */
bool server_is_master(const server *sv);

/* The URLs by which a client reaches it. */
void server_url(const server *sv, char out[SERVER_URL_MAX]);
void server_unix_url(const server *sv, char out[SERVER_URL_MAX]);
void server_tls_url(const server *sv, const char *host,
                    char out[SERVER_URL_MAX]);

#endif
