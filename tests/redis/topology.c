/* topology.c - see topology.h. */
/* SPDX-License-Identifier: MIT */
#include "topology.h"

#include "base/clock.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BOUND_MS = 30000 };

/* The user that replicas follow as. */
#define REPLICATION "replication"
#define SECRET      "replication-secret"

static const char *const common_args[] = {
    "--masteruser",
    REPLICATION,
    "--masterauth",
    SECRET,
    "--repl-diskless-sync",
    "yes",
    "--repl-diskless-sync-delay",
    "0",
};

enum { COMMON = sizeof(common_args) / sizeof(common_args[0]) };

/* Room for the common ones and "--replicaof HOST PORT". */
_Static_assert(COMMON + 3 < SERVER_ARGS_MAX, "they fit");

static bool admit_replicas(const server *sv, bool on)
{
    return server_tell(sv, "ACL", "SETUSER", REPLICATION, on ? "on" : "off",
                       "resetpass", ">" SECRET, "resetkeys", "-@all", "+psync",
                       "+replconf", "+ping", NULL);
}

/* `of`: the port of the primary as text, which is borrowed; NULL: none. */
static void make_args(const char **out, const char *const *more, const char *of)
{
    size_t count = 0;

    for (size_t i = 0; i < COMMON; i++)
        out[count++] = common_args[i];
    for (size_t i = 0; more && more[i] && count < SERVER_ARGS_MAX - 3; i++)
        out[count++] = more[i];
    if (of) {
        out[count++] = "--replicaof";
        out[count++] = "127.0.0.1";
        out[count++] = of;
    }
    out[count] = NULL;
}

static bool has_field(const server *sv, const char *section, const char *line)
{
    char *text = server_ask(sv, "INFO", section, NULL);
    bool found = text && strstr(text, line);

    free(text);
    return found;
}

/* What a sentinel says of the primary; -1 when it does not. */
static long long sentinel_field(const server *sv, const char *field)
{
    char *text = server_ask(sv, "SENTINEL", "MASTER", TOPOLOGY_NAME, NULL);
    const char *at = text ? strstr(text, field) : NULL;
    long long number = -1;

    if (at)
        number = strtoll(at + strlen(field), NULL, 10);
    free(text);
    return number;
}

int topology_primary_port(const topology *tp)
{
    for (int i = 0; i < TOPOLOGY_SENTINELS; i++) {
        const server *sv = &tp->sentinels[i];
        char *text = sv->pid
                         ? server_ask(sv, "SENTINEL", "get-master-addr-by-name",
                                      TOPOLOGY_NAME, NULL)
                         : NULL;
        const char *at = text ? strrchr(text, '\n') : NULL;
        int port = at ? (int)strtol(at + 1, NULL, 10) : -1;

        free(text);
        if (port > 0)
            return port;
    }
    return -1;
}

static bool knows_all(const server *sv)
{
    return sentinel_field(sv, "num-slaves\n") >= TOPOLOGY_SERVERS - 1 &&
           sentinel_field(sv, "num-other-sentinels\n") ==
               TOPOLOGY_SENTINELS - 1;
}

static bool follows(const topology *tp, int i)
{
    char line[64];

    snprintf(line, sizeof(line), "master_port:%d",
             tp->servers[tp->primary].port);
    return has_field(&tp->servers[i], "replication", line) &&
           has_field(&tp->servers[i], "replication", "master_link_status:up");
}

static bool is_whole(const topology *tp)
{
    for (int i = 0; i < TOPOLOGY_SERVERS; i++)
        if (i != tp->primary && !follows(tp, i))
            return false;
    for (int i = 0; i < TOPOLOGY_SENTINELS; i++)
        if (!knows_all(&tp->sentinels[i]))
            return false;
    return true;
}

static bool await_whole(const topology *tp)
{
    dibsx_nsec end = dibsx_after_ms(dibsx_now(), BOUND_MS);

    while (!is_whole(tp)) {
        if (dibsx_now() > end) {
            fprintf(stderr, "the replicas or sentinels do not find together\n");
            return false;
        }
        poll(NULL, 0, 20);
    }
    return true;
}

static bool start_servers(topology *tp, const char *const *more)
{
    for (int i = 0; i < TOPOLOGY_SERVERS; i++) {
        const char *args[SERVER_ARGS_MAX + 1];

        make_args(args, more, i ? tp->ports[0] : NULL);
        if (!server_start_forgetful(&tp->servers[i], args) ||
            !admit_replicas(&tp->servers[i], true))
            return false;
        snprintf(tp->ports[i], sizeof(tp->ports[i]), "%d", tp->servers[i].port);
    }
    return true;
}

static bool start_sentinels(topology *tp)
{
    char lines[512];

    snprintf(lines, sizeof(lines),
             "sentinel monitor " TOPOLOGY_NAME " 127.0.0.1 %d 2\n"
             "sentinel down-after-milliseconds " TOPOLOGY_NAME " 500\n"
             "sentinel failover-timeout " TOPOLOGY_NAME " 2000\n"
             "sentinel parallel-syncs " TOPOLOGY_NAME " 2\n",
             tp->servers[0].port);
    for (int i = 0; i < TOPOLOGY_SENTINELS; i++) {
        if (!server_start_sentinel(&tp->sentinels[i], lines))
            return false;
        /* They find each other by what they publish; older ones take longer. */
        (void)server_tell(&tp->sentinels[i], "SENTINEL", "DEBUG",
                          "publish-period", "200", "info-period", "500", NULL);
    }
    return true;
}

bool topology_start(topology *tp, const char *const *args)
{
    *tp = (topology){.primary = 0};
    if (start_servers(tp, args) && start_sentinels(tp) && await_whole(tp))
        return true;
    topology_stop(tp);
    return false;
}

void topology_stop(topology *tp)
{
    for (int i = 0; i < TOPOLOGY_SENTINELS; i++)
        server_stop(&tp->sentinels[i]);
    for (int i = 0; i < TOPOLOGY_SERVERS; i++)
        server_stop(&tp->servers[i]);
}

void topology_url(const topology *tp, char out[SERVER_URL_MAX])
{
    snprintf(out, SERVER_URL_MAX,
             "redis-sentinel://"
             "127.0.0.1:%d,127.0.0.1:%d,127.0.0.1:%d/" TOPOLOGY_NAME,
             tp->sentinels[0].port, tp->sentinels[1].port,
             tp->sentinels[2].port);
}

void topology_cut(topology *tp)
{
    server *sv = &tp->servers[tp->primary];

    (void)admit_replicas(sv, false);
    (void)server_tell(sv, "CLIENT", "KILL", "TYPE", "replica", NULL);
}

bool topology_await_switch(topology *tp, int before)
{
    dibsx_nsec end = dibsx_after_ms(dibsx_now(), BOUND_MS);

    while (dibsx_now() < end) {
        int port = topology_primary_port(tp);

        for (int i = 0; i < TOPOLOGY_SERVERS; i++)
            if (i != before && tp->servers[i].port == port) {
                tp->primary = i;
                return true;
            }
        poll(NULL, 0, 2);
    }
    fprintf(stderr, "no other primary was chosen\n");
    return false;
}

bool topology_heal(topology *tp)
{
    const char *port = tp->ports[tp->primary];

    for (int i = 0; i < TOPOLOGY_SERVERS; i++) {
        server *sv = &tp->servers[i];

        if (sv->pid == 0) {
            make_args(sv->args, NULL, port);
            if (!server_restart(sv) || !admit_replicas(sv, true))
                return false;
        } else if (i != tp->primary && !follows(tp, i)) {
            (void)server_tell(sv, "REPLICAOF", "127.0.0.1", port, NULL);
        }
    }
    return await_whole(tp);
}
