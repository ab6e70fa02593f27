/* ground_sentinel.c - a primary, two replicas and three sentinels; one lane. */
/* SPDX-License-Identifier: MIT */
#include "ground.h"
#include "net.h"

#include "topology.h"

#include <poll.h>
#include <stdio.h>

/* The primary serves on so long when nothing that it does is heard of. */
enum { UNHEARD_MS = 900 };

static topology tp;
static int replica; /* that is stopped */

static unsigned masters; /* as bits, as of the last look */
static bool once_more;   /* one was replaced while a fault was being healed */

static void settled(void)
{
    masters = 0;
    for (int i = 0; i < TOPOLOGY_SERVERS; i++)
        if (server_is_master(&tp.servers[i]))
            masters |= 1u << i;
}

static bool changed(void)
{
    unsigned before = masters;
    bool more = once_more;

    settled();
    once_more = false;
    return more || masters != before;
}

static bool begin(crew *cw, char url[URL_ROOM])
{
    char hosts[TOPOLOGY_HOSTS][NET_HOST];
    const char *names[TOPOLOGY_HOSTS];

    (void)cw;
    for (int i = 0; i < TOPOLOGY_HOSTS; i++) {
        if (!net_host(i, hosts[i]))
            return false;
        names[i] = net_is_ours() ? hosts[i] : NULL;
    }
    if (!topology_start_at(&tp, NULL, names))
        return false;
    topology_url(&tp, url);
    settled();
    return true;
}

static void end(void)
{
    topology_stop(&tp);
}

static server *primary(void)
{
    return &tp.servers[tp.primary];
}

static bool strike_flush(int lane, uint64_t dice)
{
    (void)lane;
    (void)dice;
    return server_tell(primary(), "SCRIPT", "FLUSH", NULL);
}

static bool strike_unplug(int lane, uint64_t dice)
{
    (void)lane;
    return server_tell(primary(), "CLIENT", "KILL", "TYPE",
                       dice % 2 ? "normal" : "pubsub", NULL);
}

static bool strike_replica(int lane, uint64_t dice)
{
    (void)lane;
    replica = (tp.primary + 1 + (int)(dice % 2)) % TOPOLOGY_SERVERS;
    server_pause(&tp.servers[replica]);
    return true;
}

static bool heal_replica(int lane)
{
    (void)lane;
    server_resume(&tp.servers[replica]);
    return true;
}

/* All follow the one that was chosen. */
static bool heal_all(void)
{
    int chosen = tp.primary;
    bool ok = topology_heal(&tp);

    once_more = once_more || tp.primary != chosen;
    return ok;
}

/* Another is chosen, and all follow it. */
static bool succeed(int before)
{
    return topology_await_switch(&tp, before) && heal_all();
}

static bool strike_failover(int lane, uint64_t dice)
{
    (void)lane;
    return topology_fail_over(&tp, (int)(dice % TOPOLOGY_SENTINELS)) &&
           heal_all();
}

static bool strike_crash(int lane, uint64_t dice)
{
    int before = tp.primary;

    (void)lane;
    (void)dice;
    server_kill(primary());
    return succeed(before);
}

/* What the primary does for a while reaches no replica; then it dies. */
static bool strike_lossy(int lane, uint64_t dice)
{
    topology_cut(&tp);
    poll(NULL, 0, UNHEARD_MS);
    return strike_crash(lane, dice);
}

/* Stopped for so long that another is chosen; then it comes back as what it was. */
static bool strike_stall(int lane, uint64_t dice)
{
    int before = tp.primary;
    bool chosen;

    (void)lane;
    (void)dice;
    server_pause(primary());
    chosen = topology_await_switch(&tp, before);
    server_resume(&tp.servers[before]);
    return chosen && topology_heal(&tp);
}

static bool strike_away(int lane, uint64_t dice)
{
    (void)lane;
    (void)dice;
    return net_part(tp.primary, tp.primary);
}

static bool strike_link(int lane, uint64_t dice)
{
    int one = (tp.primary + 1) % TOPOLOGY_SERVERS;
    int other = (tp.primary + 2) % TOPOLOGY_SERVERS;

    (void)lane;
    return (dice % 3 == 1 || net_part(tp.primary, one)) &&
           (dice % 3 == 2 || net_part(tp.primary, other));
}

static bool heal_net(int lane)
{
    (void)lane;
    return net_join();
}

/* The primary, and a sentinel with it or none, on one side, and all others on the
 * other, until those have one of their own; the workers reach all of them. */
static bool strike_cut(int lane, uint64_t dice)
{
    int before = tp.primary;
    int beside = TOPOLOGY_SERVERS + (int)(dice % (TOPOLOGY_SENTINELS + 1));

    (void)lane;
    for (int i = 0; i < TOPOLOGY_HOSTS; i++) {
        if (i == before || i == beside)
            continue;
        if (!net_part(before, i) ||
            (beside < TOPOLOGY_HOSTS && !net_part(beside, i)))
            return false;
    }
    return topology_await_switch(&tp, before) &&
           topology_await_followed(&tp, before);
}

static bool heal_cut(int lane)
{
    int chosen = tp.primary;
    bool ok;

    (void)lane;
    ok = net_join() && topology_heal(&tp);
    once_more = once_more || tp.primary != chosen;
    return ok;
}

static const ground_fault faults[] = {
    {"flush", "SCRIPT FLUSH", 0, 0, 1, 0, strike_flush, NULL},
    {"unplug", "CLIENT KILL, of all clients or of all doorbells", 0, 0, 1, 0,
     strike_unplug, NULL},
    {"replica", "a replica is stopped", 100, 600, 1, 0, strike_replica,
     heal_replica},
    {"failover", "SENTINEL FAILOVER", 0, 0, 1, FAULT_SPLIT, strike_failover,
     NULL},
    {"crash", "kill -9 of the primary", 0, 0, 1, FAULT_LOSSY, strike_crash,
     NULL},
    {"lossy", "the same, after its last 0.9 s reached no replica", 0, 0, 1,
     FAULT_LOSSY, strike_lossy, NULL},
    {"stall", "the primary is stopped until another is chosen", 0, 0, 1,
     FAULT_SPLIT, strike_stall, NULL},
    {"away", "workers do not reach the primary", 100, 1500, 1, FAULT_ROOT,
     strike_away, heal_net},
    {"link", "the primary is cut off from one replica, or from both", 100, 1500,
     1, FAULT_ROOT, strike_link, heal_net},
    {"cut", "the primary is cut off from all but the workers and one sentinel",
     0, 1500, 1, FAULT_LOSSY | FAULT_ROOT, strike_cut, heal_cut},
    {0},
};

const ground ground_sentinel_async = {
    .name = "sentinel-async",
    .topology = "sentinel-async",
    .durability = "async",
    .ttl_ms = 3000,
    .wait_ms = 20000,
    .timeout_ms = 10000,
    .gap_ms = 1000,
    .calm_ms = 8500,
    .lanes = 1,
    .patient = true,
    .net = true,
    .faults = faults,
    .begin = begin,
    .end = end,
    .changed = changed,
    .settled = settled,
};

const ground ground_sentinel_wait = {
    .name = "sentinel-wait",
    .topology = "sentinel-wait",
    .durability = "wait:1",
    .ttl_ms = 3000,
    .wait_ms = 20000,
    .timeout_ms = 10000,
    .gap_ms = 1000,
    .calm_ms = 8500,
    .lanes = 1,
    .patient = true,
    .net = true,
    .faults = faults,
    .begin = begin,
    .end = end,
    .changed = changed,
    .settled = settled,
};
