/* node_look.c - a look of a node at the indexes of its board: other nodes, and the order
 * of all that it does. Ticks are in node_tick.c, sweeps in node_sweeps.c, claims in
 * node_claim.c. */
/* SPDX-License-Identifier: MIT */
#include "node/node_view.h"
#include "node/node_zones.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void dibs__node_hurry_to(dibs__node *node, int64_t at_us, int64_t now_us)
{
    int64_t ms = (at_us - now_us + 999) / 1000;

    if (at_us >= 0)
        dibs__node_hurry(node, ms > 0 ? ms : 0);
}

/* ---- other nodes */

enum { STRIKES_MAX = 16 }; /* in one look */

static void note_nodes(dibs__node *node, const dibs__view *v)
{
    size_t struck = 0;

    node->other_count = 0;
    for (size_t i = 0; i < v->count; i++) {
        const dibs__node_entry *entry = &v->at[i];
        bool drains = v->at[i].look == DIBS__LOOK_DRAINING;
        bool own = strcmp(entry->member, node->id) == 0;

        if (!drains && v->at[i].look != DIBS__LOOK_NODES)
            continue;
        if (own && drains)
            dibs__node_drain(node, ", as a user has asked for it");
        else if (!own && entry->at <= v->now_us) {
            if (struck++ < STRIKES_MAX)
                dibs__node_strike_off(node, drains ? "draining" : "nodes",
                                      entry->member);
        } else if (!own && !drains && node->other_count < DIBS__NODE_OTHERS_MAX)
            (void)snprintf(node->others[node->other_count++], DIBS__NODE_SIZE,
                           "%.16s", entry->member);
    }
}

/* The next look: at the first number of all indexes at the latest. Ticks see to theirs, and
 * sweeps to entries that are due but do not fit into the view: this node may be unable to
 * take them. */
static void plan_look(dibs__node *node, const dibs__view *v)
{
    for (size_t i = DIBS__LOOK_DUE + 1; i < DIBS__LOOK_TRIM; i++)
        if (v->looks[i].next > v->now_us)
            dibs__node_hurry_to(node, v->looks[i].next, v->now_us);
}

/* Jobs wait for a clock that was set back, and nothing else would tell why. */
static void heed_clock(dibs__node *node, const dibs__view *v)
{
    dibs__clock_news news =
        dibs__setback_note(&node->setback, v->now_us, v->taken_at);
    int64_t behind_us = dibs__setback_us(&node->setback);

    if (news == DIBS__CLOCK_BACK)
        dibs__node_say(node,
                       "the clock of the store was set back, by %" PRId64
                       " s in all: jobs wait until it has caught up; dibs job "
                       "reset lets a job go on from now",
                       behind_us / 1000000);
    else if (news == DIBS__CLOCK_AGAIN)
        dibs__node_say(node, "the clock of the store has caught up");
    if (node->opts->behind_us)
        atomic_store(node->opts->behind_us, behind_us);
}

/* Ticks come first: they have a moment, and the rest may take a while. */
static void use_view(dibs__node *node, const dibs__view *v, dibsx_nsec now)
{
    bool own = now >= node->own_at;

    node->idle = true;
    if (own)
        node->own_at = node->wake.look_at;
    note_nodes(node, v);
    heed_clock(node, v);
    if (!node->draining)
        dibs__node_tick(node, v);
    if (own)
        dibs__node_look_at_own(node);
    dibs__node_write_record(node, v->now_us);
    if (node->draining)
        return;
    plan_look(node, v);
    dibs__node_look_at_zones(node);
    dibs__node_sweep(node, v, now);
    dibs__node_claim_ready(node, v);
    dibs__node_await_gone(node);
}

void dibs__node_look(dibs__node *node)
{
    dibsx_nsec now = dibsx_now();
    dibs_error err = {0};
    dibs__view *v;

    node->idle = false;
    dibs__wake_looking(&node->wake, now);
    v = dibs__view_take(node, &err);
    if (v)
        use_view(node, v, now);
    else {
        dibs__node_complain(node, "the board", &err);
        dibs__node_hurry(node, DIBS__AGAIN_MS);
    }
    dibs__view_free(v);
}
