/* advisory.h - advisory locks beside the leases (?advisory=1), so that programs
 * that lock with them, as DistributedLock.Postgres does, are excluded too.
 *
 * One session holds all advisory locks of a handle, and nothing else. When it ends
 * they are gone, and so are the leases, which renewals report. A thread gives back an
 * advisory lock whose lease has expired, because no caller releases a lost lease. It
 * starts with the first advisory lock. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_POSTGRES_ADVISORY_H
#define DIBS_STORE_POSTGRES_ADVISORY_H

#include "store/lease.h"
#include "store/postgres/conn.h"
#include <pthread.h>

struct dibs__pg_hold;

typedef struct dibs__pg_advisory {
    const dibs__pg_conf *conf; /* borrowed */
    pthread_mutex_t
        mutex; /* guards all below, while the session is asked too */
    dibs__pg_conn *session; /* NULL when there is none */
    struct dibs__pg_hold *holds;
    pthread_t thread;
    pthread_cond_t changed; /* there is one more, or the thread is to end */
    bool running;
    bool stopping;
} dibs__pg_advisory;

/* The caller owns the struct; end with fini, which ends the thread and the
 * session. */
void dibs__pg_advisory_init(dibs__pg_advisory *adv, const dibs__pg_conf *conf);
void dibs__pg_advisory_fini(dibs__pg_advisory *adv);

/* Opens the session. DIBS_REFUSED: a pooler is in between, so there is none. */
DIBS_MUST_CHECK dibs_status dibs__pg_advisory_reach(dibs__pg_advisory *adv,
                                                    dibsx_nsec deadline,
                                                    dibs_error *err);

/* The lease steps of a handle that has them, and how it hears. */
extern const dibs__lease_ops dibs__pg_advised_ops;
size_t dibs__pg_advised_hear(struct dibs__store *st, dibs__notice *notices,
                             size_t max);

#endif
