/* pools.h - the pools of a process: clients of the same server share one.
 *
 * Each connection is a process of the server, so that what a program opens is
 * bounded for the program, however many clients it has. Two clients share a pool
 * when libpq would connect both in the same way: what the URL says to it, the PG*
 * variables, schema= and pooler= are the same. The bound is the highest pool= of
 * the clients that have shared it. A client whose steps wait keeps connections from the
 * others; renewals and the doorbell of each have their own beside it.
 *
 * In the child of a fork there are none: the clients that it opens have pools of
 * their own. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_POSTGRES_POOLS_H
#define DIBS_STORE_POSTGRES_POOLS_H

#include "store/postgres/pool.h"

/* The pool for what `conf` says, which was read from `url`; both are borrowed for
 * the call. Give it back with dibs__pg_pools_leave(). Any thread. */
DIBS_MUST_CHECK dibs_status dibs__pg_pools_join(const dibsx_url *url,
                                                const dibs__pg_conf *conf,
                                                dibs__pg_pool **out,
                                                dibs_error *err);

/* The last to leave closes its connections. NULL is a no-op. Any thread. */
void dibs__pg_pools_leave(dibs__pg_pool *pool);

#endif
