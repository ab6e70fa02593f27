/* ground_redlock.c - a quorum of five servers, or of three.
 *
 * Each lane has a node in trouble at a time, so with five nodes and two lanes no
 * more than a minority is. */
/* SPDX-License-Identifier: MIT */
#include "ground.h"
#include "net.h"

#include "fleet.h"

#include <poll.h>
#include <stdio.h>

/* A node whose clock was set right is left alone until it votes again, as all
 * clients see it: the longest ttl and what is rounded. One that was emptied is
 * not, for it must not matter how many are: they do not vote. */
enum { HEAL_MS = 3500 };

static fleet fl;
static size_t ill[2]; /* the node in trouble, per lane */

static bool start(size_t count, char url[URL_ROOM])
{
    char hosts[FLEET_MAX][NET_HOST];
    const char *names[FLEET_MAX];

    for (size_t i = 0; i < count; i++) {
        if (!net_host((int)i, hosts[i]))
            return false;
        names[i] = hosts[i];
    }
    if (!fleet_start_at(&fl, count, true, names))
        return false;
    fleet_url(&fl, "longest_ttl=1s", url);
    return true;
}

static bool begin(crew *cw, char url[URL_ROOM])
{
    (void)cw;
    return start(5, url);
}

static bool begin_three(crew *cw, char url[URL_ROOM])
{
    (void)cw;
    return start(3, url);
}

static void end(void)
{
    fleet_stop(&fl);
}

/* The lanes share the nodes; one that is alone has them all. */
static fleet_node *choose(int lane, uint64_t dice)
{
    if (fl.count < 5)
        ill[lane] = dice % fl.count;
    else
        ill[lane] = lane == 0 ? dice % 3 : 3 + dice % (fl.count - 3);
    return &fl.nodes[ill[lane]];
}

static bool strike_stop(int lane, uint64_t dice)
{
    server_pause(&choose(lane, dice)->sv);
    return true;
}

static bool heal_stop(int lane)
{
    server_resume(&fl.nodes[ill[lane]].sv);
    return true;
}

static bool strike_kill(int lane, uint64_t dice)
{
    server_kill(&choose(lane, dice)->sv);
    return true;
}

static bool heal_kill(int lane)
{
    return fleet_restart(&fl.nodes[ill[lane]], false);
}

static bool heal_emptied(int lane)
{
    return fleet_restart(&fl.nodes[ill[lane]], true);
}

static bool strike_clock(int lane, uint64_t dice)
{
    int64_t by_ms = 2000 + (int64_t)(dice / 8 % 58000);

    fleet_set_clock(choose(lane, dice), dice % 2 ? by_ms : -by_ms);
    return true;
}

static bool heal_clock(int lane)
{
    fleet_set_clock(&fl.nodes[ill[lane]], 0);
    poll(NULL, 0, HEAL_MS);
    return true;
}

static bool strike_cut(int lane, uint64_t dice)
{
    (void)choose(lane, dice);
    return net_cut((int)ill[lane]);
}

static bool heal_cut(int lane)
{
    return net_mend((int)ill[lane]);
}

static bool strike_unplug(int lane, uint64_t dice)
{
    return server_tell(&choose(lane, dice)->sv, "CLIENT", "KILL", "TYPE",
                       "normal", NULL);
}

static bool strike_flush(int lane, uint64_t dice)
{
    return server_tell(&choose(lane, dice)->sv, "SCRIPT", "FLUSH", NULL);
}

/* Beyond what a quorum bears. */
static bool strike_wipe(int lane, uint64_t dice)
{
    (void)lane;
    (void)dice;
    for (size_t i = 0; i <= fl.count / 2; i++)
        if (!server_tell(&fl.nodes[i].sv, "FLUSHALL", NULL))
            return false;
    return true;
}

static const ground_fault faults[] = {
    {"stop", "a node is stopped", 20, 900, 3, 0, strike_stop, heal_stop},
    {"kill", "kill -9 of a node, and its return", 20, 200, 3, 0, strike_kill,
     heal_kill},
    {"empty", "the same, with nothing", 10, 50, 3, 0, strike_kill,
     heal_emptied},
    {"clock", "the clock of a node jumps, and jumps back", 1500, 3000, 3, 0,
     strike_clock, heal_clock},
    {"cut", "a node is cut off from all", 50, 2000, 3, FAULT_ROOT, strike_cut,
     heal_cut},
    {"unplug", "CLIENT KILL on a node", 0, 0, 3, 0, strike_unplug, NULL},
    {"flush", "SCRIPT FLUSH on a node", 0, 0, 3, 0, strike_flush, NULL},
    {"wipe", "FLUSHALL on a majority", 0, 0, 1, FAULT_LOSSY, strike_wipe, NULL},
    {0},
};

const ground ground_redlock = {
    .name = "redlock",
    .topology = "redlock",
    .durability = "async",
    .ttl_ms = 200,
    .wait_ms = 2000,
    .timeout_ms = 2000,
    .gap_ms = 300,
    .calm_ms = 5000,
    .lanes = 2,
    .net = true,
    .faults = faults,
    .begin = begin,
    .end = end,
};

const ground ground_redlock3 = {
    .name = "redlock3",
    .topology = "redlock",
    .durability = "async",
    .ttl_ms = 200,
    .wait_ms = 2000,
    .timeout_ms = 2000,
    .gap_ms = 300,
    .calm_ms = 5000,
    .lanes = 1,
    .net = true,
    .faults = faults,
    .begin = begin_three,
    .end = end,
};
