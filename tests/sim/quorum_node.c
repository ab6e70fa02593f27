/* quorum_node.c - the nodes of a simulated quorum: the rule of vote*.lua, and what
 * befalls them. */
/* SPDX-License-Identifier: MIT */
#include "quorum.h"

#include "store/quorum_steps.h"
#include <string.h>

enum { BACK_US = 500000, SEEN_US = 100000 };

int64_t node_wall_us(const world *w, size_t i)
{
    const node *nd = &w->nodes[i];

    return (int64_t)((double)w->now / 1000 * nd->rate) + nd->offset_us +
           nd->step_us;
}

static bool has_left(const node *nd, uint64_t owner)
{
    for (size_t i = 0; i < GONE_MAX; i++)
        if (nd->gone[i] == owner)
            return true;
    return false;
}

static bool votes(world *w, node *nd, int64_t now_us)
{
    if (now_us < nd->seen_us - BACK_US && w->mutant != MUTANT_NO_SKEW)
        nd->votes_from_us = now_us + LONGEST_MS * 1000;
    if (now_us > nd->seen_us + SEEN_US || now_us < nd->seen_us - SEEN_US)
        nd->seen_us = now_us;
    return now_us >= nd->votes_from_us;
}

static bool is_ahead(uint64_t fence, int64_t now_us)
{
    return (int64_t)fence > now_us + DIBS__AHEAD_MS * 1000;
}

static void heed(node *nd, uint64_t fence)
{
    if (fence > nd->watermark)
        nd->watermark = fence;
}

/* What the owner has, of whatever slot. */
static held *mine(node *nd, uint64_t owner)
{
    for (size_t i = 0; i <= SLOTS_MAX; i++)
        if (nd->held[i].owner == owner)
            return &nd->held[i];
    return NULL;
}

static void agree(node *nd, held *hd, const mail *ml, int64_t now_us)
{
    hd->fence = ml->fence;
    heed(nd, ml->fence);
    if (hd->until_us < now_us + ml->ttl_ms * 1000)
        hd->until_us = now_us + ml->ttl_ms * 1000;
}

static uint64_t taken(const node *nd)
{
    uint64_t slots = 0;

    for (size_t i = 1; i <= SLOTS_MAX; i++)
        if (nd->held[i].owner)
            slots |= (uint64_t)1 << (i - 1);
    return slots;
}

/* One that is given for the first time, under the least fence that it may have. */
static dibs_status
give(const world *w, node *nd, const mail *ml, held *at, int64_t now_us)
{
    uint64_t fence = ml->fence;

    if (ml->kind == GRANT && fence <= nd->watermark)
        fence = nd->watermark + 1;
    if (ml->kind == GRANT && (int64_t)fence < nd->votes_from_us)
        fence = (uint64_t)nd->votes_from_us;
    if (ml->kind == GRANT && ml->slot > 0)
        fence += (ml->slot - 1 - fence) % DIBS__NAME_SLOTS;
    if (is_ahead(fence, now_us))
        return DIBS_REFUSED;
    *at = (held){.owner = ml->owner,
                 .fence = fence,
                 .given_at = w->now,
                 .until_us = now_us + ml->ttl_ms * 1000};
    heed(nd, fence);
    return DIBS_OK;
}

/* Only where the owner has another slot for certain may it be moved: a late request
 * for one that it asked for before is not to do so. */
static dibs_status
grant(const world *w, node *nd, const mail *ml, int64_t now_us)
{
    held *own = mine(nd, ml->owner), *at = &nd->held[ml->slot];

    if (own && (own == at || (ml->kind == FILL && at->owner == 0))) {
        if (own != at) {
            *at = *own;
            own->owner = 0;
        }
        if (ml->kind == FILL && !is_ahead(ml->fence, now_us))
            agree(nd, at, ml, now_us);
        return DIBS_OK;
    }
    if (has_left(nd, ml->owner))
        return DIBS_LOST;
    return own || at->owner ? DIBS_BUSY : give(w, nd, ml, at, now_us);
}

static dibs_status
renew(const world *w, node *nd, const mail *ml, int64_t now_us)
{
    held *own = mine(nd, ml->owner);

    if (w->mutant == MUTANT_ANY_OWNER && ml->kind == RAISE)
        return DIBS_OK;
    if (!own || is_ahead(ml->fence, now_us))
        return DIBS_LOST;
    if (own->fence != ml->fence &&
        (ml->kind == RENEW || own->fence > ml->fence))
        return DIBS_LOST;
    agree(nd, own, ml, now_us);
    return DIBS_OK;
}

/* Who goes on to another slot gives back what it had until then, and nothing that it
 * has had since. */
static dibs_status release(world *w, node *nd, const mail *ml)
{
    held *own = mine(nd, ml->owner);

    if (own && ml->job > 0 && own->given_at > ml->posted_at)
        w->wrong = "a late word ended what was granted after it";
    if (own)
        own->owner = 0;
    if (ml->tomb)
        nd->gone[nd->gone_next++ % GONE_MAX] = ml->owner;
    return own ? DIBS_OK : DIBS_LOST;
}

static void prune(node *nd, int64_t now_us)
{
    for (size_t i = 0; i <= SLOTS_MAX; i++)
        if (now_us >= nd->held[i].until_us)
            nd->held[i].owner = 0;
}

void node_answer(world *w, mail *ml)
{
    node *nd = &w->nodes[ml->node];
    int64_t now_us = node_wall_us(w, ml->node);
    const held *own;

    prune(nd, now_us);
    ml->answer = true;
    ml->again = mine(nd, ml->owner) != NULL;
    ml->wall_us = now_us;
    if (ml->kind == RELEASE)
        ml->rc = release(w, nd, ml);
    else if (!votes(w, nd, now_us))
        ml->rc = DIBS_REFUSED;
    else if (ml->kind == GRANT || ml->kind == FILL)
        ml->rc = grant(w, nd, ml, now_us);
    else
        ml->rc = renew(w, nd, ml, now_us);
    own = mine(nd, ml->owner);
    ml->taken = taken(nd);
    ml->left_ms = own ? (own->until_us - now_us) / 1000 : 0;
    if (ml->kind == GRANT)
        ml->fence = own ? own->fence : 0;
}

static void forget(world *w, node *nd, int64_t now_us)
{
    memset(nd->held, 0, sizeof(nd->held));
    nd->watermark = 0;
    nd->seen_us = 0;
    memset(nd->gone, 0, sizeof(nd->gone));
    nd->votes_from_us =
        w->mutant == MUTANT_NO_QUARANTINE ? 0 : now_us + LONGEST_MS * 1000;
    w->restarts++;
}

static void strike(world *w, size_t i)
{
    node *nd = &w->nodes[i];
    int64_t span_ms = world_between(w, 50, 3000);

    nd->ill_till = w->now + span_ms * DIBSX_MS;
    switch (world_between(w, 0, 2)) {
    case 0: /* away, and back with all it knew */
        nd->down_till = nd->ill_till;
        break;
    case 1: /* killed, and back with nothing */
        forget(w, nd, node_wall_us(w, i));
        nd->ill_till = w->now + (LONGEST_MS + 500) * DIBSX_MS;
        break;
    default:
        nd->step_us = world_between(w, 2000000, 60000000) *
                      (world_chance(w, 500) ? 1 : -1);
        nd->ill_till = w->now + world_between(w, 3000, 6000) * DIBSX_MS;
        w->steps++;
    }
}

/* Other names were granted there, under fences of their own. */
static void move_watermark(world *w, size_t i)
{
    uint64_t fence =
        (uint64_t)(node_wall_us(w, i) + world_between(w, 0, 300000));

    if (fence > w->nodes[i].watermark)
        w->nodes[i].watermark = fence;
}

void node_strike(world *w)
{
    size_t ill = 0;
    size_t i = (size_t)world_between(w, 0, (int64_t)w->count - 1);

    if (world_chance(w, 500))
        move_watermark(w, i);

    for (size_t k = 0; k < w->count; k++) {
        node *nd = &w->nodes[k];

        if (nd->step_us != 0 && (w->now >= nd->ill_till || w->healed)) {
            nd->step_us = 0;
            nd->ill_till = w->now + 2 * LONGEST_MS * DIBSX_MS;
        }
        ill += w->now < nd->ill_till;
    }
    if (!w->healed && ill < (w->count - 1) / 2 &&
        w->now >= w->nodes[i].ill_till)
        strike(w, i);
}
