/* redis.c - the Redis store: opening and closing a handle.
 *
 * A handle owns two routes, one for renewals alone, a doorbell, and a finder of
 * the servers: sentinels, or the map of a cluster. Any thread. */
/* SPDX-License-Identifier: MIT */
#include "store/redis/redis.h"
#include "base/alloc.h"
#include "base/fail.h"
#include "store/audit.h"
#include "store/redis/redis_store.h"
#include "store/redis/script.h"
#include "store/redis/wire/reply.h"
#include <string.h>

static void store_close(dibs__store *st)
{
    dibs__redis *rd = dibs__redis_of(st);

    dibs__sentinel_stop(rd->sentinel);
    dibs__redis_doorbell_fini(&rd->bell);
    dibs__replica_wait_fini(&rd->replica_wait);
    dibs__route_free(rd->renewals);
    dibs__route_free(rd->steps);
    dibs__cluster_free(rd->cluster);
    dibs__sentinel_free(rd->sentinel);
    dibs__redis_conf_fini(&rd->conf);
    dibsx_free(rd);
}

static dibs_status read_time(dibs__store *st, dibsx_nsec deadline,
                             int64_t *store_wall_us, dibs_error *err)
{
    redisReply *reply = NULL;
    dibs__words words;
    int64_t seconds, us;
    dibs_status rc;

    words.count = 0;
    dibs__words_puts(&words, "TIME");
    rc = dibs__command_run(dibs__redis_of(st)->steps, &words, 0, deadline,
                           &reply, err);
    if (rc != DIBS_OK)
        return rc;
    if (dibs__reply_int(dibs__reply_item(reply, 0), &seconds) &&
        dibs__reply_int(dibs__reply_item(reply, 1), &us) && seconds >= 0 &&
        seconds <= DIBS__SPAN_MAX_MS / 1000 && us >= 0 && us < 1000000)
        *store_wall_us = seconds * 1000000 + us;
    else
        rc = dibs__reply_odd(err);
    dibs__reply_free(reply);
    return rc;
}

/* Another server is the primary: drops all connections to the old one. */
static void drop_all(void *arg)
{
    dibs__redis *rd = arg;

    dibs__route_drop(rd->steps);
    dibs__route_drop(rd->renewals);
    dibs__replica_wait_drop(&rd->replica_wait);
    dibs__redis_doorbell_drop(&rd->bell);
}

/* Makes the sentinels or the map, which find the servers. */
static dibs_status make_guide(dibs__redis *rd, dibs_error *err)
{
    if (rd->conf.primary) {
        rd->sentinel = dibs__sentinel_new(&rd->conf, drop_all, rd);
        if (!rd->sentinel)
            return dibsx_nomem(err, "a list of sentinels");
        rd->bell.connect.sentinel = rd->replica_wait.sentinel = rd->sentinel;
    } else if (rd->conf.seed_count > 0) {
        dibs_status rc = dibs__cluster_new(&rd->conf, &rd->cluster, err);

        rd->bell.cluster = rd->cluster;
        return rc;
    }
    return DIBS_OK;
}

static dibs_status make_routes(dibs__redis *rd, dibs_error *err)
{
    dibs_status rc = dibs__script_load(err);

    if (rc == DIBS_OK)
        rc = make_guide(rd, err);
    if (rc == DIBS_OK)
        rc = dibs__route_new(&rd->conf, rd->cluster, DIBS__REQUEST_STEP,
                             &rd->steps, err);
    if (rc == DIBS_OK)
        rc = dibs__route_new(&rd->conf, rd->cluster, DIBS__REQUEST_RENEWAL,
                             &rd->renewals, err);
    if (rd->cluster)
        rd->replica_wait.route = rd->steps;
    if (rc == DIBS_OK && rd->sentinel) {
        dibs__route_follow(rd->steps, rd->sentinel);
        dibs__route_follow(rd->renewals, rd->sentinel);
    }
    return rc;
}

static dibs_status
reach_server(dibs__store *st, dibsx_nsec deadline, dibs_error *err)
{
    int64_t store_wall_us;
    dibs_status rc = read_time(st, deadline, &store_wall_us, err);

    if (rc == DIBS_OK && dibs__redis_of(st)->conf.strict)
        rc = dibs__store_audit_strict(st, deadline, err);
    /* Reading changes nothing, so the result is never unknown. */
    if (rc == DIBS_UNKNOWN) {
        rc = DIBS_UNAVAIL;
        if (err)
            err->status = rc;
    }
    return rc;
}

/* By the scheme of the URL; one is always found. */
static const dibs__store_ops *ops_of(const dibsx_url *url);

static dibs_status store_open(const dibsx_url *url, dibsx_nsec deadline,
                              dibs__store **out, dibs_error *err)
{
    dibs__redis *rd = dibsx_zalloc(sizeof(*rd));
    dibs_status rc;

    (void)deadline;
    if (!rd)
        return dibsx_nomem(err, "a store handle");
    rd->base.ops = ops_of(url);
    dibs__redis_doorbell_init(&rd->bell, &rd->conf);
    dibs__replica_wait_init(&rd->replica_wait, &rd->conf);
    rc = dibs__redis_conf_read(url, &rd->conf, err);
    rd->base.lazy = rd->conf.lazy;
    if (rc == DIBS_OK)
        rc = make_routes(rd, err);
    if (rc != DIBS_OK) {
        store_close(&rd->base);
        return rc;
    }
    *out = &rd->base;
    return DIBS_OK;
}

static dibs_status
open_doorbell(dibs__store *st, dibsx_nsec deadline, int *fd, dibs_error *err)
{
    return dibs__redis_doorbell_open(&dibs__redis_of(st)->bell, deadline, fd,
                                     err);
}

static void tap_doorbell(dibs__store *st, dibs__notice_tap *tap, void *arg)
{
    dibs__doorbell_tap(&dibs__redis_of(st)->bell.base, tap, arg);
}

static size_t read_doorbell(dibs__store *st, dibs__notice *notices, size_t max)
{
    return dibs__redis_doorbell_read(&dibs__redis_of(st)->bell, notices, max);
}

static const char *get_caution(const dibs__store *st)
{
    const dibs__redis *rd = (const dibs__redis *)(const void *)st;

    return rd->conf.insecure
               ? "the server's certificate is not checked (insecure=1)"
               : NULL;
}

static const char *explain_lack(const dibs__store *st, dibs__ability what)
{
    const dibs__redis *rd = (const dibs__redis *)(const void *)st;

    return rd->cluster && what == DIBS__CAN_SET
               ? "names in different slots of a cluster are acquired one "
                 "after the other; those with a common {tag} are in one slot"
               : NULL;
}

static dibs_status
audit_servers(dibs__store *st, dibsx_nsec deadline, dibs_finding_fn *each,
              void *arg, dibs_error *err)
{
    dibs__redis *rd = dibs__redis_of(st);

    return rd->cluster
               ? dibs__redis_audit_cluster(rd, deadline, each, arg, err)
               : dibs__redis_audit_at(rd, NULL, deadline, each, arg, err);
}

/* `group` and `leaves`: NULL where the server of a name may change. */
#define STORE(name, group, leaves)                                             \
    {                                                                          \
        .scheme = name, .open = store_open, .reach = reach_server,             \
        .close = store_close, .lease = &dibs__redis_lease_ops,                 \
        .leave = (leaves), .lease_group = (group),                             \
        .value = &dibs__redis_value_ops, .log = &dibs__redis_log_ops,          \
        .topic = &dibs__redis_topic_ops, .rate = &dibs__redis_rate_ops,        \
        .roster = &dibs__redis_roster_ops, .meter = &dibs__redis_meter_ops,    \
        .queue = &dibs__redis_queue_ops,                                       \
        .queue_admin = &dibs__redis_queue_admin_ops,                           \
        .commit = &dibs__redis_commit_ops, .doorbell_open = open_doorbell,     \
        .doorbell_tap = tap_doorbell, .doorbell_read = read_doorbell,          \
        .now = read_time, .caution = get_caution, .cannot = explain_lack,      \
        .vote = &dibs__redis_vote_ops, .audit = audit_servers,                 \
    }

const dibs__store_ops dibs__redis_ops =
    STORE("redis", dibs__redis_lease_group, &dibs__redis_leave_ops);
const dibs__store_ops dibs__rediss_ops =
    STORE("rediss", dibs__redis_lease_group, &dibs__redis_leave_ops);
const dibs__store_ops dibs__redis_unix_ops =
    STORE("redis+unix", dibs__redis_lease_group, &dibs__redis_leave_ops);
const dibs__store_ops dibs__redis_sentinel_ops =
    STORE("redis-sentinel", NULL, NULL);
const dibs__store_ops dibs__rediss_sentinel_ops =
    STORE("rediss-sentinel", NULL, NULL);
const dibs__store_ops dibs__redis_cluster_ops =
    STORE("redis-cluster", NULL, NULL);
const dibs__store_ops dibs__rediss_cluster_ops =
    STORE("rediss-cluster", NULL, NULL);

static const dibs__store_ops *ops_of(const dibsx_url *url)
{
    static const dibs__store_ops *const all[] = {&dibs__redis_ops,
                                                 &dibs__rediss_ops,
                                                 &dibs__redis_unix_ops,
                                                 &dibs__redis_sentinel_ops,
                                                 &dibs__rediss_sentinel_ops,
                                                 &dibs__redis_cluster_ops,
                                                 &dibs__rediss_cluster_ops};
    size_t i = sizeof(all) / sizeof(all[0]) - 1;

    while (i > 0 && strcmp(all[i]->scheme, url->scheme) != 0)
        i--;
    return all[i];
}
