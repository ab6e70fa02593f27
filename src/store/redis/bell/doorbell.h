/* doorbell.h - the doorbell: a connection that listens to a channel of its own.
 *
 * Scripts publish notices to it. A thread receives them and keeps them until
 * the caller fetches them. Notices are hints: they are lost while there is no
 * connection. In a cluster the bell has a channel for each slot besides
 * (cluster_doorbell.h). */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_REDIS_BELL_DOORBELL_H
#define DIBS_STORE_REDIS_BELL_DOORBELL_H

#include "store/doorbell.h"
#include "store/redis/bell/ears.h"
#include "store/redis/cluster/cluster.h"
#include "store/redis/pipe/connect.h"

typedef struct dibs__redis_doorbell {
    dibs__doorbell base;
    dibs__connect connect;  /* to the server, or to the primary */
    dibs__cluster *cluster; /* NULL: none */
    struct dibs__cluster_doorbell
        *cluster_doorbell; /* its listeners; NULL: the thread listens */
    dibs__ears ears;       /* topics that it listens to */
    int wake_fd;           /* of the thread; -1 until it is started */
    atomic_bool heard;     /* the thread listens now */
    pthread_t thread;
    pthread_mutex_t mutex;
    struct dibs__conn *cn; /* the one that listens; NULL: none. Locks: mutex */
} dibs__redis_doorbell;

/* The caller owns the struct; end with fini, which waits for the thread. */
void dibs__redis_doorbell_init(dibs__redis_doorbell *bell,
                               const dibs__redis_conf *conf);
void dibs__redis_doorbell_fini(dibs__redis_doorbell *bell);

/* As doorbell_open and doorbell_read of store/store.h. If the subscription fails, the
 * thread tries again in the background, and a later call may find it open. */
DIBS_MUST_CHECK dibs_status dibs__redis_doorbell_open(
    dibs__redis_doorbell *bell, dibsx_nsec deadline, int *fd, dibs_error *err);
size_t dibs__redis_doorbell_read(dibs__redis_doorbell *bell,
                                 dibs__notice *notices, size_t max);

/* In a cluster: a caller asks for a name in this slot and may get notices about
 * it, so the bell subscribes there. Does not block. */
void dibs__redis_doorbell_attend(dibs__redis_doorbell *bell, int slot);

/* Listens to the channel of a topic, or no more; as ear of store/topic.h. */
DIBS_MUST_CHECK dibs_status dibs__redis_doorbell_ear(dibs__redis_doorbell *bell,
                                                     const char *channel,
                                                     bool on,
                                                     dibsx_nsec deadline,
                                                     dibs_error *err);

/* Drops the connection and makes another. Any thread. */
void dibs__redis_doorbell_drop(dibs__redis_doorbell *bell);

/* The address of this handle's bell, "-" when it is not open. */
const char *dibs__redis_doorbell_address(dibs__redis_doorbell *bell);

#endif
