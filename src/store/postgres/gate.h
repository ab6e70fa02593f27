/* gate.h - passes the bytes of a server on to libpq, a piece at a time.
 *
 * libpq reads on while there is something to read, up to the length that a server
 * gives for a message, which may be a gigabyte; and it answers whatever it reads.
 * While it logs in, and where an answer is long, its connection is replaced by one end
 * of a pair of sockets, and it gets only the bytes that the gate passes on. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_POSTGRES_GATE_H
#define DIBS_STORE_POSTGRES_GATE_H

#include <stdbool.h>
#include <stddef.h>

enum { DIBS__PG_GATE_PIECE = 16 << 10 };

typedef struct dibs__pg_gate {
    bool set;
    int server_fd; /* the connection */
    int libpq_fd;  /* our end of the pair */
    size_t out_len;
    char out[DIBS__PG_GATE_PIECE]; /* of libpq, for the server */
} dibs__pg_gate;

/* Puts it before the connection that libpq has as `fd`. False when descriptors are
 * short; then nothing has changed. End with fini, also if it was not set. */
bool dibs__pg_gate_set(dibs__pg_gate *gate, int fd);
void dibs__pg_gate_fini(dibs__pg_gate *gate);

/* Gives libpq its connection back as `fd`, if nothing is on its way between them. */
void dibs__pg_gate_lift(dibs__pg_gate *gate, int fd);

/* Passes on what libpq has written, as much as the server takes now. */
void dibs__pg_gate_let_out(dibs__pg_gate *gate);

/* Looks at a piece before libpq has it. False: it is not passed on. */
typedef bool dibs__pg_gate_look(void *arg, const char *piece, size_t len);

/* Passes on a piece of at most so many bytes, or the end: its length. libpq has
 * taken the one before. `look` may be NULL. */
size_t dibs__pg_gate_let_in(const dibs__pg_gate *gate, size_t most,
                            dibs__pg_gate_look *look, void *arg);

/* Bytes that wait to be read at a socket. */
size_t dibs__pg_waiting(int fd);

#endif
