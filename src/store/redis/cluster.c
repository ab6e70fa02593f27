/* cluster.c - the servers of a cluster: who serves which slot, and links to them.
 *
 * Owns the nodes and the map; one mutex guards both, and is never held while a
 * server is spoken to. One thread at a time asks for the map, on a connection of
 * its own; others wait for what it learns. */
/* SPDX-License-Identifier: MIT */
#include "store/redis/cluster.h"
#include "base/alloc.h"
#include "base/fail.h"
#include "base/rand.h"
#include "store/redis/conn.h"
#include "store/redis/error.h"
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* The map is not asked for more often than this, and a server that does not
 * answer in this time is passed over for the next. */
#define LEARN_EVERY (50 * DIBSX_MS)
enum { ANSWER_MS = 500 };

struct dibs__node {
    dibs__node *next;
    dibs__place place;
    dibs__redis_conf conf; /* that of the cluster, with the place of this one */
    dibs__link *links[DIBS__LANES];
    int calls;    /* under way */
    bool failing; /* it was of no use the last time */
};

struct dibs__cluster {
    const dibs__redis_conf *conf;
    pthread_mutex_t mutex;
    pthread_cond_t learned; /* `learning` has ended */
    bool learning;
    bool doubted;
    dibsx_nsec learned_at; /* 0: never */
    dibs__topology map;
    dibs__node *nodes;
    size_t turn; /* of dibs__cluster_next() */
};

dibs_status dibs__cluster_new(const dibs__redis_conf *conf, dibs__cluster **out,
                              dibs_error *err)
{
    dibs__cluster *cl = dibsx_zalloc(sizeof(*cl));
    char tag[DIBS__SLOT_TAG];
    pthread_condattr_t attr;
    uint32_t bits = 0;

    *out = cl;
    if (!cl)
        return dibsx_fail(err, DIBS_NOMEM, "what is known of a cluster");
    cl->conf = conf;
    pthread_mutex_init(&cl->mutex, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&cl->learned, &attr);
    pthread_condattr_destroy(&attr);
    /* Clients that were given the same hosts do not all turn to the first. */
    if (dibsx_random(&bits, sizeof(bits)))
        cl->turn = bits;
    /* Has them all computed now rather than in the first step. */
    dibs__slot_tag(0, tag);
    return DIBS_OK;
}

static void node_free(dibs__node *node)
{
    for (size_t i = 0; i < DIBS__LANES; i++)
        dibs__link_free(node->links[i]);
    dibsx_free(node);
}

void dibs__cluster_free(dibs__cluster *cl)
{
    if (!cl)
        return;
    while (cl->nodes) {
        dibs__node *node = cl->nodes;

        cl->nodes = node->next;
        node_free(node);
    }
    dibs__topology_fini(&cl->map);
    pthread_cond_destroy(&cl->learned);
    pthread_mutex_destroy(&cl->mutex);
    dibsx_free(cl);
}

/* Locks: cl->mutex. */
static bool is_member(const dibs__cluster *cl, const dibs__place *place)
{
    for (size_t i = 0; i < cl->map.count; i++)
        if (dibs__place_is(&cl->map.members[i].place, place))
            return true;
    return false;
}

/* Takes the nodes that are gone and idle out of the list. Locks: cl->mutex. */
static dibs__node *take_gone(dibs__cluster *cl)
{
    dibs__node **at = &cl->nodes;
    dibs__node *gone = NULL;

    while (*at) {
        dibs__node *node = *at;

        if (node->calls > 0 || is_member(cl, &node->place)) {
            at = &node->next;
            continue;
        }
        *at = node->next;
        node->next = gone;
        gone = node;
    }
    return gone;
}

/* Locks: none. */
static void free_all(dibs__node *nodes)
{
    while (nodes) {
        dibs__node *node = nodes;

        nodes = node->next;
        node_free(node);
    }
}

/* NULL: none yet. Locks: cl->mutex. */
static dibs__node *find_node(const dibs__cluster *cl, const dibs__place *place)
{
    dibs__node *node = cl->nodes;

    while (node && !dibs__place_is(&node->place, place))
        node = node->next;
    return node;
}

/* Locks: cl->mutex. */
static dibs__node *node_at(dibs__cluster *cl, const dibs__place *place)
{
    dibs__node *node = find_node(cl, place);

    if (node)
        return node;
    node = dibsx_zalloc(sizeof(*node));
    if (node) {
        node->place = *place;
        node->conf = *cl->conf;
        node->conf.host = node->place.host;
        node->conf.port = place->port;
        node->next = cl->nodes;
        cl->nodes = node;
    }
    return node;
}

dibs__node *dibs__cluster_serves(dibs__cluster *cl, int slot)
{
    dibs__node *node = NULL;
    uint16_t at;

    pthread_mutex_lock(&cl->mutex);
    at = cl->map.server[slot];
    if (at > 0)
        node = node_at(cl, &cl->map.members[at - 1].place);
    if (node)
        node->calls++;
    pthread_mutex_unlock(&cl->mutex);
    return node;
}

dibs__node *dibs__cluster_at(dibs__cluster *cl, const dibs__place *place)
{
    dibs__node *node;

    pthread_mutex_lock(&cl->mutex);
    node = node_at(cl, place);
    if (node)
        node->calls++;
    pthread_mutex_unlock(&cl->mutex);
    return node;
}

void dibs__node_drop(dibs__cluster *cl, dibs__node *node)
{
    dibs__node *gone = NULL;

    pthread_mutex_lock(&cl->mutex);
    if (--node->calls == 0 && !is_member(cl, &node->place))
        gone = take_gone(cl);
    pthread_mutex_unlock(&cl->mutex);
    free_all(gone);
}

int dibs__cluster_standing(dibs__cluster *cl, int slot, bool *failing)
{
    const dibs__node *node;
    int at;

    pthread_mutex_lock(&cl->mutex);
    at = cl->map.server[slot];
    node = at > 0 ? find_node(cl, &cl->map.members[at - 1].place) : NULL;
    *failing = node && node->failing;
    pthread_mutex_unlock(&cl->mutex);
    return at;
}

void dibs__node_failed(dibs__cluster *cl, dibs__node *node, bool failed)
{
    pthread_mutex_lock(&cl->mutex);
    node->failing = failed;
    if (failed)
        cl->doubted = true;
    pthread_mutex_unlock(&cl->mutex);
}

const dibs__place *dibs__node_place(const dibs__node *node)
{
    return &node->place;
}

dibs__link *
dibs__node_link(dibs__cluster *cl, dibs__node *node, dibs__lane lane)
{
    dibs__link *ln;

    pthread_mutex_lock(&cl->mutex);
    if (!node->links[lane] &&
        dibs__link_new(&node->conf, &node->links[lane], NULL) != DIBS_OK)
        node->links[lane] = NULL;
    ln = node->links[lane];
    pthread_mutex_unlock(&cl->mutex);
    return ln;
}

void dibs__cluster_doubt(dibs__cluster *cl)
{
    pthread_mutex_lock(&cl->mutex);
    cl->doubted = true;
    pthread_mutex_unlock(&cl->mutex);
}

void dibs__cluster_moved(dibs__cluster *cl, int slot, const dibs__place *to)
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
        rc = dibsx_fail(err, DIBS_NOMEM, "a map of the cluster");
    } else if (cl->map.count > 0) {
        memcpy(out->members, cl->map.members,
               cl->map.count * sizeof(*out->members));
    }
    pthread_mutex_unlock(&cl->mutex);
    return rc;
}

/* The members of the map and then the hosts of the URL, as one list. Locks:
 * cl->mutex. */
static void place_of(const dibs__cluster *cl, size_t i, dibs__place *out)
{
    const dibs__redis_conf *conf = cl->conf;

    i %= cl->map.count + conf->seed_count;
    if (i < cl->map.count) {
        *out = cl->map.members[i].place;
        return;
    }
    i -= cl->map.count;
    *out = (dibs__place){.port = conf->seeds[i].port};
    snprintf(out->host, sizeof(out->host), "%s", conf->seeds[i].name);
}

void dibs__cluster_next(dibs__cluster *cl, dibs__place *out)
{
    size_t turn;

    pthread_mutex_lock(&cl->mutex);
    turn = cl->turn++;
    place_of(cl, cl->map.count > 0 ? turn % cl->map.count : turn, out);
    pthread_mutex_unlock(&cl->mutex);
}

bool dibs__cluster_has(dibs__cluster *cl, const dibs__place *place)
{
    bool has;

    pthread_mutex_lock(&cl->mutex);
    has = is_member(cl, place);
    pthread_mutex_unlock(&cl->mutex);
    return has;
}

/* What an error reply to CLUSTER SLOTS means. */
static dibs_status refused(const char *reply, dibs_error *err)
{
    if (strstr(reply, "cluster support disabled"))
        return dibsx_fail_at(
            err, DIBS_REFUSED, "ERR",
            "the server is not part of a cluster; write redis: "
            "instead of redis-cluster:");
    return dibs__redis_fail(reply, err);
}

static dibs_status
ask_on(dibs__conn *cn, const dibs__place *place, dibsx_nsec deadline,
       dibs__topology *map, dibs_error *err)
{
    redisReply *reply = NULL;
    dibs__words words = {.count = 0};
    dibs_status rc;

    dibs__words_puts(&words, "CLUSTER");
    dibs__words_puts(&words, "SLOTS");
    rc = dibs__conn_ask(cn, &words, deadline, &reply, err);
    if (rc == DIBS_OK && reply->type == REDIS_REPLY_ERROR)
        rc = refused(reply->str, err);
    else if (rc == DIBS_OK)
        rc = dibs__topology_read(reply, place, map, err);
    /* A server that was just started knows of nobody. */
    if (rc == DIBS_OK && map->count == 0)
        rc = dibsx_fail(err, DIBS_UNAVAIL,
                        "no slot of the cluster is served yet");
    dibs__reply_free(reply);
    return rc == DIBS_UNKNOWN ? DIBS_UNAVAIL : rc;
}

/* Asks one server. */
static dibs_status
ask_at(const dibs__cluster *cl, const dibs__place *place, dibsx_nsec deadline,
       dibs__topology *map, dibs_error *err)
{
    dibsx_nsec limit = dibsx_after_ms(dibsx_now(), ANSWER_MS);
    dibs__conn *cn = NULL;
    dibs_status rc;

    if (limit > deadline)
        limit = deadline;
    rc = dibs__conn_open_at(cl->conf, place, -1, limit, &cn, err);
    if (rc == DIBS_OK)
        rc = ask_on(cn, place, limit, map, err);
    dibs__conn_close(cn);
    return rc;
}

/* Locks: cl->mutex. */
static bool is_failing(const dibs__cluster *cl, const dibs__place *place)
{
    const dibs__node *node = find_node(cl, place);

    return node && node->failing;
}

/* Asks those that failed the last time, or the others, one after the other until
 * one answers. `rc` is how it stands so far: a failure that is not "out of reach"
 * stays. Locks: none. */
static dibs_status
ask_some(dibs__cluster *cl, bool failing, dibsx_nsec deadline,
         dibs__topology *map, dibs_status rc, dibs_error *err)
{
    size_t places, first;

    pthread_mutex_lock(&cl->mutex);
    places = cl->map.count + cl->conf->seed_count;
    first = cl->turn++;
    pthread_mutex_unlock(&cl->mutex);
    for (size_t i = 0; i < places && dibsx_now() < deadline; i++) {
        dibs__place place;
        dibs_error why = {0};
        dibs_status got;
        bool fits;

        pthread_mutex_lock(&cl->mutex);
        place_of(cl, first + i, &place);
        fits = is_failing(cl, &place) == failing;
        pthread_mutex_unlock(&cl->mutex);
        got = fits ? ask_at(cl, &place, deadline, map, &why) : rc;
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

/* Those that failed the last time are asked last, for they may not answer at all.
 * Locks: none. */
static dibs_status ask_around(dibs__cluster *cl, dibsx_nsec deadline,
                              dibs__topology *map, dibs_error *err)
{
    dibs_status rc = dibsx_fail(err, DIBS_UNAVAIL, "the deadline has passed");

    rc = ask_some(cl, false, deadline, map, rc, err);
    return rc == DIBS_OK ? rc : ask_some(cl, true, deadline, map, rc, err);
}

/* Waits for the thread that asks. Locks: cl->mutex, let go meanwhile. */
static void await_learned(dibs__cluster *cl, dibsx_nsec deadline)
{
    struct timespec until;
    int64_t span_ms = dibsx_wait_ms(deadline, dibsx_now());

    if (span_ms < 0 || span_ms > ANSWER_MS)
        span_ms = ANSWER_MS;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += (long)span_ms * 1000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    (void)pthread_cond_timedwait(&cl->learned, &cl->mutex, &until);
}

/* Locks: cl->mutex. */
static bool knows(const dibs__cluster *cl, dibsx_nsec now)
{
    return cl->learned_at > 0 &&
           (!cl->doubted || now - cl->learned_at < LEARN_EVERY);
}

/* Puts the new map in place. Locks: cl->mutex. */
static void install(dibs__cluster *cl, const dibs__topology *map)
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
    dibs__node *gone = NULL;
    dibs_status rc = DIBS_OK;

    pthread_mutex_lock(&cl->mutex);
    while (!knows(cl, dibsx_now()) && cl->learning && dibsx_now() < deadline)
        await_learned(cl, deadline);
    if (knows(cl, dibsx_now()) || cl->learning) {
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
             : dibsx_fail(err, DIBS_NOMEM, "a map of the cluster");
    pthread_mutex_lock(&cl->mutex);
    if (rc == DIBS_OK) {
        install(cl, map);
        gone = take_gone(cl);
    }
    cl->learning = false;
    pthread_cond_broadcast(&cl->learned);
    pthread_mutex_unlock(&cl->mutex);
    dibsx_free(map);
    free_all(gone);
    return rc;
}
