/* pool.h - connections that many threads share, each for the time of a step.
 *
 * A thread takes an idle connection, or makes one while there are fewer than the
 * most, or waits for one. The clients of a process share a pool for their steps
 * (pools.h), so that the most is a bound for the process. Many connections, rather
 * than one as a pipeline: each is a process of the server, and steps of several are
 * written to disk together. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_POSTGRES_POOL_H
#define DIBS_STORE_POSTGRES_POOL_H

#include "store/postgres/conn.h"
#include <pthread.h>

typedef struct dibs__pg_pool {
    const dibs__pg_conf *conf;   /* borrowed */
    struct dibs__pg_pool *spare; /* whose idle ones are used too, or NULL */
    pthread_mutex_t mutex;       /* guards all below */
    pthread_cond_t freed;
    int most;
    dibs__pg_conn *idle;
    int count;    /* idle, in use, or being made */
    unsigned era; /* connections of an earlier one are not used again */
} dibs__pg_pool;

/* The caller owns the struct; end with fini, when no connection is in use. The pool
 * takes an idle connection of `spare`, which may be NULL, before it makes one: a
 * program that holds one lock has one connection. */
void dibs__pg_pool_init(dibs__pg_pool *pool, const dibs__pg_conf *conf,
                        int most, dibs__pg_pool *spare);
void dibs__pg_pool_fini(dibs__pg_pool *pool);

/* Give it back with dibs__pg_pool_give(), be it dead. Any thread. */
DIBS_MUST_CHECK dibs_status dibs__pg_pool_take(dibs__pg_pool *pool,
                                               dibsx_nsec deadline,
                                               dibs__pg_conn **out,
                                               dibs_error *err);
void dibs__pg_pool_give(dibs__pg_conn *cn);

/* One that is idle, or NULL. It belongs to the caller from then on, who ends it with
 * dibs__pg_conn_close(). Any thread. */
dibs__pg_conn *dibs__pg_pool_part(dibs__pg_pool *pool);

/* Closes those that were not used for a while. Any thread. */
void dibs__pg_pool_trim(dibs__pg_pool *pool);

/* Lets it have so many, if that is more than it may by now. Any thread. */
void dibs__pg_pool_widen(dibs__pg_pool *pool, int most);

/* The server gave an impossible answer: no connection that was made before is used
 * again. Any thread. */
void dibs__pg_pool_distrust(dibs__pg_pool *pool);

#endif
