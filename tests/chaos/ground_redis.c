/* ground_redis.c - one server that writes everything down before it answers, behind
 * a proxy. Lane 0 is the server's, lane 1 the proxy's. */
/* SPDX-License-Identifier: MIT */
#include "ground_proxy.h"

#include "server.h"

#include <limits.h>
#include <stdio.h>
#include <sys/resource.h>

enum { TAIL_BYTES = 50000 };

static server sv;
static _Atomic(int64_t) *ahead_us;

static bool begin(crew *cw, char url[URL_ROOM])
{
    static char clock_path[PATH_MAX]; /* the server borrows it */

    ahead_us = map_file(cw->folder, "clock", sizeof(*ahead_us));
    if (snprintf(clock_path, sizeof(clock_path), "%s/clock", cw->folder) >=
        (int)sizeof(clock_path)) {
        fprintf(stderr, "chaos: the path of the folder is too long\n");
        return false;
    }
    if (!server_start_at(&sv, &(server_place){.clock_path = clock_path}, true,
                         NULL) ||
        !proxy_start(&ground_px, sv.port))
        return false;
    snprintf(url, URL_ROOM, "redis://127.0.0.1:%d", ground_px.port);
    return true;
}

static void end(void)
{
    if (ground_px.port)
        proxy_stop(&ground_px);
    server_stop(&sv);
}

static bool strike_kill(int lane, uint64_t dice)
{
    (void)lane;
    (void)dice;
    server_kill(&sv);
    return true;
}

static bool strike_forget(int lane, uint64_t dice)
{
    (void)lane;
    (void)dice;
    server_kill(&sv);
    server_forget(&sv);
    return true;
}

/* What it had answered in its last moments is gone. */
static bool strike_tail(int lane, uint64_t dice)
{
    (void)lane;
    server_kill(&sv);
    return server_lose(&sv, (size_t)(1000 + dice % TAIL_BYTES));
}

static bool restart(int lane)
{
    (void)lane;
    return server_restart(&sv);
}

static bool strike_pause(int lane, uint64_t dice)
{
    (void)lane;
    (void)dice;
    server_pause(&sv);
    return true;
}

static bool heal_pause(int lane)
{
    (void)lane;
    server_resume(&sv);
    return true;
}

static bool strike_flush(int lane, uint64_t dice)
{
    (void)lane;
    (void)dice;
    return server_tell(&sv, "SCRIPT", "FLUSH", NULL);
}

static bool strike_unplug(int lane, uint64_t dice)
{
    (void)lane;
    return server_tell(&sv, "CLIENT", "KILL", "TYPE",
                       dice % 2 ? "normal" : "pubsub", NULL);
}

static bool strike_memory(int lane, uint64_t dice)
{
    (void)lane;
    (void)dice;
    return server_tell(&sv, "CONFIG", "SET", "maxmemory", "1", NULL);
}

static bool heal_memory(int lane)
{
    (void)lane;
    return server_tell(&sv, "CONFIG", "SET", "maxmemory", "0", NULL);
}

/* A server that cannot write down what it is about to answer ends. */
static bool strike_disk(int lane, uint64_t dice)
{
    struct rlimit lm = {.rlim_cur = 1, .rlim_max = RLIM_INFINITY};

    (void)lane;
    (void)dice;
    return prlimit(sv.pid, RLIMIT_FSIZE, &lm, NULL) == 0;
}

static bool heal_disk(int lane)
{
    (void)lane;
    server_kill(&sv);
    return server_restart(&sv);
}

/* Back, and never forward again: leases last longer. When the server also loses its
 * data, fences fall: that is beyond what is promised. */
static bool strike_back(int lane, uint64_t dice)
{
    (void)lane;
    atomic_fetch_sub(ahead_us, (int64_t)(50 + dice % 450) * 1000);
    return true;
}

/* Forward: leases end before their holders think so. */
static bool strike_ahead(int lane, uint64_t dice)
{
    (void)lane;
    atomic_fetch_add(ahead_us, (int64_t)(50 + dice % 5000) * 1000);
    return true;
}

static const ground_fault faults[] = {
    {"restart", "kill -9 of the server, and its return", 20, 300, 1, 0,
     strike_kill, restart},
    {"pause", "the server is stopped", 20, 1000, 1, 0, strike_pause,
     heal_pause},
    {"flush", "SCRIPT FLUSH", 0, 0, 1, 0, strike_flush, NULL},
    {"unplug", "CLIENT KILL, of all clients or of all doorbells", 0, 0, 1, 0,
     strike_unplug, NULL},
    {"memory", "maxmemory is reached", 20, 500, 1, 0, strike_memory,
     heal_memory},
    {"disk", "the append-only file cannot grow", 20, 500, 1, 0, strike_disk,
     heal_disk},
    {"back", "the server's clock is set back, for good", 0, 0, 1, FAULT_APART,
     strike_back, NULL},
    {"delay", "answers are late by up to 150 ms", 100, 1000, 2, 0,
     px_strike_delay, px_heal_slow},
    {"rate", "2 to 22 kB/s", 100, 1000, 2, 0, px_strike_rate, px_heal_slow},
    {"drop", "connections end, new ones too", 20, 500, 2, 0, px_strike_drop,
     px_heal_mode},
    {"hole", "nothing passes; later it does, late", 20, 1000, 2, 0,
     px_strike_hole, px_heal_mode},
    {"half", "requests arrive, answers do not", 20, 1000, 2, 0, px_strike_half,
     px_heal_mode},
    {"reset", "an answer is cut at a byte", 0, 0, 2, 0, px_strike_reset, NULL},
    {"forget", "kill -9 of the server, and its return with nothing", 20, 300, 1,
     FAULT_LOSSY, strike_forget, restart},
    {"tail", "kill -9 of the server, and its return without its last writes",
     20, 300, 1, FAULT_LOSSY | FAULT_APART, strike_tail, restart},
    {"ahead", "the server's clock is set forward, for good", 0, 0, 1,
     FAULT_LOSSY, strike_ahead, NULL},
    {0},
};

const ground ground_redis = {
    .name = "redis",
    .topology = "redis",
    .durability = "async",
    .ttl_ms = 500,
    .wait_ms = 5000,
    .timeout_ms = 1000,
    .gap_ms = 800,
    .calm_ms = 6000,
    .lanes = 2,
    .faults = faults,
    .begin = begin,
    .end = end,
};
