/* ground_cluster.c - three masters with a replica each; one lane. */
/* SPDX-License-Identifier: MIT */
#include "ground.h"
#include "net.h"
#include "worker.h"

#include "cluster_world.h"
#include "store/redis/cluster/slot.h"
#include "store/redis/keys.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>

/* What a healthy cluster does in a second or two. */
#define BOUND_NS       INT64_C(30000000000)
#define ASKED_AGAIN_NS INT64_C(6000000000)

static cluster_world world;
static int lonely;      /* the master that is cut off */
static int lonely_slot; /* that it served */

static unsigned masters; /* as bits, as of the last look */

static void settled(void)
{
    masters = 0;
    for (int i = 0; i < CLUSTER_NODES; i++)
        if (server_is_master(&world.sv[i]))
            masters |= 1u << i;
}

static bool changed(void)
{
    unsigned before = masters;

    settled();
    return masters != before;
}

static bool begin(crew *cw, char url[URL_ROOM])
{
    char hosts[CLUSTER_NODES][NET_HOST];
    const char *names[CLUSTER_NODES];

    (void)cw;
    for (int i = 0; i < CLUSTER_NODES; i++) {
        if (!net_host(i, hosts[i]))
            return false;
        names[i] = net_is_ours() ? hosts[i] : NULL;
    }
    if (!cluster_start_at(&world, names))
        return false;
    cluster_url(&world, url);
    settled();
    return true;
}

static void end(void)
{
    cluster_stop(&world);
}

/* The slot of one of the names. */
static int slot_by(uint64_t dice)
{
    char name[NAME_ROOM];
    dibs__keys keys;

    key_name((uint32_t)(dice % KEYS), name);
    dibs__keys_of(name, &keys);
    return dibs__slot_of(keys.key[0], keys.len[0]);
}

static server *server_by(uint64_t dice)
{
    return &world.sv[dice % CLUSTER_NODES];
}

static bool strike_flush(int lane, uint64_t dice)
{
    (void)lane;
    return server_tell(server_by(dice), "SCRIPT", "FLUSH", NULL);
}

static bool strike_unplug(int lane, uint64_t dice)
{
    (void)lane;
    return server_tell(server_by(dice), "CLIENT", "KILL", "TYPE",
                       dice / 8 % 2 ? "normal" : "pubsub", NULL);
}

static bool strike_move(int lane, uint64_t dice)
{
    int slot = slot_by(dice), to;

    (void)lane;
    to = cluster_server_of(&world,
                           (slot + (int)(1 + dice / 8 % 2) * DIBS__SLOTS / 3) %
                               DIBS__SLOTS);
    return to >= 0 && cluster_move(&world, slot, to, 2);
}

/* The number of the replica of a master; -1: none says so. */
static int replica_of(int master)
{
    for (int i = 0; i < CLUSTER_NODES; i++) {
        char *text = server_ask(&world.sv[i], "CLUSTER", "NODES", NULL);
        char *mine = text ? strstr(text, "myself,slave") : NULL;
        bool found = false;

        if (mine) {
            mine[strcspn(mine, "\n")] = '\0';
            found = strstr(mine, world.id[master]) != NULL;
        }
        free(text);
        if (found)
            return i;
    }
    return -1;
}

/* Whether a slot has come to another server by then. */
static bool has_left(int slot, int master, int64_t until)
{
    int node;

    do {
        poll(NULL, 0, 10);
        node = cluster_server_of(&world, slot);
    } while ((node < 0 || node == master) && now_ns() < until);
    return node >= 0 && node != master;
}

/* As an operator does it: nothing is lost. On a busy machine one may not get through
 * within its five seconds, or come after another that was not asked for. It is over
 * when the former master follows; else its change of role would be taken for another
 * one. */
static bool strike_failover(int lane, uint64_t dice)
{
    int64_t until = now_ns() + BOUND_NS;
    int slot = slot_by(dice);
    int master = cluster_server_of(&world, slot);
    bool over = false;

    (void)lane;
    while (!over && now_ns() < until) {
        int replica = master < 0 ? -1 : replica_of(master);

        if (replica >= 0)
            (void)server_tell(&world.sv[replica], "CLUSTER", "FAILOVER", NULL);
        over = has_left(slot, master, now_ns() + ASKED_AGAIN_NS);
    }
    return over && (master < 0 || cluster_await_follower(&world, master));
}

/* A crash after all that was answered was passed on. */
static bool strike_crash(int lane, uint64_t dice)
{
    int master = cluster_server_of(&world, slot_by(dice));
    int64_t took_ms;

    (void)lane;
    return master >= 0 && cluster_crash(&world, master, &took_ms);
}

static bool strike_lossy(int lane, uint64_t dice)
{
    int master = cluster_server_of(&world, slot_by(dice));
    int64_t took_ms;

    (void)lane;
    return master >= 0 && cluster_kill(&world, master, &took_ms);
}

static bool strike_stall(int lane, uint64_t dice)
{
    int master = cluster_server_of(&world, slot_by(dice));

    (void)lane;
    return master >= 0 && cluster_stall(&world, master);
}

/* Chooses a master. */
static bool choose(uint64_t dice)
{
    lonely_slot = slot_by(dice);
    lonely = cluster_server_of(&world, lonely_slot);
    return lonely >= 0;
}

static bool strike_away(int lane, uint64_t dice)
{
    (void)lane;
    return choose(dice) && net_part(lonely, lonely);
}

static bool strike_link(int lane, uint64_t dice)
{
    int replica = choose(dice) ? replica_of(lonely) : -1;

    (void)lane;
    return replica >= 0 && net_part(lonely, replica);
}

/* All others, but for one if it is not -1, are on another side. */
static bool part_from_all(int node, int but)
{
    for (int i = 0; i < CLUSTER_NODES; i++)
        if (i != node && i != but && !net_part(node, i))
            return false;
    return true;
}

/* With its replica, so that nobody takes over. */
static bool strike_apart(int lane, uint64_t dice)
{
    int replica = choose(dice) ? replica_of(lonely) : -1;

    (void)lane;
    return replica >= 0 && part_from_all(lonely, replica) &&
           part_from_all(replica, lonely);
}

static bool strike_cut(int lane, uint64_t dice)
{
    (void)lane;
    return choose(dice) && part_from_all(lonely, -1) &&
           cluster_await_other(&world, lonely_slot, lonely);
}

static bool heal_net(int lane)
{
    (void)lane;
    return net_join();
}

/* Until all of them are served again, and by all that is known. */
static bool heal_apart(int lane)
{
    (void)lane;
    return net_join() && cluster_await_well(&world);
}

static bool heal_cut(int lane)
{
    (void)lane;
    return net_join() && cluster_await_follower(&world, lonely) &&
           cluster_await_well(&world);
}

static const ground_fault faults[] = {
    {"flush", "SCRIPT FLUSH on a node", 0, 0, 1, 0, strike_flush, NULL},
    {"unplug", "CLIENT KILL on a node, of all clients or of all doorbells", 0,
     0, 1, 0, strike_unplug, NULL},
    {"move", "the slot of a name moves to another master", 0, 0, 1, 0,
     strike_move, NULL},
    {"failover", "CLUSTER FAILOVER", 0, 0, 1, FAULT_ROLES, strike_failover,
     NULL},
    {"crash", "kill -9 of a master that was heard of to the end", 0, 0, 1,
     FAULT_ROLES, strike_crash, NULL},
    {"lossy", "kill -9 of a master", 0, 0, 1, FAULT_LOSSY, strike_lossy, NULL},
    {"stall", "a master is stopped until another serves", 0, 0, 1, FAULT_SPLIT,
     strike_stall, NULL},
    {"away", "workers do not reach a master", 100, 1500, 1, FAULT_ROOT,
     strike_away, heal_net},
    {"link", "a master is cut off from its replica", 100, 1500, 1, FAULT_ROOT,
     strike_link, heal_net},
    {"apart", "a master and its replica are cut off from the others", 500, 3500,
     1, FAULT_ROOT, strike_apart, heal_apart},
    {"cut", "a master is cut off from all but the workers", 0, 1500, 1,
     FAULT_SPLIT | FAULT_ROOT, strike_cut, heal_cut},
    {0},
};

const ground ground_cluster = {
    .name = "cluster",
    .topology = "cluster",
    .durability = "async",
    .ttl_ms = 4000,
    .wait_ms = 20000,
    .timeout_ms = 10000,
    .gap_ms = 1000,
    .calm_ms = 9500,
    .lanes = 1,
    .patient = true,
    .net = true,
    .faults = faults,
    .begin = begin,
    .end = end,
    .changed = changed,
    .settled = settled,
};
