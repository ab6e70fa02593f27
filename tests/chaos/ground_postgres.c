/* ground_postgres.c - PostgreSQL: one server behind a proxy, and a primary with a
 * standby, asynchronous or synchronous. Lane 0 is the servers', lane 1 the proxy's.
 * All have one clock, which can be set. */
/* SPDX-License-Identifier: MIT */
#include "ground_proxy.h"

#include "pg_clock.h"
#include "server.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>

/* A server that does not answer so long after a backend was killed has not
 * recovered; the standby hears nothing for up to so long before a failover. */
enum { RECOVER_MS = 30000, UNHEARD_MS = 900 };

static pg_server servers[2]; /* the second one has a standby only */
static int primary;
static bool synchronous;

static pg_server *in_charge(void)
{
    return &servers[primary];
}

/* The clock is that of the server, or setting it would do nothing. */
static bool has_clock(const pg_server *sv)
{
    const int64_t year_us = INT64_C(31536000000000);
    const char *sql = "SELECT date_part('epoch', clock_timestamp())::bigint";
    long long before = pg_number(sv, sql), then;

    pg_clock_step(year_us);
    then = pg_number(sv, sql);
    pg_clock_step(-year_us);
    if (then - before < year_us / 2000000)
        fprintf(stderr, "chaos: the clock of the server cannot be set\n");
    return then - before >= year_us / 2000000;
}

static bool start_first(void)
{
    return pg_clock_make() && pg_start(&servers[0]) && has_clock(&servers[0]);
}

static bool begin_one(crew *cw, char url[URL_ROOM])
{
    (void)cw;
    if (!start_first() || !proxy_start(&ground_px, servers[0].port))
        return false;
    snprintf(url, URL_ROOM, "postgres://dibs@127.0.0.1:%d/postgres",
             ground_px.port);
    return true;
}

static bool begin_two(crew *cw, char url[URL_ROOM])
{
    (void)cw;
    if (!start_first() || !pg_start_standby(&servers[1], &servers[0]))
        return false;
    snprintf(url, URL_ROOM,
             "postgres://dibs@127.0.0.1:%d,127.0.0.1:%d/postgres",
             servers[0].port, servers[1].port);
    return true;
}

static bool begin_sync(crew *cw, char url[URL_ROOM])
{
    synchronous = true;
    return begin_two(cw, url) && pg_make_synchronous(&servers[0], &servers[1]);
}

static void end(void)
{
    if (ground_px.port)
        proxy_stop(&ground_px);
    for (int i = 0; i < 2; i++)
        pg_stop(&servers[i]);
    pg_clock_remove();
}

static bool strike_quit(int lane, uint64_t dice)
{
    (void)lane;
    (void)dice;
    pg_kill(in_charge());
    return true;
}

static bool strike_kill(int lane, uint64_t dice)
{
    (void)lane;
    (void)dice;
    pg_crash(in_charge());
    return true;
}

static bool heal_restart(int lane)
{
    (void)lane;
    return pg_restart(in_charge());
}

static bool strike_pause(int lane, uint64_t dice)
{
    (void)lane;
    (void)dice;
    pg_pause(in_charge());
    return true;
}

static bool heal_pause(int lane)
{
    (void)lane;
    pg_resume(in_charge());
    return true;
}

/* Each with an even chance, or all of them. */
static bool strike_unplug(int lane, uint64_t dice)
{
    char sql[256];

    (void)lane;
    snprintf(sql, sizeof(sql),
             "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE "
             "backend_type = 'client backend' AND pid <> pg_backend_pid() "
             "AND (%d = 0 OR random() < 0.5)",
             (int)(dice % 4));
    return pg_tell(in_charge(), sql);
}

static bool await_answer(const pg_server *sv)
{
    int64_t until = now_ns() + RECOVER_MS * INT64_C(1000000);

    while (pg_number(sv, "SELECT 1") != 1) {
        if (now_ns() > until)
            return false;
        poll(NULL, 0, 10);
    }
    return true;
}

/* A primary that read its log again shows what it had not answered yet, because
 * the standby did not have it: a failover before it does would lose what was
 * seen. */
static bool catch_up(void)
{
    return !synchronous || pg_await_synchronous(in_charge());
}

/* The server ends all others with it, and reads its log again. */
static bool strike_backend(int lane, uint64_t dice)
{
    long long pid;

    (void)lane;
    (void)dice;
    pid = pg_number(in_charge(),
                    "SELECT pid FROM pg_stat_activity WHERE backend_type = "
                    "'client backend' AND pid <> pg_backend_pid() "
                    "ORDER BY random() LIMIT 1");
    if (pid > 1)
        kill((pid_t)pid, SIGKILL);
    return await_answer(in_charge()) && catch_up();
}

/* A standby may cancel what is asked of it: then it is told again. */
static bool promote(const pg_server *sv)
{
    int64_t until = now_ns() + RECOVER_MS * INT64_C(1000000);

    while (pg_number(sv, "SELECT pg_is_in_recovery()::int") != 0) {
        (void)pg_number(sv, "SELECT pg_promote(false)::int");
        if (now_ns() > until)
            return false;
        poll(NULL, 0, 20);
    }
    return true;
}

/* The standby takes over, and the former primary becomes a copy of it. */
static bool succeed(void)
{
    pg_server *before = in_charge();

    pg_crash(before);
    primary = 1 - primary;
    if (in_charge()->pid == 0 && !pg_restart(in_charge()))
        return false;
    if (!promote(in_charge()))
        return false;
    in_charge()->primary = NULL;
    return pg_follow(before, in_charge()) && catch_up();
}

static bool strike_standby(int lane, uint64_t dice)
{
    (void)lane;
    (void)dice;
    pg_kill(&servers[1 - primary]);
    return true;
}

static bool heal_standby(int lane)
{
    (void)lane;
    return pg_restart(&servers[1 - primary]) && catch_up();
}

/* Back, and never forward again: leases last longer. */
static bool strike_back(int lane, uint64_t dice)
{
    (void)lane;
    pg_clock_step(-(int64_t)(50 + dice % 450) * 1000);
    return true;
}

/* Forward: leases end before their holders think so. */
static bool strike_ahead(int lane, uint64_t dice)
{
    (void)lane;
    pg_clock_step((int64_t)(50 + dice % 5000) * 1000);
    return true;
}

static bool strike_failover(int lane, uint64_t dice)
{
    (void)lane;
    (void)dice;
    return succeed();
}

static bool strike_lossy(int lane, uint64_t dice)
{
    (void)lane;
    pg_kill(&servers[1 - primary]);
    poll(NULL, 0, (int)(dice % UNHEARD_MS));
    return succeed();
}

static const ground_fault faults_one[] = {
    {"restart", "the server ends at once, and returns", 20, 300, 1, 0,
     strike_quit, heal_restart},
    {"crash", "kill -9 of the server, and its return", 20, 300, 1, 0,
     strike_kill, heal_restart},
    {"pause", "the server is stopped", 20, 1000, 1, 0, strike_pause,
     heal_pause},
    {"unplug", "pg_terminate_backend, of all or of some", 0, 0, 1, 0,
     strike_unplug, NULL},
    {"backend", "kill -9 of a backend, and recovery", 0, 0, 1, 0,
     strike_backend, NULL},
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
    {"back", "the server's clock is set back, for good", 0, 0, 1, FAULT_APART,
     strike_back, NULL},
    {"ahead", "the server's clock is set forward, for good", 0, 0, 1,
     FAULT_LOSSY, strike_ahead, NULL},
    {0},
};

static const ground_fault faults_two[] = {
    {"unplug", "pg_terminate_backend, of all or of some", 0, 0, 1, 0,
     strike_unplug, NULL},
    {"backend", "kill -9 of a backend, and recovery", 0, 0, 1, 0,
     strike_backend, NULL},
    {"failover", "kill -9 of the primary, and the standby takes over", 0, 0, 1,
     FAULT_LOSSY, strike_failover, NULL},
    {"lossy", "the same, after the standby heard nothing for up to 0.9 s", 0, 0,
     1, FAULT_LOSSY, strike_lossy, NULL},
    {"ahead", "the clock of both is set forward, for good", 0, 0, 1,
     FAULT_LOSSY, strike_ahead, NULL},
    {0},
};

static const ground_fault faults_sync[] = {
    {"unplug", "pg_terminate_backend, of all or of some", 0, 0, 1, 0,
     strike_unplug, NULL},
    {"backend", "kill -9 of a backend, and recovery", 0, 0, 1, 0,
     strike_backend, NULL},
    {"standby", "the standby ends at once, and returns", 20, 1000, 1, 0,
     strike_standby, heal_standby},
    {"failover", "kill -9 of the primary, and the standby takes over", 0, 0, 1,
     0, strike_failover, NULL},
    {"back", "the clock of both is set back, for good", 0, 0, 1, 0, strike_back,
     NULL},
    {0},
};

const ground ground_postgres = {
    .name = "postgres",
    .topology = "postgres",
    .durability = "async",
    .ttl_ms = 1000,
    .wait_ms = 8000,
    .timeout_ms = 2000,
    .gap_ms = 800,
    .calm_ms = 6500,
    .lanes = 2,
    .faults = faults_one,
    .begin = begin_one,
    .end = end,
};

const ground ground_postgres_standby = {
    .name = "postgres-standby",
    .topology = "postgres",
    .durability = "async",
    .ttl_ms = 3000,
    .wait_ms = 20000,
    .timeout_ms = 10000,
    .gap_ms = 1000,
    .calm_ms = 8500,
    .lanes = 1,
    .faults = faults_two,
    .begin = begin_two,
    .end = end,
};

const ground ground_postgres_sync = {
    .name = "postgres-sync",
    .topology = "postgres",
    .durability = "async",
    .ttl_ms = 3000,
    .wait_ms = 20000,
    .timeout_ms = 10000,
    .gap_ms = 1000,
    .calm_ms = 8500,
    .lanes = 1,
    .faults = faults_sync,
    .begin = begin_sync,
    .end = end,
};
