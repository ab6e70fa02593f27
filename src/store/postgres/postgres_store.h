/* postgres_store.h - what a handle on a PostgreSQL server consists of. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_POSTGRES_POSTGRES_STORE_H
#define DIBS_STORE_POSTGRES_POSTGRES_STORE_H

#include "store/postgres/advisory.h"
#include "store/postgres/combine.h"
#include "store/postgres/doorbell.h"
#include "store/postgres/pools.h"
#include "store/store.h"

typedef struct dibs__pg {
    dibs__store base;
    dibs__pg_conf conf;
    dibs__pg_texts texts;
    dibs__pg_pool *steps; /* other handles may use it too; see pools.h */
    dibs__pg_combiner combiner;
    dibs__pg_pool renewals; /* so that no other step holds them up */
    dibs__pg_doorbell doorbell;
    dibs__pg_advisory advisory;
} dibs__pg;

static inline dibs__pg *dibs__pg_of(struct dibs__store *st)
{
    return (dibs__pg *)st;
}

extern const dibs__lease_ops dibs__pg_lease_ops;
extern const dibs__value_ops dibs__pg_value_ops;
extern const dibs__commit_ops dibs__pg_commit_ops;
extern const dibs__log_ops dibs__pg_log_ops;
extern const dibs__topic_ops dibs__pg_topic_ops;
extern const dibs__rate_ops dibs__pg_rate_ops;
extern const dibs__meter_ops dibs__pg_meter_ops;
extern const dibs__roster_ops dibs__pg_roster_ops;
extern const dibs__queue_ops dibs__pg_queue_ops;
extern const dibs__queue_admin_ops dibs__pg_queue_admin_ops;

/* The lease steps. */
#define DIBS__PG_STEP(step, STEP) DIBS__LEASE_STEP(pg, step)
DIBS__LEASE_STEPS(DIBS__PG_STEP)

/* As the steps of store/store.h. */
dibs_status dibs__pg_audit(dibs__store *st, dibsx_nsec deadline,
                           dibs_finding_fn *each, void *arg, dibs_error *err);
dibs_status
dibs__pg_setup(dibs__store *st, dibs_store_task task, dibsx_nsec deadline,
               dibs_store_state *out, dibs_error *err);

#endif
