/* audit.c - the audit of a PostgreSQL server.
 *
 * One look and the clock. Any thread; changes nothing. */
/* SPDX-License-Identifier: MIT */
#include "store/audit.h"
#include "base/fail.h"
#include "store/postgres/step.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Leases are counted on the clock of the server alone; a difference shows in fences
 * and in the times that people read. */
#define OFFSET_US INT64_C(1000000)

enum { TEXT_MAX = 256, OLDEST = 12, LONG_S = 600 };

/* Columns of DIBS__PG_AUDIT. */
enum {
    VERSION,
    USER,
    COMMIT,
    FSYNC,
    PAGES,
    STANDBYS,
    REPLICAS,
    RECOVERY,
    SUPER,
    SCHEMA,
    ENCODING,
    OLDEST_S
};

typedef struct report {
    dibs__audit_report to;
    dibs__pg *pg;
    dibsx_nsec deadline;
    PGresult *row;
} report;

static const char *text_of(const report *rp, int column)
{
    return dibs__pg_text(rp->row, 0, column);
}

static void report_version(const report *rp)
{
    const char *version = text_of(rp, VERSION);
    bool old = strtol(version, NULL, 10) < OLDEST;

    dibs__audit_tell(&rp->to, old ? DIBS_CAUTION : DIBS_FINE, "version",
                     old ? "upgrade the server to a version that is maintained"
                         : NULL,
                     "PostgreSQL %s", version);
    dibs__audit_tell(&rp->to, DIBS_FINE, "schema", NULL, "%s, version %" PRId64,
                     rp->pg->conf.schema, dibs__pg_int(rp->row, 0, SCHEMA));
}

static void report_replicas(const report *rp)
{
    int64_t replicas = dibs__pg_int(rp->row, 0, REPLICAS);
    bool in_step = text_of(rp, STANDBYS)[0] != '\0';

    if (dibs__pg_int(rp->row, 0, RECOVERY) == 1)
        dibs__audit_tell(&rp->to, DIBS_DANGER, "role", "connect to its primary",
                         "a standby");
    else
        dibs__audit_tell(&rp->to, DIBS_FINE, "role", NULL, "primary");
    if (replicas == 0)
        dibs__audit_tell(&rp->to, DIBS_FINE, "replicas", NULL, "none");
    else
        dibs__audit_tell(
            &rp->to, in_step ? DIBS_FINE : DIBS_NOTE, "replicas",
            in_step ? NULL
                    : "a failover may lose the newest leases; let what is "
                      "guarded check the fence, or set "
                      "synchronous_standby_names",
            "%" PRId64 ", which follow %ssynchronously", replicas,
            in_step ? "" : "a");
}

static void report_durability(const report *rp)
{
    const char *commit = text_of(rp, COMMIT);

    if (strcmp(text_of(rp, FSYNC), "on") != 0)
        dibs__audit_tell(
            &rp->to, DIBS_DANGER, "durability",
            "set fsync to on: after a crash the database may be broken, and "
            "locks that are still believed in may be granted again",
            "fsync is off");
    else if (strcmp(commit, "off") == 0)
        dibs__audit_tell(
            &rp->to, DIBS_CAUTION, "durability",
            "set synchronous_commit to on for this role: a crash loses the "
            "newest leases",
            "synchronous_commit is off");
    else
        dibs__audit_tell(&rp->to, DIBS_FINE, "durability", NULL,
                         "synchronous_commit is %s", commit);
}

static void report_rights(const report *rp)
{
    bool super = dibs__pg_int(rp->row, 0, SUPER) == 1;

    dibs__audit_tell(&rp->to, super ? DIBS_NOTE : DIBS_FINE, "user",
                     super ? "give dibs a role of its own with the rights in "
                             "docs/postgres.md"
                           : NULL,
                     "%s%s", text_of(rp, USER), super ? ", a superuser" : "");
    if (strcmp(text_of(rp, ENCODING), "UTF8") != 0)
        dibs__audit_tell(
            &rp->to, DIBS_CAUTION, "encoding",
            "use a database with ENCODING 'UTF8': names may have characters "
            "that this one lacks",
            "%s", text_of(rp, ENCODING));
}

/* A snapshot that is kept for long keeps dead rows from being tidied away. */
static void report_bloat(const report *rp)
{
    int64_t oldest_s = dibs__pg_int(rp->row, 0, OLDEST_S);

    if (oldest_s > LONG_S)
        dibs__audit_tell(&rp->to, DIBS_CAUTION, "transactions",
                         "end it: tables of locks grow as long as it lasts",
                         "one has been open for %" PRId64 " s", oldest_s);
}

static void report_way(const report *rp, const dibs__pg_conn *cn)
{
    const char *host = dibs__pq.PQhost(cn->pq);
    bool tls = dibs__pq.PQsslInUse(cn->pq) == 1;

    if (host && *host == '/')
        dibs__audit_tell(&rp->to, DIBS_FINE, "transport", NULL,
                         "unix socket in %s", host);
    else
        dibs__audit_tell(&rp->to, tls ? DIBS_FINE : DIBS_NOTE, "transport",
                         tls ? NULL
                             : "use sslmode=verify-full outside a private net",
                         "%s to %s:%s", tls ? "TLS" : "plain TCP",
                         host ? host : "?", dibs__pq.PQport(cn->pq));
    if (cn->pooled && !rp->pg->conf.listens_apart)
        dibs__audit_tell(
            &rp->to, DIBS_CAUTION, "pooler",
            "name the server itself with listen_host= and listen_port=; "
            "pooler=none if it keeps sessions",
            "one is in between, so waits are polled");
    else if (cn->pooled)
        dibs__audit_tell(&rp->to, DIBS_FINE, "pooler", NULL,
                         "one is in between; the doorbell goes past it");
    if (rp->pg->conf.advisory)
        dibs__audit_tell(
            &rp->to, DIBS_NOTE, "advisory",
            "they last as long as their session, which is proved when leases "
            "are renewed",
            "advisory locks are taken beside the leases");
}

/* The answer came between two looks at our own clock. */
static dibs_status report_clock(const report *rp, dibs_error *err)
{
    int64_t before = dibsx_wall_us(), after, store_wall_us, offset;
    bool far;
    dibs_status rc =
        rp->pg->base.ops->now(&rp->pg->base, rp->deadline, &store_wall_us, err);

    if (rc != DIBS_OK)
        return rc;
    after = dibsx_wall_us();
    offset = store_wall_us - (before + (after - before) / 2);
    far = offset > OFFSET_US || offset < -OFFSET_US;
    dibs__audit_tell(
        &rp->to, far ? DIBS_CAUTION : DIBS_FINE, "clock",
        far ? "set both by NTP: fences and times shown follow the server"
            : NULL,
        "%+" PRId64 " ms against this machine, %" PRId64 " us away",
        offset / 1000, after - before);
    return DIBS_OK;
}

dibs_status dibs__pg_audit(dibs__store *st, dibsx_nsec deadline,
                           dibs_finding_fn *each, void *arg, dibs_error *err)
{
    report rp = {.to = {each, arg},

                 .pg = dibs__pg_of(st),
                 .deadline = deadline};
    dibs__pg_args args = {.count = 0};
    dibs__pg_conn *cn = NULL;
    dibs_status rc =
        dibs__pg_look(rp.pg, DIBS__PG_AUDIT, &args, deadline, &rp.row, err);

    if (rc == DIBS_OK) {
        report_version(&rp);
        report_replicas(&rp);
        report_durability(&rp);
        report_rights(&rp);
        report_bloat(&rp);
    }
    dibs__pq.PQclear(rp.row);
    if (rc == DIBS_OK)
        rc = report_clock(&rp, err);
    if (rc == DIBS_OK)
        rc = dibs__pg_pool_take(rp.pg->steps, deadline, &cn, err);
    if (rc == DIBS_OK) {
        report_way(&rp, cn);
        dibs__pg_pool_give(cn);
    }
    return rc;
}
