/* route.c - chooses the pipeline for a command.
 *
 * Owns the pipeline to the one server when there is no cluster. A request to a
 * cluster lives on the stack of the calling thread. */
/* SPDX-License-Identifier: MIT */
#include "store/redis/cluster/route.h"
#include "base/alloc.h"
#include "base/fail.h"
#include "base/rand.h"
#include "store/redis/cluster/slot.h"
#include "store/redis/wire/error.h"
#include <assert.h>
#include <poll.h>
#include <string.h>

/* This many redirections in a row are followed at once. Then, and after other
 * failures, there are random pauses of up to these bounds. */
enum { AT_ONCE = 4, PAUSE_FIRST_MS = 4, PAUSE_LAST_MS = 100 };

static const char asking[] = "*1\r\n$6\r\nASKING\r\n";

struct dibs__route {
    const dibs__redis_conf *conf;
    dibs__cluster *cluster; /* NULL: one server */
    dibs__pipeline *only;   /* NULL: a cluster */
    bool follows;           /* `only` leads to the primary of sentinels */
    dibs__request_kind kind;
};

typedef struct request {
    dibs__route *rt;
    const dibs__words *words;
    int slot; /* -1: any */
    dibsx_nsec deadline;
    dibs__carry_fn *carry; /* NULL: the pipeline of the server sends it */
    void *carry_arg;
    bool asks;             /* the next attempt goes to `ask_at` */
    dibs__endpoint ask_at; /* with ASKING before the command */
    int redirects;
    int64_t pause_ms;
    dibsx_prng prng;
    dibs_error why; /* the reason why the last attempt failed */
} request;

/* The next action after an attempt. */
typedef enum verdict { ANSWERED, AGAIN_NOW, AGAIN_LATER } verdict;

dibs_status
dibs__route_new(const dibs__redis_conf *conf, dibs__cluster *cluster,
                dibs__request_kind kind, dibs__route **out, dibs_error *err)
{
    dibs__route *rt = dibsx_zalloc(sizeof(*rt));
    dibs_status rc = DIBS_OK;

    *out = NULL;
    if (!rt)
        return dibsx_nomem(err, "a route");
    rt->conf = conf;
    rt->cluster = cluster;
    rt->kind = kind;
    if (!cluster)
        rc = dibs__pipeline_new(conf, &rt->only, err);
    if (rc == DIBS_OK)
        *out = rt;
    else
        dibsx_free(rt);
    return rc;
}

void dibs__route_free(dibs__route *rt)
{
    if (!rt)
        return;
    dibs__pipeline_free(rt->only);
    dibsx_free(rt);
}

void dibs__route_follow(dibs__route *rt, struct dibs__sentinel *sentinel)
{
    rt->follows = true;
    dibs__pipeline_follow(rt->only, sentinel);
}

void dibs__route_drop(dibs__route *rt)
{
    dibs__pipeline_drop(rt->only);
}

void dibs__route_distrust(dibs__route *rt, const char *key, size_t len)
{
    dibs__peer *peer;
    dibs__pipeline *pl;

    if (!rt->cluster) {
        dibs__pipeline_distrust(rt->only);
        return;
    }
    peer = dibs__cluster_serves(rt->cluster, dibs__slot_of(key, len));
    if (!peer)
        return;
    pl = dibs__peer_pipeline(rt->cluster, peer, rt->kind);
    if (pl)
        dibs__pipeline_distrust(pl);
    dibs__peer_drop(rt->cluster, peer);
}

dibs__cluster *dibs__route_cluster(const dibs__route *rt)
{
    return rt->cluster;
}

dibs__pipeline *dibs__route_only(const dibs__route *rt)
{
    return rt->only;
}

/* Sends ASKING and the command as one unit. */
static dibs_status ask_there(const request *rq, dibs__pipeline *pl,
                             redisReply **out, dibs_error *err)
{
    size_t head = sizeof(asking) - 1;
    char *bytes = dibsx_zalloc(head + dibs__words_room(rq->words));
    redisReply *replies[2] = {NULL, NULL};
    dibs_status rc;
    size_t len;

    if (!bytes)
        return dibsx_nomem(err, "a command");
    memcpy(bytes, asking, head);
    len = head + dibs__words_encode(rq->words, bytes + head);
    rc = dibs__pipeline_unit(pl, bytes, len, 2, rq->deadline, replies, err);
    dibsx_free(bytes);
    if (rc != DIBS_OK)
        return rc;
    /* If ASKING is forbidden, report that and not its consequence. */
    if (replies[0]->type == REDIS_REPLY_ERROR &&
        replies[1]->type == REDIS_REPLY_ERROR) {
        *out = replies[0];
        replies[0] = NULL;
    } else {
        *out = replies[1];
        replies[1] = NULL;
    }
    dibs__reply_free(replies[0]);
    dibs__reply_free(replies[1]);
    return DIBS_OK;
}

/* Sends to a peer. Fails at once while its pipeline waits for the next attempt
 * to connect. */
static dibs_status
send_to(request *rq, dibs__peer *peer, redisReply **out, dibs_error *err)
{
    dibs__pipeline *pl;
    dibs_status rc;

    if (rq->carry)
        return rq->carry(rq->carry_arg, dibs__peer_endpoint(peer), rq->asks,
                         rq->deadline, out, err);
    pl = dibs__peer_pipeline(rq->rt->cluster, peer, rq->rt->kind);
    if (!pl)
        return dibsx_nomem(err, "a connection");
    rc = dibs__pipeline_ready(pl, dibsx_now(), err);
    if (rc != DIBS_OK)
        return rc;
    if (rq->asks)
        return ask_there(rq, pl, out, err);
    return dibs__pipeline_call(pl, rq->words, rq->deadline, out, err);
}

static bool begins_with(const char *text, const char *code)
{
    return strncmp(text, code, strlen(code)) == 0;
}

/* The next action after a reply from a peer. */
static verdict
judge_reply(request *rq, const dibs__peer *peer, const redisReply *reply)
{
    static const char *const passing[] = {"TRYAGAIN ", "CLUSTERDOWN ",
                                          "LOADING ", "MASTERDOWN ",
                                          "READONLY "};
    const dibs__endpoint *at = dibs__peer_endpoint(peer);
    dibs__endpoint to;
    int slot;

    if (reply->type != REDIS_REPLY_ERROR)
        return ANSWERED;
    if (begins_with(reply->str, "ASK ") || begins_with(reply->str, "MOVED ")) {
        bool moved = reply->str[0] == 'M';

        if (!dibs__redirect_read(reply->str, at, &slot, &to))
            return AGAIN_LATER;
        if (moved)
            dibs__cluster_moved(rq->rt->cluster, slot, &to);
        rq->asks = !moved;
        rq->ask_at = to;
        return rq->redirects++ < AT_ONCE ? AGAIN_NOW : AGAIN_LATER;
    }
    for (size_t i = 0; i < sizeof(passing) / sizeof(passing[0]); i++)
        if (begins_with(reply->str, passing[i]))
            return AGAIN_LATER;
    return dibs__redis_lacks_replicas(reply->str) ? AGAIN_LATER : ANSWERED;
}

/* The servers are there and no slot is assigned yet, as in a new cluster. */
static bool is_forming(dibs_status rc, const dibs_error *why)
{
    return rc == DIBS_UNAVAIL && strcmp(why->origin, "CLUSTERDOWN") == 0;
}

/* One attempt. ANSWERED: *rc, *out and rq->why are the outcome. */
static verdict attempt_call(request *rq, dibs_status *rc, redisReply **out)
{
    dibs__cluster *cl = rq->rt->cluster;
    bool asks = rq->asks;
    verdict vd = ANSWERED;
    dibs__peer *peer;
    int slot = rq->slot;

    *rc = dibs__cluster_learn(cl, rq->deadline, &rq->why);
    if (*rc != DIBS_OK)
        return is_forming(*rc, &rq->why) ? AGAIN_LATER : ANSWERED;
    if (slot < 0)
        slot = (int)dibsx_prng_below(&rq->prng, DIBS__SLOTS);
    peer = asks ? dibs__cluster_at(cl, &rq->ask_at)
                : dibs__cluster_serves(cl, slot);
    if (!peer) {
        dibs__cluster_doubt(cl);
        *rc = dibsx_fail(&rq->why, DIBS_UNAVAIL,
                         "no server of the cluster serves slot %d", slot);
        return AGAIN_LATER;
    }
    *rc = send_to(rq, peer, out, &rq->why);
    rq->asks = false;
    if (*rc == DIBS_OK)
        vd = judge_reply(rq, peer, *out);
    else if (*rc == DIBS_UNAVAIL)
        vd = AGAIN_LATER;
    /* A peer that failed may have been replaced. */
    dibs__peer_failed(cl, peer, *rc == DIBS_UNAVAIL || *rc == DIBS_UNKNOWN);
    dibs__peer_drop(cl, peer);
    if (vd == AGAIN_LATER)
        dibs__cluster_doubt(cl);
    return vd;
}

/* Pauses before the next attempt; false when there is no time for one. */
static bool pause_request(request *rq)
{
    uint64_t span = (uint64_t)rq->pause_ms * DIBSX_MS;
    dibsx_nsec until =
        dibsx_now() + (dibsx_nsec)dibsx_prng_below(&rq->prng, span + 1);

    rq->pause_ms *= 2;
    if (rq->pause_ms > PAUSE_LAST_MS)
        rq->pause_ms = PAUSE_LAST_MS;
    if (until >= rq->deadline)
        return false;
    (void)poll(NULL, 0, (int)dibsx_wait_ms(until, dibsx_now()));
    return true;
}

/* Keeps a reply that is no answer as the reason why there was none yet. */
static dibs_status set_aside(request *rq, redisReply **reply)
{
    const char *text = (*reply)->str;
    dibs_status rc;

    if (!begins_with(text, "MOVED ") && !begins_with(text, "ASK "))
        rc = dibs__redis_fail(text, &rq->why);
    else if (rq->slot < 0)
        rc = dibsx_fail_at(&rq->why, DIBS_UNAVAIL, "MOVED",
                           "the servers of the cluster refer to each other "
                           "for a command that any of them could answer");
    else
        rc = dibsx_fail_at(&rq->why, DIBS_UNAVAIL, "MOVED",
                           "slot %d of the cluster is being moved, or its "
                           "servers do not agree who serves it",
                           rq->slot);
    dibs__reply_free(*reply);
    *reply = NULL;
    return rc;
}

static void start_pauses(request *rq)
{
    rq->pause_ms = PAUSE_FIRST_MS;
    rq->prng.state = (uint64_t)dibsx_now() ^ (uint64_t)(uintptr_t)rq;
}

/* Sends the command to the server of a key, 0 for any. */
static dibs_status
route_command(request *rq, int key_at, redisReply **out, dibs_error *err)
{
    const dibs__words *words = rq->words;
    dibs_status rc;
    verdict vd;

    *out = NULL;
    rq->slot = key_at == 0
                   ? -1
                   : dibs__slot_of(words->word[key_at], words->len[key_at]);
    start_pauses(rq);
    for (;;) {
        vd = attempt_call(rq, &rc, out);
        if (vd == ANSWERED)
            break;
        if (*out)
            rc = set_aside(rq, out);
        if (vd == AGAIN_LATER && !pause_request(rq))
            break;
    }
    if (rc == DIBS_OK)
        return rc;
    /* Out of time: nothing was done, whatever the last server said. */
    if (vd != ANSWERED)
        rc = DIBS_UNAVAIL;
    return dibsx_fail_at(err, rc, rq->why.origin, "%s", rq->why.message);
}

/* Sends the command to the only server. A primary without replicas refuses to
 * write; behind sentinels they are on their way. Renewals do not wait here: the
 * core sends them again itself, and a lease counts from that later moment. */
static dibs_status call_only(request *rq, const dibs__part *part,
                             redisReply **out, dibs_error *err)
{
    const dibs__route *rt = rq->rt;
    bool patient = rt->follows && rt->kind != DIBS__REQUEST_RENEWAL;

    for (;;) {
        dibs_status rc = dibs__pipeline_join(rt->only, part, rq->words,
                                             rq->deadline, out, err);

        if (rc != DIBS_OK || !patient || (*out)->type != REDIS_REPLY_ERROR ||
            !dibs__redis_lacks_replicas((*out)->str))
            return rc;
        if (rq->pause_ms == 0)
            start_pauses(rq);
        if (!pause_request(rq))
            return rc;
        dibs__reply_free(*out);
        *out = NULL;
    }
}

dibs_status
dibs__route_call(dibs__route *rt, const dibs__part *part,
                 const dibs__words *words, int key_at, dibsx_nsec deadline,
                 redisReply **out, dibs_error *err)
{
    request rq = {.rt = rt, .words = words, .deadline = deadline};

    if (rt->only)
        return call_only(&rq, part, out, err);
    return route_command(&rq, key_at, out, err);
}

dibs_status
dibs__route_carry(dibs__route *rt, const dibs__words *words, int key_at,
                  dibs__carry_fn *carry, void *arg, dibsx_nsec deadline,
                  redisReply **out, dibs_error *err)
{
    request rq = {.rt = rt,
                  .words = words,
                  .deadline = deadline,
                  .carry = carry,
                  .carry_arg = arg};

    return route_command(&rq, key_at, out, err);
}

dibs_status dibs__route_call_at(dibs__route *rt, const dibs__endpoint *endpoint,
                                const dibs__words *words, dibsx_nsec deadline,
                                redisReply **out, dibs_error *err)
{
    dibs__peer *peer;
    dibs__pipeline *pl;
    dibs_status rc;

    *out = NULL;
    if (rt->only)
        return dibs__pipeline_call(rt->only, words, deadline, out, err);
    peer = dibs__cluster_at(rt->cluster, endpoint);
    pl = peer ? dibs__peer_pipeline(rt->cluster, peer, rt->kind) : NULL;
    rc = pl ? dibs__pipeline_call(pl, words, deadline, out, err)
            : dibsx_nomem(err, "a connection");
    if (peer)
        dibs__peer_drop(rt->cluster, peer);
    return rc;
}

void dibs__route_link(dibs__route *rt, dibs__link *out)
{
    *out = (dibs__link){.number = 0};
    if (rt->only)
        dibs__pipeline_link(rt->only, out);
}

void dibs__route_calls(dibs__route *rt, struct dibs__pending *commands,
                       size_t count)
{
    assert(rt->only);
    dibs__pipeline_calls(rt->only, commands, count);
}

dibs_status
dibs__route_call_on(dibs__route *rt, uint64_t number, const dibs__words *words,
                    dibsx_nsec deadline, redisReply **out, dibs_error *err)
{
    assert(rt->only);
    return dibs__pipeline_call_on(rt->only, number, words, deadline, out, err);
}

dibs_status dibs__route_unit(dibs__route *rt, int slot, const char *bytes,
                             size_t len, int count, dibsx_nsec deadline,
                             redisReply **out, dibs_error *err)
{
    dibs__peer *peer;
    dibs__pipeline *pl;
    dibs_status rc;

    if (rt->only)
        return dibs__pipeline_unit(rt->only, bytes, len, count, deadline, out,
                                   err);
    for (int i = 0; i < count; i++)
        out[i] = NULL;
    peer = dibs__cluster_serves(rt->cluster, slot);
    if (!peer)
        return dibsx_fail(err, DIBS_UNAVAIL,
                          "no server of the cluster serves slot %d", slot);
    pl = dibs__peer_pipeline(rt->cluster, peer, rt->kind);
    rc = pl ? dibs__pipeline_ready(pl, dibsx_now(), err)
            : dibsx_nomem(err, "a connection");
    if (rc == DIBS_OK)
        rc = dibs__pipeline_unit(pl, bytes, len, count, deadline, out, err);
    dibs__peer_failed(rt->cluster, peer, rc != DIBS_OK);
    dibs__peer_drop(rt->cluster, peer);
    return rc;
}
