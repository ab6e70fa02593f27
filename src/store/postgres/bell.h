/* bell.h - the doorbell: a connection that listens to a channel of its own.
 *
 * Functions of the schema notify it when their step is committed. A thread hears
 * it and keeps the rings until they are asked for. Rings are hints: they are lost
 * while the connection is, and behind a pooler that changes servers between
 * transactions there are none. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_POSTGRES_BELL_H
#define DIBS_STORE_POSTGRES_BELL_H

#include "store/listener.h"
#include "store/postgres/conn.h"

typedef struct dibs__pg_bell {
    dibs__listener listener;
    pthread_t thread;
    const dibs__pg_conf *conf; /* borrowed */
    atomic_bool deaf;          /* a pooler is in between, so it has given up */
} dibs__pg_bell;

/* The caller owns the struct; end with fini, which waits for the thread. */
void dibs__pg_bell_init(dibs__pg_bell *bell, const dibs__pg_conf *conf);
void dibs__pg_bell_fini(dibs__pg_bell *bell);

/* As bell_open and bell_hear of store/store.h. When the channel cannot be
 * listened to it is tried again in the background, and a later call may find it
 * open. */
DIBS_MUST_CHECK dibs_status dibs__pg_bell_open(dibs__pg_bell *bell,
                                               dibsx_nsec deadline, int *fd,
                                               dibs_error *err);
size_t dibs__pg_bell_hear(dibs__pg_bell *bell, dibs__ring *rings, size_t max);

/* What others ring this handle by, "" when it hears nothing. */
const char *dibs__pg_bell_address(const dibs__pg_bell *bell);

#endif
