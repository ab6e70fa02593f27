/* quorum.c - the quorum store: opening, reaching and closing a handle.
 *
 * A handle owns a store for each node, with the threads that ask it. Any
 * thread. */
/* SPDX-License-Identifier: MIT */
#include "store/quorum/quorum.h"
#include "base/alloc.h"
#include "base/fail.h"
#include "store/no_commit.h"
#include "store/no_queue.h"
#include "store/quorum/round.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* A lease is best renewed a few times a minute; one that lasts longer keeps
 * nodes that were restarted from voting for as long. */
enum { LONGEST_MS = 60000, LONGEST_MAX_MS = 24 * 3600 * 1000 };

/* The time a node has to answer, when the URL does not say. */
enum { NODE_TIMEOUT_MS = 250 };

static void store_close(dibs__store *st)
{
    dibs__quorum *qm = dibs__quorum_of(st);

    pthread_mutex_lock(&qm->mutex);
    qm->stopping = true;
    for (size_t i = 0; i < qm->count; i++)
        for (size_t k = 0; k < DIBS__REQUEST_KINDS; k++)
            if (qm->nodes[i].queues[k].qm)
                pthread_cond_signal(&qm->nodes[i].queues[k].cond);
    pthread_mutex_unlock(&qm->mutex);
    for (size_t i = 0; i < qm->count; i++)
        dibs__node_join(&qm->nodes[i]);
    for (size_t i = 0; i < qm->count; i++)
        dibs__node_fini(&qm->nodes[i]);
    if (qm->bell_fd >= 0)
        close(qm->bell_fd);
    if (qm->turn_fd >= 0)
        close(qm->turn_fd);
    pthread_mutex_destroy(&qm->mutex);
    dibsx_free(qm);
}

/* Parameters that are the quorum's own. */
static bool is_own(const char *key)
{
    return strcmp(key, "longest_ttl") == 0 ||
           strcmp(key, "node_timeout") == 0 || strcmp(key, "tls") == 0;
}

static dibs_status
read_span(const dibsx_url *url, const char *key, int64_t least_ms,
          int64_t most_ms, int64_t *out, dibs_error *err)
{
    const char *text = dibsx_url_param_get(url, key);

    if (!text)
        return DIBS_OK;
    if (!dibsx_duration_parse(text, out) || *out < least_ms || *out > most_ms)
        return dibsx_fail(err, DIBS_INVALID,
                          "%s is a duration from %" PRId64 " ms to %" PRId64
                          " ms",
                          key, least_ms, most_ms);
    return DIBS_OK;
}

static dibs_status check_hosts(const dibsx_url *url, dibs_error *err)
{
    if (url->host_count < DIBS__NODES_MIN ||
        url->host_count > DIBS__NODES_MAX || url->host_count % 2 == 0)
        return dibsx_fail(err, DIBS_INVALID,
                          "a quorum has 3, 5, 7 or 9 nodes and this one has "
                          "%zu; an even number bears no more losses than one "
                          "less",
                          url->host_count);
    for (size_t i = 0; i < url->host_count; i++)
        for (size_t k = 0; k < i; k++)
            if (url->hosts[i].port == url->hosts[k].port &&
                strcasecmp(url->hosts[i].name, url->hosts[k].name) == 0)
                return dibsx_fail(err, DIBS_INVALID,
                                  "the nodes %zu and %zu of the quorum are the "
                                  "same",
                                  k + 1, i + 1);
    return DIBS_OK;
}

static dibs_status
read_url(dibs__quorum *qm, const dibsx_url *url, dibs_error *err)
{
    dibs_status rc = check_hosts(url, err);

    qm->longest_ms = LONGEST_MS;
    qm->node_timeout_ms = NODE_TIMEOUT_MS;
    if (rc == DIBS_OK)
        rc = read_span(url, "longest_ttl", DIBS__AHEAD_MS, LONGEST_MAX_MS,
                       &qm->longest_ms, err);
    if (rc == DIBS_OK)
        rc =
            read_span(url, "node_timeout", 1, 60000, &qm->node_timeout_ms, err);
    return rc;
}

/* The URL of one node; borrows all of its texts. */
static dibsx_url node_url(const dibsx_url *url, size_t node)
{
    static char plain[] = "redis", tls[] = "rediss";
    const char *wants_tls = dibsx_url_param_get(url, "tls");
    dibsx_url one = *url;

    one.scheme = wants_tls && strcmp(wants_tls, "0") != 0 ? tls : plain;
    one.hosts[0] = url->hosts[node];
    one.host_count = 1;
    one.param_count = 0;
    for (size_t i = 0; i < url->param_count; i++)
        if (!is_own(url->params[i].key))
            one.params[one.param_count++] = url->params[i];
    return one;
}

static dibs_status add_node(dibs__quorum *qm, const dibsx_url *url,
                            dibsx_nsec deadline, dibs_error *err)
{
    size_t i = qm->count;
    dibs__node *nd = &qm->nodes[i];
    dibsx_url one = node_url(url, i);
    dibs_status rc = dibs__store_make_url(&one, deadline, &nd->st, err);

    if (rc != DIBS_OK)
        return rc;
    qm->count++;
    snprintf(nd->endpoint, sizeof(nd->endpoint), "%.50s:%d", one.hosts[0].name,
             one.hosts[0].port ? one.hosts[0].port : 6379);
    /* A parameter of all nodes: the quorum is as lazy as they are. */
    qm->base.lazy = nd->st->lazy;
    if (!nd->st->ops->vote || !dibs__node_init(qm, nd))
        return dibsx_nomem(err, "a node of a quorum");
    return DIBS_OK;
}

static dibs_status store_open(const dibsx_url *url, dibsx_nsec deadline,
                              dibs__store **out, dibs_error *err)
{
    dibs__quorum *qm = dibsx_zalloc(sizeof(*qm));
    dibs_status rc;

    if (!qm)
        return dibsx_nomem(err, "a store handle");
    qm->base.ops = &dibs__quorum_ops;
    qm->bell_fd = qm->turn_fd = -1;
    pthread_mutex_init(&qm->mutex, NULL);
    rc = read_url(qm, url, err);
    while (rc == DIBS_OK && qm->count < url->host_count)
        rc = add_node(qm, url, deadline, err);
    qm->skew.count = qm->count;
    if (rc != DIBS_OK) {
        store_close(&qm->base);
        return rc;
    }
    *out = &qm->base;
    return DIBS_OK;
}

/* On a thread of the node. */
static dibs_status
meet_at(dibs__round *rd, size_t node, dibs__vote *vote, dibs_error *err)
{
    dibs__voter voter;
    dibs_status rc =
        dibs__store_reach(rd->qm->nodes[node].st, rd->deadline, err);

    (void)vote;
    return rc == DIBS_OK
               ? dibs__node_meet(rd->qm, node, rd->deadline, &voter, err)
               : rc;
}

/* On a thread of the node. */
static dibs_status
now_at(dibs__round *rd, size_t node, dibs__vote *vote, dibs_error *err)
{
    struct dibs__store *st = rd->qm->nodes[node].st;
    dibsx_nsec sent_at = dibsx_now();
    dibs__node_word word = {0};
    dibs_status rc = st->ops->now(st, rd->deadline, &word.wall_us, err);

    (void)vote;
    if (rc == DIBS_OK)
        dibs__node_heard(rd->qm, node, &word, sent_at);
    return rc;
}

static bool never_enough(const dibs__round *rd)
{
    (void)rd;
    return false;
}

/* Asks all nodes the same. When it is `patient` it waits for all of them, for the
 * time that a node may take. */
static dibs_status ask_all(dibs__quorum *qm, dibs__round_fn *ask, bool patient,
                           dibsx_nsec deadline, dibs_error *err)
{
    dibs__round *rd = dibsx_zalloc(sizeof(*rd));
    dibs_status rc = DIBS_OK;

    if (!rd || !dibs__round_init(rd, qm, ask, deadline)) {
        dibsx_free(rd);
        return dibsx_nomem(err, "a round of votes");
    }
    rd->judged = ask == now_at;
    dibs__round_start(rd, DIBS__ALL_NODES);
    dibs__round_wait(rd, patient ? never_enough : dibs__round_decided);
    if (dibs__ballot_count(&rd->ballot) != DIBS__WON) {
        rc = dibs__ballot_status(&rd->ballot);
        rc = dibs__round_fail(rd, rc == DIBS_UNKNOWN ? DIBS_UNAVAIL : rc,
                              "no majority was reached", err);
    }
    dibs__round_drop(rd);
    return rc;
}

/* The same server under two names would have two votes. */
static dibs_status check_runs(dibs__quorum *qm, dibs_error *err)
{
    dibs_status rc = DIBS_OK;

    pthread_mutex_lock(&qm->mutex);
    for (size_t i = 0; i < qm->count; i++)
        for (size_t k = 0; k < i; k++)
            if (qm->nodes[i].voter.run_id[0] &&
                strcmp(qm->nodes[i].voter.run_id, qm->nodes[k].voter.run_id) ==
                    0)
                rc = dibsx_fail(err, DIBS_REFUSED,
                                "%s and %s are the same server (run id %.8s), "
                                "which would vote twice",
                                qm->nodes[k].endpoint, qm->nodes[i].endpoint,
                                qm->nodes[i].voter.run_id);
    pthread_mutex_unlock(&qm->mutex);
    return rc;
}

/* Waits a while for all nodes, so that their clocks are known; then for a
 * majority, until the deadline. */
static dibs_status
reach_nodes(dibs__store *st, dibsx_nsec deadline, dibs_error *err)
{
    dibs__quorum *qm = dibs__quorum_of(st);
    dibsx_nsec limit = dibs__round_limit(qm, INT64_MAX, deadline);
    dibs_status rc = ask_all(qm, meet_at, true, limit, err);

    if (rc == DIBS_UNAVAIL && dibsx_now() < deadline)
        rc = ask_all(qm, meet_at, false, deadline, err);
    return rc == DIBS_OK ? check_runs(qm, err) : rc;
}

static dibs_status read_time(dibs__store *st, dibsx_nsec deadline,
                             int64_t *store_wall_us, dibs_error *err)
{
    dibs__quorum *qm = dibs__quorum_of(st);
    dibs_status rc = ask_all(qm, now_at, false,
                             dibs__round_limit(qm, INT64_MAX, deadline), err);

    pthread_mutex_lock(&qm->mutex);
    *store_wall_us = dibs__skew_wall_us(&qm->skew, dibsx_now());
    pthread_mutex_unlock(&qm->mutex);
    return rc;
}

/* A bell that never rings: waiters poll. */
static dibs_status
open_doorbell(dibs__store *st, dibsx_nsec deadline, int *fd, dibs_error *err)
{
    dibs__quorum *qm = dibs__quorum_of(st);

    (void)deadline;
    pthread_mutex_lock(&qm->mutex);
    if (qm->bell_fd < 0)
        qm->bell_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    *fd = qm->bell_fd;
    pthread_mutex_unlock(&qm->mutex);
    return *fd >= 0 ? DIBS_OK : dibsx_nomem(err, "a doorbell");
}

static size_t read_doorbell(dibs__store *st, dibs__notice *notices, size_t max)
{
    (void)st;
    (void)notices;
    (void)max;
    return 0;
}

static const char *get_caution(const dibs__store *st)
{
    const dibs__quorum *qm = (const dibs__quorum *)(const void *)st;
    const dibs__store *one = qm->nodes[0].st;

    return one->ops->caution ? one->ops->caution(one) : NULL;
}

static bool alarm_taken(dibs__store *st, dibs_error *out)
{
    dibs__quorum *qm = dibs__quorum_of(st);
    bool alarmed = false;

    pthread_mutex_lock(&qm->mutex);
    for (size_t i = 0; i < qm->count && !alarmed; i++) {
        dibs__node *nd = &qm->nodes[i];

        alarmed = nd->jump_ms != 0;
        if (alarmed)
            (void)dibsx_fail(out, DIBS_REFUSED,
                             "the clock of %s has jumped by %+" PRId64
                             " ms: its votes do not count for %" PRId64 " s",
                             nd->endpoint, nd->jump_ms, qm->longest_ms / 1000);
        nd->jump_ms = alarmed ? 0 : nd->jump_ms;
    }
    pthread_mutex_unlock(&qm->mutex);
    return alarmed;
}

static const dibs__lease_ops lease_ops = {
    .acquire = dibs__quorum_acquire,
    .renew = dibs__quorum_renew,
    .release = dibs__quorum_release,
    .inspect = dibs__quorum_inspect,
    .list = dibs__quorum_list,
    .revoke = dibs__quorum_revoke,
    .convert = dibs__quorum_convert,
    .yield = dibs__quorum_yield,
};

const dibs__store_ops dibs__quorum_ops = {
    .scheme = "redlock",
    .open = store_open,
    .reach = reach_nodes,
    .close = store_close,
    .lease = &lease_ops,
    .value = &dibs__quorum_value_ops,
    .log = &dibs__quorum_log_ops,
    .topic = &dibs__quorum_topic_ops,
    .rate = &dibs__quorum_rate_ops,
    .meter = &dibs__quorum_meter_ops,
    .roster = &dibs__quorum_roster_ops,
    .queue = &dibs__no_queue_ops,
    .queue_admin = &dibs__no_queue_admin_ops,
    .commit = &dibs__no_commit_ops,
    .doorbell_open = open_doorbell,
    .doorbell_read = read_doorbell,
    .now = read_time,
    .caution = get_caution,
    .alarm = alarm_taken,
    .cannot = dibs__quorum_cannot,
    .audit = dibs__quorum_audit,
};
