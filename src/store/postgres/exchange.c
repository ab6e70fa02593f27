/* exchange.c - sends on a connection and receives the answer.
 *
 * Owns nothing; runs on the thread that has the connection. No loop goes on
 * without a look at the clock: a server that sends without a pause would otherwise
 * keep the reader for ever. */
/* SPDX-License-Identifier: MIT */
#include "store/postgres/exchange.h"
#include "base/fail.h"
#include "store/postgres/error.h"
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

static const char late[] = "the server did not answer in time";
static const char much[] =
    "the server sent more than any answer has; it may be "
    "no PostgreSQL: look at the URL";
static const char copy[] = "the server began a COPY, which nothing had asked "
                           "for; it may be no PostgreSQL: look at the URL";

/* The message of libpq or of the server as one line. */
static void one_line(const char *text, char out[DIBS__PG_MESSAGE])
{
    size_t len = strcspn(text ? text : "", "\n");

    if (len >= DIBS__PG_MESSAGE)
        len = DIBS__PG_MESSAGE - 1;
    snprintf(out, DIBS__PG_MESSAGE, "%.*s", (int)len, text ? text : "");
}

/* One look at what can be done, through the gate. */
static int await_gate(dibs__pg_conn *cn, short events, int wait_ms)
{
    dibs__pg_gate *gate = &cn->gate;
    struct pollfd at[] = {
        {.fd = gate->server_fd,
         .events = (short)(POLLIN | (gate->out_len > 0 ? POLLOUT : 0))},
        {.fd = gate->libpq_fd, .events = gate->out_len > 0 ? 0 : POLLIN},
        {.fd = events & POLLOUT ? dibs__pq.PQsocket(cn->pq) : -1,
         .events = POLLOUT}};
    int ready;

    if (dibs__pg_waiting(dibs__pq.PQsocket(cn->pq)) > 0)
        return POLLIN;
    ready = poll(at, 3, wait_ms);
    if (ready <= 0)
        return ready < 0 && errno != EINTR ? POLLERR : 0;
    if (at[1].revents || at[0].revents & POLLOUT)
        dibs__pg_gate_let_out(gate);
    return at[0].revents & ~POLLOUT ? POLLIN : events & POLLOUT;
}

static int await_socket(const dibs__pg_conn *cn, short events, int wait_ms)
{
    struct pollfd at = {.fd = dibs__pq.PQsocket(cn->pq), .events = events};
    int ready = poll(&at, 1, wait_ms);

    if (ready < 0)
        return errno == EINTR ? 0 : POLLERR;
    return ready > 0 ? at.revents : 0;
}

int dibs__pg_await(dibs__pg_conn *cn, short events, dibsx_nsec deadline)
{
    dibsx_nsec now;

    while ((now = dibsx_now()) < deadline) {
        int64_t span_ms = dibsx_wait_ms(deadline, now);
        int wait_ms = span_ms < 0 || span_ms > 60000 ? 60000 : (int)span_ms;
        int ready = cn->gate.set ? await_gate(cn, events, wait_ms)
                                 : await_socket(cn, events, wait_ms);

        if (ready)
            return ready;
    }
    return 0;
}

bool dibs__pg_admit(dibs__pg_conn *cn, size_t *room)
{
    size_t waiting = dibs__pg_waiting(dibs__pq.PQsocket(cn->pq));

    cn->received += waiting;
    if (waiting > *room) {
        *room = 0;
        return false;
    }
    *room -= waiting;
    return true;
}

/* libpq keeps them until they are asked for. */
static void pass_notices(dibs__pg_conn *cn)
{
    PGnotify *notice;

    while ((notice = dibs__pq.PQnotifies(cn->pq)) != NULL) {
        if (cn->on_notice)
            cn->on_notice(cn->notice_arg, notice->extra);
        dibs__pq.PQfreemem(notice);
    }
}

/* Lets a piece through and has libpq take all of it. */
static bool take_piece(dibs__pg_conn *cn, size_t *room)
{
    int fd = dibs__pq.PQsocket(cn->pq);

    if (dibs__pg_waiting(fd) == 0) {
        size_t len = dibs__pg_gate_let_in(&cn->gate, *room, NULL, NULL);

        cn->received += len;
        *room -= len;
    }
    do
        if (!dibs__pq.PQconsumeInput(cn->pq))
            return false;
    while (dibs__pg_waiting(fd) > 0);
    return *room > 0;
}

/* There can be more by the time that libpq reads than this look sees. Where it sees
 * as much as few answers are, the gate bounds what libpq gets. */
static bool take_all(dibs__pg_conn *cn, size_t *room)
{
    size_t waiting = dibs__pg_waiting(dibs__pq.PQsocket(cn->pq));

    if (cn->received - cn->received_before + waiting > DIBS__PG_GATE_PIECE &&
        dibs__pg_gate_set(&cn->gate, dibs__pq.PQsocket(cn->pq)))
        return take_piece(cn, room);
    return dibs__pg_admit(cn, room) && dibs__pq.PQconsumeInput(cn->pq);
}

bool dibs__pg_take_in(dibs__pg_conn *cn, size_t *room)
{
    bool there = cn->gate.set ? take_piece(cn, room) : take_all(cn, room);

    if (there)
        pass_notices(cn);
    return there;
}

static void note_error(const PGresult *result, dibs__pg_outcome *oc)
{
    const char *state = dibs__pq.PQresultErrorField(result, PG_DIAG_SQLSTATE);
    const char *severity =
        dibs__pq.PQresultErrorField(result, PG_DIAG_SEVERITY_NONLOCALIZED);

    if (oc->failed)
        return;
    oc->failed = true;
    oc->fatal = !state || !severity || strcmp(severity, "ERROR") != 0;
    snprintf(oc->state, sizeof(oc->state), "%s", state ? state : "");
    one_line(dibs__pq.PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY),
             oc->message);
}

/* libpq would answer that it is in a COPY for ever. */
static bool is_copy(ExecStatusType status)
{
    return status == PGRES_COPY_IN || status == PGRES_COPY_OUT ||
           status == PGRES_COPY_BOTH;
}

static void note_result(PGresult *result, dibs__pg_outcome *oc)
{
    ExecStatusType status = dibs__pq.PQresultStatus(result);

    if (status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK) {
        dibs__pq.PQclear(oc->rows);
        oc->rows = result;
        return;
    }
    if (is_copy(status))
        oc->fault = copy;
    else
        note_error(result, oc);
    dibs__pq.PQclear(result);
}

/* Gives what was queued to the kernel, and takes what comes meanwhile. */
static bool flush_requests(dibs__pg_conn *cn, size_t *room, dibsx_nsec deadline,
                           dibs__pg_outcome *oc)
{
    int left;

    while ((left = dibs__pq.PQflush(cn->pq)) == 1) {
        int ready = dibs__pg_await(cn, POLLIN | POLLOUT, deadline);

        if (ready != 0 && (!(ready & POLLIN) || dibs__pg_take_in(cn, room)))
            continue;
        if (ready == 0 || *room == 0)
            oc->fault = ready == 0 ? late : much;
        return false;
    }
    return left == 0;
}

/* Waits until libpq can tell a result without waiting. */
static bool await_result(dibs__pg_conn *cn, size_t *room, dibsx_nsec deadline,
                         dibs__pg_outcome *oc)
{
    while (dibs__pq.PQisBusy(cn->pq)) {
        if (dibs__pg_await(cn, POLLIN, deadline) == 0)
            oc->fault = late;
        else if (dibs__pg_take_in(cn, room))
            continue;
        else if (*room == 0)
            oc->fault = much;
        break;
    }
    if (!oc->fault && dibsx_now() >= deadline)
        oc->fault = late;
    return !oc->fault;
}

/* Reads all that belongs to what was sent: that the last statement was committed
 * is only known when the server is ready for the next. */
static bool collect_results(dibs__pg_conn *cn, size_t room, dibsx_nsec deadline,
                            dibs__pg_outcome *oc)
{
    while (await_result(cn, &room, deadline, oc)) {
        PGresult *result = dibs__pq.PQgetResult(cn->pq);

        if (!result)
            return dibs__pq.PQstatus(cn->pq) == CONNECTION_OK;
        note_result(result, oc);
        if (oc->fault)
            return false;
    }
    return false;
}

dibs_status
dibs__pg_finish(dibs__pg_conn *cn, bool sent, size_t room, dibsx_nsec deadline,
                dibs__pg_outcome *oc, dibs_error *err)
{
    bool whole;

    cn->received_before = cn->received;
    whole = sent && flush_requests(cn, &room, deadline, oc) &&
            collect_results(cn, room, deadline, oc);

    pass_notices(cn); /* notices behind the answer */
    cn->used_at = dibsx_now();
    if (whole && !oc->failed)
        return DIBS_OK;
    dibs__pq.PQclear(oc->rows);
    oc->rows = NULL;
    /* A standby stays one on this connection; a new one may find the primary. */
    cn->dead = !whole || oc->fatal || strcmp(oc->state, "25006") == 0;
    if (oc->failed && oc->state[0])
        return dibs__pg_fail(oc->state, oc->message, oc->fatal || !whole, err);
    if (oc->fault)
        return dibsx_fail(err, DIBS_UNKNOWN, "%s", oc->fault);
    one_line(dibs__pq.PQerrorMessage(cn->pq), oc->message);
    return dibsx_fail(err, DIBS_UNKNOWN, "the connection was lost: %.150s",
                      oc->message);
}
