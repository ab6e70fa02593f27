/* cluster.c - the servers of a cluster: which one serves a slot, and pipelines
 * to them.
 *
 * Owns the peers and the map. One mutex guards both; no thread holds it while
 * it talks to a server. One thread at a time asks for the map, on a connection
 * of its own; others wait for the result. */
/* SPDX-License-Identifier: MIT */
#include "store/redis/cluster/cluster.h"
#include "base/alloc.h"
#include "base/cond.h"
#include "base/fail.h"
#include "base/rand.h"
#include "store/redis/wire/conn.h"
#include "store/redis/wire/error.h"
#include <pthread.h>
#include <stdio.h>
#include <string.h>

/* The map is fetched no more often than this, and if a server does not answer
 * in this time, the next one is asked. */
#define LEARN_EVERY (50 * DIBSX_MS)
enum { ANSWER_MS = 500 };

struct dibs__peer {
    dibs__peer *next;
    dibs__endpoint endpoint;
    dibs__redis_conf
        conf; /* the configuration of the cluster, with this endpoint */
    dibs__pipeline *pipelines[DIBS__REQUEST_KINDS];
    int calls;    /* under way */
    bool failing; /* its last use failed */
};

struct dibs__cluster {
    const dibs__redis_conf *conf;
    pthread_mutex_t mutex;
    pthread_cond_t learned; /* `learning` has ended */
    bool learning;
    bool doubted;
    dibsx_nsec learned_at; /* 0: never */
    dibs__topology map;
    dibs__peer *peers;
    size_t next_server; /* the counter of dibs__cluster_next() */
};

dibs_status dibs__cluster_new(const dibs__redis_conf *conf, dibs__cluster **out,
                              dibs_error *err)
{
    dibs__cluster *cl = dibsx_zalloc(sizeof(*cl));
    char tag[DIBS__SLOT_TAG];
    uint32_t bits = 0;

    *out = cl;
    if (!cl)
        return dibsx_nomem(err, "what is known of a cluster");
    cl->conf = conf;
    pthread_mutex_init(&cl->mutex, NULL);
    (void)dibsx_cond_init(&cl->learned);
    /* Clients with the same hosts begin with different ones. */
    if (dibsx_random(&bits, sizeof(bits)))
        cl->next_server = bits;
    /* Computes all tags now rather than in the first step. */
    dibs__slot_tag(0, tag);
    return DIBS_OK;
}

static void peer_free(dibs__peer *peer)
{
    for (size_t i = 0; i < DIBS__REQUEST_KINDS; i++)
        dibs__pipeline_free(peer->pipelines[i]);
    dibsx_free(peer);
}

void dibs__cluster_free(dibs__cluster *cl)
{
    if (!cl)
        return;
    while (cl->peers) {
        dibs__peer *peer = cl->peers;

        cl->peers = peer->next;
        peer_free(peer);
    }
    dibs__topology_fini(&cl->map);
    pthread_cond_destroy(&cl->learned);
    pthread_mutex_destroy(&cl->mutex);
    dibsx_free(cl);
}

/* Locks: cl->mutex. */
static bool is_member(const dibs__cluster *cl, const dibs__endpoint *endpoint)
{
    for (size_t i = 0; i < cl->map.count; i++)
        if (dibs__endpoint_is(&cl->map.members[i].endpoint, endpoint))
            return true;
    return false;
}

/* Removes the peers that left the cluster and are idle from the list. Locks:
 * cl->mutex. */
static dibs__peer *remove_gone(dibs__cluster *cl)
{
    dibs__peer **at = &cl->peers;
    dibs__peer *gone = NULL;

    while (*at) {
        dibs__peer *peer = *at;

        if (peer->calls > 0 || is_member(cl, &peer->endpoint)) {
            at = &peer->next;
            continue;
        }
        *at = peer->next;
        peer->next = gone;
        gone = peer;
    }
    return gone;
}

/* Locks: none. */
static void free_all(dibs__peer *peers)
{
    while (peers) {
        dibs__peer *peer = peers;

        peers = peer->next;
        peer_free(peer);
    }
}

/* NULL: none yet. Locks: cl->mutex. */
static dibs__peer *
find_peer(const dibs__cluster *cl, const dibs__endpoint *endpoint)
{
    dibs__peer *peer = cl->peers;

    while (peer && !dibs__endpoint_is(&peer->endpoint, endpoint))
        peer = peer->next;
    return peer;
}

/* Locks: cl->mutex. */
static dibs__peer *peer_at(dibs__cluster *cl, const dibs__endpoint *endpoint)
{
    dibs__peer *peer = find_peer(cl, endpoint);

    if (peer)
        return peer;
    peer = dibsx_zalloc(sizeof(*peer));
    if (peer) {
        peer->endpoint = *endpoint;
        peer->conf = *cl->conf;
        peer->conf.host = peer->endpoint.host;
        peer->conf.port = endpoint->port;
        peer->next = cl->peers;
        cl->peers = peer;
    }
    return peer;
}

dibs__peer *dibs__cluster_serves(dibs__cluster *cl, int slot)
{
    dibs__peer *peer = NULL;
    uint16_t at;

    pthread_mutex_lock(&cl->mutex);
    at = cl->map.server[slot];
    if (at > 0)
        peer = peer_at(cl, &cl->map.members[at - 1].endpoint);
    if (peer)
        peer->calls++;
    pthread_mutex_unlock(&cl->mutex);
    return peer;
}

dibs__peer *dibs__cluster_at(dibs__cluster *cl, const dibs__endpoint *endpoint)
{
    dibs__peer *peer;

    pthread_mutex_lock(&cl->mutex);
    peer = peer_at(cl, endpoint);
    if (peer)
        peer->calls++;
    pthread_mutex_unlock(&cl->mutex);
    return peer;
}

void dibs__peer_drop(dibs__cluster *cl, dibs__peer *peer)
{
    dibs__peer *gone = NULL;

    pthread_mutex_lock(&cl->mutex);
    if (--peer->calls == 0 && !is_member(cl, &peer->endpoint))
        gone = remove_gone(cl);
    pthread_mutex_unlock(&cl->mutex);
    free_all(gone);
}

bool dibs__cluster_home(dibs__cluster *cl, int slot, dibs__endpoint *out)
{
    int at;

    pthread_mutex_lock(&cl->mutex);
    at = cl->map.server[slot];
    if (at > 0)
        *out = cl->map.members[at - 1].endpoint;
    pthread_mutex_unlock(&cl->mutex);
    return at > 0;
}

int dibs__cluster_standing(dibs__cluster *cl, int slot, bool *failing)
{
    const dibs__peer *peer;
    int at;

    pthread_mutex_lock(&cl->mutex);
    at = cl->map.server[slot];
    peer = at > 0 ? find_peer(cl, &cl->map.members[at - 1].endpoint) : NULL;
    *failing = peer && peer->failing;
    pthread_mutex_unlock(&cl->mutex);
    return at;
}

void dibs__peer_failed(dibs__cluster *cl, dibs__peer *peer, bool failed)
{
    pthread_mutex_lock(&cl->mutex);
    peer->failing = failed;
    if (failed)
        cl->doubted = true;
    pthread_mutex_unlock(&cl->mutex);
}

const dibs__endpoint *dibs__peer_endpoint(const dibs__peer *peer)
{
    return &peer->endpoint;
}

dibs__pipeline *dibs__peer_pipeline(dibs__cluster *cl, dibs__peer *peer,
                                    dibs__request_kind kind)
{
    dibs__pipeline *pl;

    pthread_mutex_lock(&cl->mutex);
    if (!peer->pipelines[kind] &&
        dibs__pipeline_new(&peer->conf, &peer->pipelines[kind], NULL) !=
            DIBS_OK)
        peer->pipelines[kind] = NULL;
    pl = peer->pipelines[kind];
    pthread_mutex_unlock(&cl->mutex);
    return pl;
}

void dibs__cluster_doubt(dibs__cluster *cl)
{
    pthread_mutex_lock(&cl->mutex);
    cl->doubted = true;
    pthread_mutex_unlock(&cl->mutex);
}

void dibs__cluster_moved(dibs__cluster *cl, int slot, const dibs__endpoint *to)
{
    int at;

    pthread_mutex_lock(&cl->mutex);
    cl->doubted = true;
    at = dibs__topology_add(&cl->map, to);
    if (at >= 0) {
        cl->map.server[slot] = (uint16_t)(at + 1);
        cl->map.members[at].master = true;
    }
    pthread_mutex_unlock(&cl->mutex);
}

dibs_status
dibs__cluster_map(dibs__cluster *cl, dibs__topology *out, dibs_error *err)
{
    dibs_status rc = DIBS_OK;

    pthread_mutex_lock(&cl->mutex);
    *out = cl->map;
    out->members = dibsx_zalloc_n(cl->map.count + 1, sizeof(*out->members));
    if (!out->members) {
        *out = (dibs__topology){0};
        rc = dibsx_nomem(err, "a map of the cluster");
    } else if (cl->map.count > 0) {
        memcpy(out->members, cl->map.members,
               cl->map.count * sizeof(*out->members));
    }
    pthread_mutex_unlock(&cl->mutex);
    return rc;
}

/* The members of the map and then the hosts of the URL, as one list. Locks:
 * cl->mutex. */
static void endpoint_of(const dibs__cluster *cl, size_t i, dibs__endpoint *out)
{
    const dibs__redis_conf *conf = cl->conf;

    i %= cl->map.count + conf->seed_count;
    if (i < cl->map.count) {
        *out = cl->map.members[i].endpoint;
        return;
    }
    i -= cl->map.count;
    *out = (dibs__endpoint){.port = conf->seeds[i].port};
    snprintf(out->host, sizeof(out->host), "%s", conf->seeds[i].name);
}

void dibs__cluster_next(dibs__cluster *cl, dibs__endpoint *out)
{
    size_t number;

    pthread_mutex_lock(&cl->mutex);
    number = cl->next_server++;
    endpoint_of(cl, cl->map.count > 0 ? number % cl->map.count : number, out);
    pthread_mutex_unlock(&cl->mutex);
}

bool dibs__cluster_has(dibs__cluster *cl, const dibs__endpoint *endpoint)
{
    bool has;

    pthread_mutex_lock(&cl->mutex);
    has = is_member(cl, endpoint);
    pthread_mutex_unlock(&cl->mutex);
    return has;
}

/* Fails with the meaning of an error reply to CLUSTER SLOTS. */
static dibs_status fail_refused(const char *reply, dibs_error *err)
{
    if (strstr(reply, "cluster support disabled"))
        return dibsx_fail_at(
            err, DIBS_REFUSED, "ERR",
            "the server is not part of a cluster; write redis: "
            "instead of redis-cluster:");
    return dibs__redis_fail(reply, err);
}

static dibs_status
ask_on(dibs__conn *cn, const dibs__endpoint *endpoint, dibsx_nsec deadline,
       dibs__topology *map, dibs_error *err)
{
    redisReply *reply = NULL;
    dibs__words words = {.count = 0};
    dibs_status rc;

    dibs__words_puts(&words, "CLUSTER");
    dibs__words_puts(&words, "SLOTS");
    rc = dibs__conn_ask(cn, &words, deadline, &reply, err);
    if (rc == DIBS_OK && reply->type == REDIS_REPLY_ERROR)
        rc = fail_refused(reply->str, err);
    else if (rc == DIBS_OK)
        rc = dibs__topology_read(reply, endpoint, map, err);
    /* A server that was just started knows no other. */
    if (rc == DIBS_OK && map->count == 0)
        rc = dibsx_fail_at(err, DIBS_UNAVAIL, "CLUSTERDOWN",
                           "no slot of the cluster is served yet; assign the "
                           "slots with `redis-cli --cluster create`");
    dibs__reply_free(reply);
    return rc == DIBS_UNKNOWN ? DIBS_UNAVAIL : rc;
}

/* Asks one server. */
static dibs_status
ask_at(const dibs__cluster *cl, const dibs__endpoint *endpoint,
       dibsx_nsec deadline, dibs__topology *map, dibs_error *err)
{
    dibsx_nsec limit = dibsx_after_ms(dibsx_now(), ANSWER_MS);
    dibs__conn *cn = NULL;
    dibs_status rc;

    if (limit > deadline)
        limit = deadline;
    rc = dibs__conn_open_at(cl->conf, endpoint, -1, limit, &cn, err);
    if (rc == DIBS_OK)
        rc = ask_on(cn, endpoint, limit, map, err);
    dibs__conn_close(cn);
    return rc;
}

/* Locks: cl->mutex. */
static bool is_failing(const dibs__cluster *cl, const dibs__endpoint *endpoint)
{
    const dibs__peer *peer = find_peer(cl, endpoint);

    return peer && peer->failing;
}

/* Asks the servers that failed the last time, or the others, one after the
 * other until one answers. `rc` is the result so far: a failure other than
 * DIBS_UNAVAIL stays. Locks: none. */
static dibs_status
ask_some(dibs__cluster *cl, bool failing, dibsx_nsec deadline,
         dibs__topology *map, dibs_status rc, dibs_error *err)
{
    size_t endpoints, first;

    pthread_mutex_lock(&cl->mutex);
    endpoints = cl->map.count + cl->conf->seed_count;
    first = cl->next_server++;
    pthread_mutex_unlock(&cl->mutex);
    for (size_t i = 0; i < endpoints && dibsx_now() < deadline; i++) {
        dibs__endpoint endpoint;
        dibs_error why = {0};
        dibs_status got;
        bool fits;

        pthread_mutex_lock(&cl->mutex);
        endpoint_of(cl, first + i, &endpoint);
        fits = is_failing(cl, &endpoint) == failing;
        pthread_mutex_unlock(&cl->mutex);
        got = fits ? ask_at(cl, &endpoint, deadline, map, &why) : rc;
        if (got == DIBS_OK)
            return got;
        if (fits && rc == DIBS_UNAVAIL) {
            rc = got;
            if (err)
                *err = why;
        }
    }
    return rc;
}

/* Asks servers that failed the last time last, for they may not answer at all.
 * Locks: none. */
static dibs_status ask_around(dibs__cluster *cl, dibsx_nsec deadline,
                              dibs__topology *map, dibs_error *err)
{
    dibs_status rc = dibsx_fail(err, DIBS_UNAVAIL, "the deadline has passed");

    rc = ask_some(cl, false, deadline, map, rc, err);
    return rc == DIBS_OK ? rc : ask_some(cl, true, deadline, map, rc, err);
}

/* Locks: cl->mutex. */
static bool knows_map(const dibs__cluster *cl, dibsx_nsec now)
{
    return cl->learned_at > 0 &&
           (!cl->doubted || now - cl->learned_at < LEARN_EVERY);
}

/* Replaces the map. Locks: cl->mutex. */
static void install_map(dibs__cluster *cl, const dibs__topology *map)
{
    dibs__topology_fini(&cl->map);
    cl->map = *map;
    cl->learned_at = dibsx_now();
    cl->doubted = false;
}

dibs_status
dibs__cluster_learn(dibs__cluster *cl, dibsx_nsec deadline, dibs_error *err)
{
    dibs__topology *map;
    dibs__peer *gone = NULL;
    dibs_status rc = DIBS_OK;

    pthread_mutex_lock(&cl->mutex);
    while (!knows_map(cl, dibsx_now()) && cl->learning &&
           dibsx_now() < deadline)
        dibsx_cond_wait(&cl->learned, &cl->mutex, deadline);
    if (knows_map(cl, dibsx_now()) || cl->learning) {
        bool known = cl->learned_at > 0;

        pthread_mutex_unlock(&cl->mutex);
        return known ? rc
                     : dibsx_fail(err, DIBS_UNAVAIL,
                                  "the cluster takes its time to answer");
    }
    cl->learning = true;
    pthread_mutex_unlock(&cl->mutex);
    map = dibsx_zalloc(sizeof(*map));
    rc = map ? ask_around(cl, deadline, map, err)
             : dibsx_nomem(err, "a map of the cluster");
    pthread_mutex_lock(&cl->mutex);
    if (rc == DIBS_OK) {
        install_map(cl, map);
        gone = remove_gone(cl);
    }
    cl->learning = false;
    pthread_cond_broadcast(&cl->learned);
    pthread_mutex_unlock(&cl->mutex);
    dibsx_free(map);
    free_all(gone);
    return rc;
}
