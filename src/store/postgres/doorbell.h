/* doorbell.h - the doorbell: a connection that listens to a channel of its own.
 *
 * Functions of the schema notify it when their step is committed. A thread listens,
 * and keeps the notices until the core reads them. Notices are hints: they are lost
 * while the connection is, and behind a pooler that changes servers between
 * transactions there are none.
 *
 * The connection is lent to steps, one at a time: a program that waits for a lock
 * has one connection, not two. Notices that come meanwhile are kept all the same. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_POSTGRES_DOORBELL_H
#define DIBS_STORE_POSTGRES_DOORBELL_H

#include "store/doorbell.h"
#include "store/postgres/pool.h"

typedef struct dibs__pg_doorbell {
    dibs__doorbell base;
    pthread_t thread;
    const dibs__pg_conf *conf; /* borrowed */
    atomic_bool listens;       /* now */
    dibs__pg_pool *steps;      /* borrowed */
    int watch_fd;              /* what the thread sleeps on; -1 until then */
    int lost_fd;               /* a step has lost the connection; as watch_fd */

    pthread_mutex_t mutex; /* guards all below */
    pthread_cond_t changed;
    dibs__pg_conn *cn; /* that is lent, or NULL */
    bool lent;         /* a step has it */
    bool hearing;      /* the thread has it, for a moment */
} dibs__pg_doorbell;

/* The caller owns the struct; end with fini, which waits for the thread. It takes
 * over a connection that is idle in `steps`, if there is one. */
void dibs__pg_doorbell_init(dibs__pg_doorbell *doorbell,
                            const dibs__pg_conf *conf, dibs__pg_pool *steps);
void dibs__pg_doorbell_fini(dibs__pg_doorbell *doorbell);

/* As doorbell_open and doorbell_read of store/store.h. When the thread cannot listen to the
 * channel, it tries again in the background, and a later call may find it open. */
DIBS_MUST_CHECK dibs_status dibs__pg_doorbell_open(dibs__pg_doorbell *doorbell,
                                                   dibsx_nsec deadline, int *fd,
                                                   dibs_error *err);
size_t dibs__pg_doorbell_read(dibs__pg_doorbell *doorbell,
                              dibs__notice *notices, size_t max);

/* Its connection for a step, at once; NULL when there is none, or it is lent.
 * Give it back with dibs__pg_doorbell_return(), be it dead. Any thread. */
dibs__pg_conn *dibs__pg_doorbell_borrow(dibs__pg_doorbell *doorbell);
void dibs__pg_doorbell_return(dibs__pg_doorbell *doorbell, dibs__pg_conn *cn);

/* As dibs__pg_pool_distrust(). */
void dibs__pg_doorbell_distrust(dibs__pg_doorbell *doorbell);

/* The address at which others notify this handle, "" while it does not listen. */
const char *dibs__pg_doorbell_address(const dibs__pg_doorbell *doorbell);

#endif
