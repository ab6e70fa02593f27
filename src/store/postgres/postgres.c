/* postgres.c - the PostgreSQL store: opening and closing a handle.
 *
 * A handle has a part in the connections for steps (pools.h), and owns others for
 * renewals alone and a doorbell. Any thread. */
/* SPDX-License-Identifier: MIT */
#include "store/postgres/postgres.h"
#include "base/alloc.h"
#include "base/fail.h"
#include "store/audit.h"
#include "store/postgres/postgres_store.h"
#include "store/postgres/step.h"

/* Connections for renewals: they come in batches, one after the other. */
enum { RENEWALS = 2 };

static void store_close(dibs__store *st)
{
    dibs__pg *pg = dibs__pg_of(st);

    dibs__pg_doorbell_fini(&pg->doorbell);
    dibs__pg_advisory_fini(&pg->advisory);
    dibs__pg_pool_fini(&pg->renewals);
    dibs__pg_pools_leave(pg->steps);
    dibs__pg_combiner_fini(&pg->combiner);
    dibs__pg_texts_fini(&pg->texts);
    dibs__pg_conf_fini(&pg->conf);
    dibsx_free(pg);
}

static dibs_status read_clock(dibs__store *st, dibsx_nsec deadline,
                              int64_t *store_wall_us, dibs_error *err)
{
    dibs__pg_args args = {.count = 0};
    PGresult *rows = NULL;
    dibs_status rc = dibs__pg_look(dibs__pg_of(st), DIBS__PG_NOW, &args,
                                   deadline, &rows, err);

    if (rc == DIBS_OK)
        *store_wall_us = dibs__pg_int(rows, 0, 0);
    dibs__pq.PQclear(rows);
    return rc;
}

static dibs_status
reach_server(dibs__store *st, dibsx_nsec deadline, dibs_error *err)
{
    int64_t store_wall_us;
    dibs_status rc = read_clock(st, deadline, &store_wall_us, err);

    if (rc == DIBS_OK && dibs__pg_of(st)->conf.advisory)
        rc = dibs__pg_advisory_reach(&dibs__pg_of(st)->advisory, deadline, err);
    if (rc == DIBS_OK && dibs__pg_of(st)->conf.strict)
        rc = dibs__store_audit_strict(st, deadline, err);
    return rc;
}

static const dibs__store_ops advised_ops;

static dibs_status handle_open(const dibs__store_ops *ops, const dibsx_url *url,
                               dibs__store **out, dibs_error *err)
{
    dibs__pg *pg = dibsx_zalloc(sizeof(*pg));
    dibs_status rc;

    if (!pg)
        return dibsx_nomem(err, "a store handle");
    pg->base.ops = ops;
    dibs__pg_advisory_init(&pg->advisory, &pg->conf);
    rc = dibs__pg_conf_read(url, &pg->conf, err);
    pg->base.lazy = pg->conf.lazy;
    if (rc == DIBS_OK)
        rc = dibs__pg_pools_join(url, &pg->conf, &pg->steps, err);
    dibs__pg_doorbell_init(&pg->doorbell, &pg->conf, pg->steps);
    dibs__pg_pool_init(&pg->renewals, &pg->conf, RENEWALS, pg->steps);
    dibs__pg_combiner_init(&pg->combiner);
    if (rc == DIBS_OK)
        rc = dibs__pg_texts_init(&pg->texts, &pg->conf, err);
    if (rc == DIBS_OK)
        rc = dibs__pq_load(err);
    if (rc != DIBS_OK) {
        store_close(&pg->base);
        return rc;
    }
    if (pg->conf.advisory)
        pg->base.ops = &advised_ops;
    *out = &pg->base;
    return DIBS_OK;
}

static dibs_status pg_open(const dibsx_url *url, dibsx_nsec deadline,
                           dibs__store **out, dibs_error *err)
{
    (void)deadline;
    return handle_open(&dibs__pg_ops, url, out, err);
}

static dibs_status pgsql_open(const dibsx_url *url, dibsx_nsec deadline,
                              dibs__store **out, dibs_error *err)
{
    (void)deadline;
    return handle_open(&dibs__pgsql_ops, url, out, err);
}

static dibs_status
open_doorbell(dibs__store *st, dibsx_nsec deadline, int *fd, dibs_error *err)
{
    return dibs__pg_doorbell_open(&dibs__pg_of(st)->doorbell, deadline, fd,
                                  err);
}

static size_t read_doorbell(dibs__store *st, dibs__notice *notices, size_t max)
{
    return dibs__pg_doorbell_read(&dibs__pg_of(st)->doorbell, notices, max);
}

static const char *find_caution(const dibs__store *st)
{
    const dibs__pg *pg = (const dibs__pg *)(const void *)st;

    return pg->conf.pooler == DIBS__PG_POOLER_TRANSACTION &&
                   !pg->conf.listens_apart
               ? "waits are polled: behind a pooler nothing can be listened to"
               : NULL;
}

static const char *find_lack(const dibs__store *st, dibs__ability what)
{
    if (what == DIBS__CAN_CONVERT && st->ops->lease == &dibs__pg_advised_ops)
        return DIBS__PG_NO_CONVERSION;
    return what == DIBS__CAN_REPLICATE ? DIBS__PG_NO_REPLICAS : NULL;
}

#define STORE(name, opens, leases, hears)                                      \
    {                                                                          \
        .scheme = name, .open = opens, .reach = reach_server,                  \
        .close = store_close, .lease = leases, .value = &dibs__pg_value_ops,   \
        .log = &dibs__pg_log_ops, .topic = &dibs__pg_topic_ops,                \
        .rate = &dibs__pg_rate_ops, .roster = &dibs__pg_roster_ops,            \
        .meter = &dibs__pg_meter_ops, .queue = &dibs__pg_queue_ops,            \
        .queue_admin = &dibs__pg_queue_admin_ops,                              \
        .commit = &dibs__pg_commit_ops, .doorbell_open = open_doorbell,        \
        .doorbell_read = hears, .now = read_clock, .caution = find_caution,    \
        .cannot = find_lack, .audit = dibs__pg_audit, .setup = dibs__pg_setup, \
    }

const dibs__store_ops dibs__pg_ops =
    STORE("postgres", pg_open, &dibs__pg_lease_ops, read_doorbell);
const dibs__store_ops dibs__pgsql_ops =
    STORE("postgresql", pgsql_open, &dibs__pg_lease_ops, read_doorbell);

/* The operations of a handle whose URL says advisory=1. */
static const dibs__store_ops advised_ops =
    STORE("postgres", pg_open, &dibs__pg_advised_ops, dibs__pg_advised_hear);
