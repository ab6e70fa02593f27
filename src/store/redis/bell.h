/* bell.h - the doorbell: a connection that listens to a channel of its own.
 *
 * Scripts publish to it. A thread hears them and keeps them until they are asked
 * for. Rings are hints: they are lost while the connection is. In a cluster it has
 * a channel for each slot besides (ears.h). */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_REDIS_BELL_H
#define DIBS_STORE_REDIS_BELL_H

#include "store/listener.h"
#include "store/redis/cluster.h"
#include "store/redis/way.h"

typedef struct dibs__redis_bell {
    dibs__listener listener;
    dibs__way way;           /* to the server, or to the primary */
    dibs__cluster *cluster;  /* NULL: none */
    struct dibs__ears *ears; /* they listen there; NULL: the thread does */
    pthread_t thread;
    pthread_mutex_t mutex;
    struct dibs__conn *cn; /* that is listened to; NULL: none. Locks: mutex */
} dibs__redis_bell;

/* The caller owns the struct; end with fini, which waits for the thread. */
void dibs__redis_bell_init(dibs__redis_bell *bell,
                           const dibs__redis_conf *conf);
void dibs__redis_bell_fini(dibs__redis_bell *bell);

/* As bell_open and bell_hear of store/store.h. When the channel cannot be
 * listened to it is tried again in the background, and a later call may find it
 * open. */
DIBS_MUST_CHECK dibs_status dibs__redis_bell_open(dibs__redis_bell *bell,
                                                  dibsx_nsec deadline, int *fd,
                                                  dibs_error *err);
size_t
dibs__redis_bell_hear(dibs__redis_bell *bell, dibs__ring *rings, size_t max);

/* In a cluster: somebody asks for a name in this slot and may be rung for it, so
 * that it is worth being listened to there. Does not block. */
void dibs__redis_bell_attend(dibs__redis_bell *bell, int slot);

/* The connection is not to be used any more; another is made. Any thread. */
void dibs__redis_bell_drop(dibs__redis_bell *bell);

/* What others ring this handle by, "-" when it is not open. */
const char *dibs__redis_bell_address(dibs__redis_bell *bell);

#endif
