/* gate.h - lets a server's words through to libpq, a piece at a time.
 *
 * libpq reads on while there is something to read, up to the length that a server
 * says a message has, which may be a gigabyte. Where an answer is long, it is given
 * one end of a pair of sockets in the place of its connection, and gets only what
 * is passed on. */
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

/* Passes on what libpq has written, as much as the server takes now. */
void dibs__pg_gate_let_out(dibs__pg_gate *gate);

/* Passes on a piece of at most so many bytes, or the end: its length. libpq has
 * taken the one before. */
size_t dibs__pg_gate_let_in(const dibs__pg_gate *gate, size_t most);

#endif
