/* doorbell.h - the doorbell: a connection that listens to a channel of its own.
 *
 * Scripts publish to it. A thread hears them and keeps them until they are asked
 * for. Rings are hints: they are lost while the connection is. In a cluster it has
 * a channel for each slot besides (cluster_doorbell.h). */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_REDIS_BELL_DOORBELL_H
#define DIBS_STORE_REDIS_BELL_DOORBELL_H

#include "store/doorbell.h"
#include "store/redis/cluster/cluster.h"
#include "store/redis/pipe/connect.h"

typedef struct dibs__redis_doorbell {
    dibs__doorbell base;
    dibs__connect connect;  /* to the server, or to the primary */
    dibs__cluster *cluster; /* NULL: none */
    struct dibs__cluster_doorbell
        *cluster_doorbell; /* they listen there; NULL: the thread does */
    pthread_t thread;
    pthread_mutex_t mutex;
    struct dibs__conn *cn; /* that is listened to; NULL: none. Locks: mutex */
} dibs__redis_doorbell;

/* The caller owns the struct; end with fini, which waits for the thread. */
void dibs__redis_doorbell_init(dibs__redis_doorbell *bell,
                               const dibs__redis_conf *conf);
void dibs__redis_doorbell_fini(dibs__redis_doorbell *bell);

/* As bell_open and bell_hear of store/store.h. When the channel cannot be
 * listened to it is tried again in the background, and a later call may find it
 * open. */
DIBS_MUST_CHECK dibs_status dibs__redis_doorbell_open(
    dibs__redis_doorbell *bell, dibsx_nsec deadline, int *fd, dibs_error *err);
size_t dibs__redis_doorbell_hear(dibs__redis_doorbell *bell,
                                 dibs__notice *notices, size_t max);

/* In a cluster: somebody asks for a name in this slot and may be rung for it, so
 * that it is worth being listened to there. Does not block. */
void dibs__redis_doorbell_attend(dibs__redis_doorbell *bell, int slot);

/* The connection is not to be used any more; another is made. Any thread. */
void dibs__redis_doorbell_drop(dibs__redis_doorbell *bell);

/* What others ring this handle by, "-" when it is not open. */
const char *dibs__redis_doorbell_address(dibs__redis_doorbell *bell);

#endif
