/* quorum_node.c - the nodes of a simulated quorum: the rule of vote*.lua, and what
 * befalls them. */
/* SPDX-License-Identifier: MIT */
#include "quorum.h"

#include "store/vote.h"
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

static void give(node *nd, const mail *ml, uint64_t fence, int64_t now_us)
{
    nd->owner = ml->owner;
    nd->fence = fence;
    nd->until_us = now_us + ml->ttl_ms * 1000;
    if (fence > nd->watermark)
        nd->watermark = fence;
}

static dibs_status grant(node *nd, const mail *ml, int64_t now_us)
{
    uint64_t fence = ml->fence;

    if (nd->owner == ml->owner) {
        if (ml->kind == FILL)
            give(nd, ml, fence, now_us);
        return DIBS_OK;
    }
    if (has_left(nd, ml->owner))
        return DIBS_LOST;
    if (nd->owner)
        return DIBS_BUSY;
    if (ml->kind == GRANT && fence <= nd->watermark)
        fence = nd->watermark + 1;
    if (ml->kind == GRANT && (int64_t)fence < nd->votes_from_us)
        fence = (uint64_t)nd->votes_from_us;
    if (is_ahead(fence, now_us))
        return DIBS_REFUSED;
    give(nd, ml, fence, now_us);
    return DIBS_OK;
}

static dibs_status
renew(const world *w, node *nd, const mail *ml, int64_t now_us)
{
    if (w->mutant == MUTANT_ANY_OWNER && ml->kind == RAISE)
        return DIBS_OK;
    if (nd->owner != ml->owner || is_ahead(ml->fence, now_us))
        return DIBS_LOST;
    if (ml->kind == RAISE && nd->fence < ml->fence)
        nd->fence = ml->fence;
    if (nd->fence != ml->fence)
        return DIBS_LOST;
    if (ml->fence > nd->watermark)
        nd->watermark = ml->fence;
    if (nd->until_us < now_us + ml->ttl_ms * 1000)
        nd->until_us = now_us + ml->ttl_ms * 1000;
    return DIBS_OK;
}

static dibs_status release(node *nd, const mail *ml)
{
    bool held = nd->owner == ml->owner;

    if (held)
        nd->owner = 0;
    if (ml->tomb)
        nd->gone[nd->gone_next++ % GONE_MAX] = ml->owner;
    return held ? DIBS_OK : DIBS_LOST;
}

void node_answer(world *w, mail *ml)
{
    node *nd = &w->nodes[ml->node];
    int64_t now_us = node_wall_us(w, ml->node);

    if (nd->owner && now_us >= nd->until_us)
        nd->owner = 0;
    ml->answer = true;
    ml->wall_us = now_us;
    if (ml->kind == RELEASE)
        ml->rc = release(nd, ml);
    else if (!votes(w, nd, now_us))
        ml->rc = DIBS_REFUSED;
    else if (ml->kind == GRANT || ml->kind == FILL)
        ml->rc = grant(nd, ml, now_us);
    else
        ml->rc = renew(w, nd, ml, now_us);
    ml->left_ms = (nd->until_us - now_us) / 1000;
    if (ml->kind == GRANT)
        ml->fence = nd->fence;
}

static void forget(world *w, node *nd, int64_t now_us)
{
    nd->owner = 0;
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
