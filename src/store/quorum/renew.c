/* renew.c - renewing over a quorum: many leases, each by a majority.
 *
 * A lease is renewed when a majority of the nodes still holds it. Nodes that
 * lack a renewed lease are then asked for it, so that the loss of others does
 * not end it; no caller waits for that. This job is in the queue of the steps,
 * not of the renewals, so that it comes after a release of an earlier slot of
 * the owner. Any thread. */
/* SPDX-License-Identifier: MIT */
#include "base/alloc.h"
#include "base/fail.h"
#include "store/quorum/round.h"
#include <stdio.h>
#include <string.h>

enum { RENEWALS_MAX = 1024 }; /* in one step */

typedef struct texts {
    char name[DIBS_NAME_MAX + 1];
    char owner[DIBS_OWNER_SIZE];
} texts;

/* The items of each node are its own, one after the other. */
typedef struct renewing {
    dibs__round rd;
    size_t count;
    texts *texts;
    dibs__renewal *items;
} renewing;

typedef struct filling {
    dibs__round rd;
    texts texts;
    uint64_t fence;
    int64_t ttl_ms;
    size_t holder; /* a node that has the lease */
} filling;

static dibs__renewal *items_of(const renewing *rn, size_t node)
{
    return rn->items + node * rn->count;
}

/* On a thread of the node. */
static dibs_status
renew_at(dibs__round *rd, size_t node, dibs__vote *vote, dibs_error *err)
{
    const renewing *rn = (const renewing *)rd;
    struct dibs__store *st = rd->qm->nodes[node].st;
    dibs__node_word word = {0};
    dibs__voter voter;
    dibs_status rc = DIBS_STALE;

    (void)vote;
    for (int i = 0; i < 2 && rc == DIBS_STALE; i++) {
        dibsx_nsec sent_at;

        rc = dibs__node_know(rd->qm, node, i > 0, rd->deadline, &voter, err);
        if (rc != DIBS_OK)
            return rc;
        sent_at = dibsx_now();
        rc = st->ops->vote->renew(st, &voter, items_of(rn, node), rn->count,
                                  rd->deadline, &word, err);
        dibs__node_heard(rd->qm, node, &word, sent_at);
    }
    return rc;
}

/* A lease as a node has it. */
typedef struct pattern {
    const char *owner;
    dibs__entry entry;
    bool found;
} pattern;

static bool find_owner(const char *name, const dibs__entry *entries,
                       size_t count, void *arg)
{
    pattern *pt = arg;

    (void)name;
    for (size_t i = 0; i < count && !pt->found; i++) {
        pt->found = entries[i].holder && !entries[i].left &&
                    strcmp(entries[i].owner, pt->owner) == 0;
        if (pt->found)
            pt->entry = entries[i];
    }
    return false;
}

/* On a thread of the node that lacks it. Another node says what the lease is
 * like. */
static dibs_status
fill_at(dibs__round *rd, size_t node, dibs__vote *vote, dibs_error *err)
{
    const filling *fl = (const filling *)rd;
    struct dibs__store *holder = rd->qm->nodes[fl->holder].st;
    struct dibs__store *st = rd->qm->nodes[node].st;
    pattern pt = {.owner = fl->texts.owner};
    dibs__ask ask = {.name = fl->texts.name,
                     .owner = fl->texts.owner,
                     .permits = 1,
                     .ttl_ms = fl->ttl_ms,
                     .who = pt.entry.who};
    dibsx_nsec sent_at;
    dibs__node_word word = {0};
    dibs__answer ans;
    dibs__voter voter;
    dibs_status rc;

    (void)vote;
    rc = holder->ops->lease->inspect(holder, ask.name, rd->deadline, find_owner,
                                     &pt, err);
    if (rc != DIBS_OK || !pt.found)
        return rc == DIBS_OK ? DIBS_LOST : rc;
    /* A release of an earlier slot of the owner may be under way. */
    if (pt.entry.mode == DIBS__PERMITS && dibs__node_silent(rd->qm, node))
        return dibsx_fail(err, DIBS_UNAVAIL, "it may not have let go yet");
    ask.mode = pt.entry.mode;
    ask.capacity = pt.entry.capacity;
    ask.priority = pt.entry.priority;
    dibs__node_voter(rd->qm, node, &voter);
    sent_at = dibsx_now();
    rc = st->ops->vote->grant(st, &voter, &ask, fl->fence, true, rd->deadline,
                              &ans, &word, err);
    dibs__node_heard(rd->qm, node, &word, sent_at);
    return rc;
}

/* Collects the votes of the nodes on one item. */
static void item_ballot(const renewing *rn, size_t item, dibs__ballot *out)
{
    const dibs__ballot *bl = &rn->rd.ballot;

    *out = *bl;
    for (size_t i = 0; i < bl->count; i++) {
        const dibs__renewal *said = &items_of(rn, i)[item];

        if (!bl->votes[i].in || bl->votes[i].rc != DIBS_OK)
            continue;
        out->votes[i].rc = said->rc;
        out->votes[i].left_ms = said->left_ms;
    }
}

static bool is_lost(const dibs__ballot *bl)
{
    return dibs__ballot_said(bl, DIBS_LOST) >
           bl->count - dibs__majority(bl->count);
}

static bool renew_decided(const dibs__round *rd)
{
    const renewing *rn = (const renewing *)rd;
    dibs__ballot bl;

    for (size_t i = 0; i < rn->count; i++) {
        item_ballot(rn, i, &bl);
        if (dibs__ballot_count(&bl) == DIBS__OPEN)
            return false;
    }
    return true;
}

static renewing *renewing_new(dibs__quorum *qm, const dibs__renewal *items,
                              size_t count, dibsx_nsec deadline)
{
    renewing *rn = dibsx_zalloc(sizeof(*rn) + count * sizeof(texts) +
                                qm->count * count * sizeof(dibs__renewal));

    if (!rn || !dibs__round_init(&rn->rd, qm, renew_at, deadline)) {
        dibsx_free(rn);
        return NULL;
    }
    rn->rd.judged = true;
    rn->rd.kind = DIBS__REQUEST_RENEWAL;
    rn->count = count;
    rn->items = (dibs__renewal *)(void *)(rn + 1);
    rn->texts = (texts *)(void *)(rn->items + qm->count * count);
    for (size_t i = 0; i < count; i++) {
        texts *tx = &rn->texts[i];

        snprintf(tx->name, sizeof(tx->name), "%s", items[i].name);
        snprintf(tx->owner, sizeof(tx->owner), "%s", items[i].owner);
        for (size_t k = 0; k < qm->count; k++) {
            items_of(rn, k)[i] = items[i];
            items_of(rn, k)[i].name = tx->name;
            items_of(rn, k)[i].owner = tx->owner;
        }
    }
    return rn;
}

/* Asks the nodes that lack a renewed lease for it. */
static void fill_nodes(const renewing *rn, size_t item, const dibs__ballot *bl)
{
    dibs__quorum *qm = rn->rd.qm;
    const dibs__renewal *said = &items_of(rn, 0)[item];
    filling *fl;
    uint32_t nodes = 0;
    size_t holder = 0;

    for (size_t i = 0; i < bl->count; i++)
        if (bl->votes[i].in && bl->votes[i].counts &&
            bl->votes[i].rc == DIBS_LOST)
            nodes |= 1U << i;
        else if (bl->votes[i].in && bl->votes[i].rc == DIBS_OK)
            holder = i;
    fl = nodes ? dibsx_zalloc(sizeof(*fl)) : NULL;
    if (!fl)
        return;
    if (!dibs__round_init(&fl->rd, qm, fill_at,
                          dibs__round_limit(qm, said->ttl_ms, DIBSX_NEVER))) {
        dibsx_free(fl);
        return;
    }
    fl->texts = rn->texts[item];
    fl->fence = said->fence;
    fl->ttl_ms = said->ttl_ms;
    fl->holder = holder;
    dibs__round_start(&fl->rd, nodes);
    dibs__round_drop(&fl->rd);
}

/* Decides the outcome of one item. */
static void settle_item(const renewing *rn, size_t item, dibs__renewal *out)
{
    dibs__ballot bl;

    item_ballot(rn, item, &bl);
    out->wanted = false;
    out->left_ms = dibs__ballot_left(&bl);
    if (dibs__ballot_count(&bl) == DIBS__WON) {
        out->rc = DIBS_OK;
        fill_nodes(rn, item, &bl);
    } else {
        out->rc = is_lost(&bl) ? DIBS_LOST : DIBS_UNKNOWN;
    }
}

static dibs_status
renew_some(dibs__quorum *qm, dibs__renewal *items, size_t count,
           dibsx_nsec deadline, dibs_error *err)
{
    int64_t shortest_ms = items[0].ttl_ms;
    dibs_status rc = DIBS_OK;
    bool any = false;
    renewing *rn;

    for (size_t i = 1; i < count; i++)
        if (items[i].ttl_ms < shortest_ms)
            shortest_ms = items[i].ttl_ms;
    rn = renewing_new(qm, items, count,
                      dibs__round_limit(qm, shortest_ms, deadline));
    if (!rn)
        return dibsx_nomem(err, "a round of renewals");
    dibs__round_start(&rn->rd, DIBS__ALL_NODES);
    dibs__round_wait(&rn->rd, renew_decided);
    for (size_t i = 0; i < count; i++) {
        settle_item(rn, i, &items[i]);
        any = any || items[i].rc != DIBS_UNKNOWN;
    }
    if (!any)
        rc = dibs__round_fail(&rn->rd, dibs__ballot_failure(&rn->rd.ballot),
                              "no majority was reached", err);
    dibs__round_drop(&rn->rd);
    return rc;
}

dibs_status
dibs__quorum_renew(struct dibs__store *st, dibs__renewal *items, size_t count,
                   dibsx_nsec deadline, dibs_error *err)
{
    dibs__quorum *qm = dibs__quorum_of(st);

    if (count == 0)
        return DIBS_OK;
    if (count > RENEWALS_MAX)
        return dibsx_fail(err, DIBS_INVALID,
                          "a step cannot renew more than %d leases",
                          RENEWALS_MAX);
    for (size_t i = 0; i < count; i++)
        if (items[i].ttl_ms > qm->longest_ms)
            return dibsx_fail(err, DIBS_INVALID,
                              "a ttl is longer than longest_ttl");
    return renew_some(qm, items, count, deadline, err);
}
