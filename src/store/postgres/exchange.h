/* exchange.h - sends on a connection and receives the answer: until a deadline, and no
 * more than there is room for.
 *
 * A server may be hostile, or no PostgreSQL at all. libpq keeps all that it is
 * sent, so that both bounds are kept here, before it reads. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_POSTGRES_EXCHANGE_H
#define DIBS_STORE_POSTGRES_EXCHANGE_H

#include "store/postgres/conn.h"

/* The bytes of an answer: to a step, or to a look at many rows; and of all that a
 * server says until it is ready, certificates and their signers included. */
enum {
    DIBS__PG_ROOM_GREETING = 64 << 10,
    DIBS__PG_ROOM = 256 << 10,
    DIBS__PG_ROOM_ROWS = 16 << 20,
    DIBS__PG_ROOM_VALUES = 66 << 20, /* 64 of the longest */
    DIBS__PG_MESSAGE = 200
};

/* One exchange: what came of it. */
typedef struct dibs__pg_outcome {
    PGresult *rows;    /* of the last statement that had no error */
    bool failed;       /* a statement did */
    bool fatal;        /* the connection ended with it */
    const char *fault; /* why it was given up before it ended; or NULL */
    char state[8];
    char message[DIBS__PG_MESSAGE];
} dibs__pg_outcome;

/* Waits until the socket can do one of `events`: which. 0 when the deadline has
 * passed, be there something to read or not. */
int dibs__pg_await(dibs__pg_conn *cn, short events, dibsx_nsec deadline);

/* Takes what waits to be read off `room`, before libpq reads it. False when there
 * is more. */
bool dibs__pg_admit(dibs__pg_conn *cn, size_t *room);

/* Reads what has come, and passes notices on. False when there was no room
 * for it, with *room 0, or the connection is lost. */
bool dibs__pg_take_in(dibs__pg_conn *cn, size_t *room);

/* Ends an exchange that was begun if `sent`. DIBS_OK: all of the answer is there;
 * oc->rows is to be freed with PQclear. Else as dibs__pg_conn_ask(). */
DIBS_MUST_CHECK dibs_status dibs__pg_finish(dibs__pg_conn *cn, bool sent,
                                            size_t room, dibsx_nsec deadline,
                                            dibs__pg_outcome *oc,
                                            dibs_error *err);

#endif
