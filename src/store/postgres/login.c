/* login.c - lets libpq log in at a server, and reads along.
 *
 * libpq sends a password in clear text to every server that asks for it, be it an
 * impostor or a server whose TLS an attacker has stripped. So libpq logs in behind the
 * gate: this file reads the bytes of a server over TCP before libpq has them, until
 * they are encrypted or the server has let the client in. No byte of the server
 * reaches libpq before the gate is set: when libpq first wants to read, it has only
 * written to its socket.
 *
 * Owns nothing; runs on the thread that connects. */
/* SPDX-License-Identifier: MIT */
#include "store/postgres/login.h"
#include "base/fail.h"
#include "store/postgres/auth.h"
#include "store/postgres/error.h"
#include "store/postgres/exchange.h"
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

typedef struct login {
    dibs__pg_conn *cn;
    bool cleartext;
    ino_t socket; /* which libpq has; it may try several */
    size_t room;  /* bytes that the server may still send */
    dibs__pg_auth auth;
    dibs__pg_auth_verdict verdict;
} login;

static void ignore_notice(void *arg, const PGresult *notice)
{
    (void)arg;
    (void)notice;
}

/* Whether libpq has called a server in vain, or gave up before: it does not say, but
 * then it names the server, in whatever language. */
static bool has_tried(const dibs__pg_conn *cn)
{
    const char *message = dibs__pq.PQerrorMessage(cn->pq);
    const char *host = dibs__pq.PQhost(cn->pq);
    const char *port = dibs__pq.PQport(cn->pq);

    return host && *host && port && *port && strstr(message, host) &&
           strstr(message, port);
}

static ino_t socket_of(const dibs__pg_conn *cn)
{
    struct stat at;

    return fstat(dibs__pq.PQsocket(cn->pq), &at) == 0 ? at.st_ino : 0;
}

static bool is_local(int fd)
{
    struct sockaddr_storage here = {.ss_family = AF_UNSPEC};
    socklen_t len = sizeof(here);

    return getsockname(fd, (struct sockaddr *)&here, &len) == 0 &&
           here.ss_family == AF_UNIX;
}

/* Ends the gate of a socket that libpq has left for another. */
static void follow_socket(login *lg)
{
    dibs__pg_conn *cn = lg->cn;
    ino_t now = socket_of(cn);

    if (now == lg->socket)
        return;
    if (cn->gate.set)
        dibs__pg_gate_let_out(&cn->gate); /* its farewell */
    dibs__pg_gate_fini(&cn->gate);
    lg->auth = (dibs__pg_auth){.open = lg->cleartext};
    lg->socket = now;
}

/* Whether libpq waits for the one byte that says if there is to be encryption. */
static bool awaits_offer(const dibs__pg_conn *cn)
{
    ConnStatusType status = dibs__pq.PQstatus(cn->pq);

    return status == CONNECTION_SSL_STARTUP || status == CONNECTION_GSS_STARTUP;
}

/* As dibs__pg_gate_look. An offer is part of a message only if it is the first byte
 * of an error. */
static bool read_piece(void *arg, const char *piece, size_t len)
{
    login *lg = arg;

    if (awaits_offer(lg->cn)) {
        lg->auth = (dibs__pg_auth){.open = false};
        if (*piece != 'E')
            return true;
    }
    lg->verdict = dibs__pg_auth_read(&lg->auth, piece, len);
    return lg->verdict == DIBS__PG_AUTH_FINE;
}

/* Lets a piece through. The bytes behind an offer stay where they are until libpq has
 * understood that. */
static void let_in(login *lg)
{
    dibs__pg_conn *cn = lg->cn;
    PGconn *pq = cn->pq;
    bool encrypted = dibs__pq.PQsslInUse(pq) || dibs__pq.PQgssEncInUse(pq);
    bool one = !encrypted && awaits_offer(cn);
    size_t len;

    if (dibs__pg_waiting(dibs__pq.PQsocket(pq)) > 0)
        return;
    len = dibs__pg_gate_let_in(&cn->gate, one ? 1 : lg->room,
                               encrypted ? NULL : read_piece, lg);
    cn->received += len;
    lg->room -= len;
}

static dibs_status fail_verdict(dibs__pg_auth_verdict verdict, dibs_error *err)
{
    if (verdict == DIBS__PG_AUTH_CLEAR)
        return dibsx_fail(
            err, DIBS_DENIED,
            "the server asked for the password in clear text on a connection "
            "without TLS, and did not get it: use TLS (sslmode=verify-full), "
            "have the server ask for scram-sha-256, or allow it (cleartext=1)");
    return dibsx_fail(err, DIBS_UNAVAIL,
                      "the server made a request for a password that cannot "
                      "be; it may be no PostgreSQL: look at the URL");
}

/* libpq is about to read. */
static dibs_status admit_piece(login *lg, dibs_error *err)
{
    dibs__pg_conn *cn = lg->cn;
    int fd = dibs__pq.PQsocket(cn->pq);
    bool fits;

    if (!cn->gate.set && !lg->cleartext && !is_local(fd)) {
        if (!dibs__pg_gate_set(&cn->gate, fd))
            return dibsx_fail(err, DIBS_UNAVAIL,
                              "no descriptors are left for a connection to the "
                              "server: raise the limit of open files");
        lg->socket = socket_of(cn);
    }
    if (cn->gate.set) {
        fits = lg->room > 0;
        if (fits)
            let_in(lg);
    } else
        fits = dibs__pg_admit(cn, &lg->room);
    if (lg->verdict != DIBS__PG_AUTH_FINE)
        return fail_verdict(lg->verdict, err);
    if (!fits)
        return dibsx_fail(err, DIBS_UNAVAIL,
                          "the server sent more than any greeting has; it may "
                          "be no PostgreSQL: look at the URL");
    return DIBS_OK;
}

static dibs_status connect_pq(login *lg, dibsx_nsec deadline, dibs_error *err)
{
    PostgresPollingStatusType want = PGRES_POLLING_WRITING;
    dibs__pg_conn *cn = lg->cn;

    while (want != PGRES_POLLING_OK) {
        bool reads = want == PGRES_POLLING_READING;
        dibs_status rc = DIBS_OK;

        follow_socket(lg);
        if (dibs__pg_await(cn, reads ? POLLIN : POLLOUT, deadline) == 0)
            return dibsx_fail(err, DIBS_UNAVAIL,
                              "the server could not be reached in time");
        if (reads)
            rc = admit_piece(lg, err);
        if (rc != DIBS_OK)
            return rc;
        want = dibs__pq.PQconnectPoll(cn->pq);
        if (want == PGRES_POLLING_FAILED)
            return dibs__pg_fail_connect(dibs__pq.PQerrorMessage(cn->pq), true,
                                         err);
    }
    return DIBS_OK;
}

dibs_status dibs__pg_login(dibs__pg_conn *cn, bool cleartext,
                           dibsx_nsec deadline, dibs_error *err)
{
    login lg = {.cn = cn,
                .cleartext = cleartext,
                .room = DIBS__PG_ROOM_GREETING};
    dibs_status rc;

    if (dibs__pq.PQstatus(cn->pq) == CONNECTION_BAD)
        return dibs__pg_fail_connect(dibs__pq.PQerrorMessage(cn->pq),
                                     has_tried(cn), err);
    dibs__pq.PQsetNoticeReceiver(cn->pq, ignore_notice, NULL);
    dibs__pq.PQsetErrorVerbosity(cn->pq, PQERRORS_VERBOSE);
    rc = connect_pq(&lg, deadline, err);
    if (rc != DIBS_OK)
        return rc;
    dibs__pg_gate_lift(&cn->gate, dibs__pq.PQsocket(cn->pq));
    return dibs__pq.PQsetnonblocking(cn->pq, 1) == 0
               ? DIBS_OK
               : dibsx_fail(err, DIBS_UNAVAIL, "the connection was lost");
}
