/* topology.c - see topology.h. */
/* SPDX-License-Identifier: MIT */
#include "topology.h"
#include "pace.h"

#include "base/clock.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A sentinel whose timers were two seconds late does nothing for thirty seconds. */
#define BOUND_MS pace_ms(90000)

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

/* `of`: the number of the primary; -1: none. The topology is borrowed. */
static void
make_args(const topology *tp, const char **out, const char *const *more, int of)
{
    size_t count = 0;

    for (size_t i = 0; i < COMMON; i++)
        out[count++] = common_args[i];
    for (size_t i = 0; more && more[i] && count < SERVER_ARGS_MAX - 3; i++)
        out[count++] = more[i];
    if (of >= 0) {
        out[count++] = "--replicaof";
        out[count++] = tp->servers[of].host;
        out[count++] = tp->ports[of];
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

/* The port of the primary as this sentinel has it; -1: it does not say. */
static int named_port(const server *sv)
{
    char *text = sv->pid ? server_ask(sv, "SENTINEL", "get-master-addr-by-name",
                                      TOPOLOGY_NAME, NULL)
                         : NULL;
    const char *at = text ? strrchr(text, '\n') : NULL;
    int port = at ? (int)strtol(at + 1, NULL, 10) : -1;

    free(text);
    return port;
}

/* All sentinels that run name this server. */
static bool all_name(const topology *tp, const server *sv)
{
    for (int i = 0; i < TOPOLOGY_SENTINELS; i++)
        if (tp->sentinels[i].pid && named_port(&tp->sentinels[i]) != sv->port)
            return false;
    return true;
}

/* A failover that is under way would end after the next one, with an older view
 * that lasts. */
static bool is_calm(const server *sv)
{
    char *text = server_ask(sv, "SENTINEL", "MASTER", TOPOLOGY_NAME, NULL);
    bool calm = text && strstr(text, "flags\nmaster\n");

    free(text);
    return calm;
}

static bool knows_all(const server *sv)
{
    return is_calm(sv) &&
           sentinel_field(sv, "num-slaves\n") >= TOPOLOGY_SERVERS - 1 &&
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
    if (!all_name(tp, &tp->servers[tp->primary]))
        return false;
    for (int i = 0; i < TOPOLOGY_SERVERS; i++)
        if (i != tp->primary && !follows(tp, i))
            return false;
    for (int i = 0; i < TOPOLOGY_SENTINELS; i++)
        if (!knows_all(&tp->sentinels[i]))
            return false;
    return true;
}

/* What each of them says, when they do not find together. */
static void explain(const topology *tp)
{
    fprintf(stderr, "the primary should be on port %s\n",
            tp->ports[tp->primary]);
    for (int i = 0; i < TOPOLOGY_SERVERS; i++) {
        char *text = server_ask(&tp->servers[i], "INFO", "replication", NULL);

        fprintf(stderr, "server on %s: %s\n", tp->ports[i],
                text ? text : "no answer");
        free(text);
    }
    for (int i = 0; i < TOPOLOGY_SENTINELS; i++)
        fprintf(stderr,
                "sentinel %d names %d and knows %lld replicas, %lld others\n",
                i, named_port(&tp->sentinels[i]),
                sentinel_field(&tp->sentinels[i], "num-slaves\n"),
                sentinel_field(&tp->sentinels[i], "num-other-sentinels\n"));
}

static bool await_whole(const topology *tp)
{
    dibsx_nsec end = dibsx_after_ms(dibsx_now(), BOUND_MS);

    while (!is_whole(tp)) {
        if (dibsx_now() > end) {
            explain(tp);
            return false;
        }
        poll(NULL, 0, 20);
    }
    return true;
}

static bool
start_servers(topology *tp, const char *const *more, const char *const *hosts)
{
    for (int i = 0; i < TOPOLOGY_SERVERS; i++) {
        const char *args[SERVER_ARGS_MAX + 1];
        server_place at = {.host = hosts ? hosts[i] : NULL};

        make_args(tp, args, more, i ? 0 : -1);
        if (!server_start_at(&tp->servers[i], &at, false, args) ||
            !admit_replicas(&tp->servers[i], true))
            return false;
        snprintf(tp->ports[i], sizeof(tp->ports[i]), "%d", tp->servers[i].port);
    }
    return true;
}

static bool start_sentinels(topology *tp, const char *const *hosts)
{
    char lines[512];

    snprintf(lines, sizeof(lines),
             "sentinel monitor " TOPOLOGY_NAME " %s %d 2\n"
             "sentinel down-after-milliseconds " TOPOLOGY_NAME " 800\n"
             "sentinel failover-timeout " TOPOLOGY_NAME " 2000\n"
             "sentinel parallel-syncs " TOPOLOGY_NAME " 2\n",
             tp->servers[0].host, tp->servers[0].port);
    for (int i = 0; i < TOPOLOGY_SENTINELS; i++) {
        const char *host = hosts ? hosts[TOPOLOGY_SERVERS + i] : NULL;

        if (!server_start_sentinel(&tp->sentinels[i], host, lines))
            return false;
        /* They find each other by what they publish. A replica can be chosen for
         * five periods of pings after it was last looked at, which is done once
         * a second. Older sentinels do not know this, and take longer. */
        (void)server_tell(&tp->sentinels[i], "SENTINEL", "DEBUG",
                          "publish-period", "200", "info-period", "500",
                          "ping-period", "300", "min-link-reconnect-period",
                          "1000", NULL);
    }
    return true;
}

bool topology_start_at(topology *tp, const char *const *args,
                       const char *const hosts[TOPOLOGY_HOSTS])
{
    *tp = (topology){.primary = 0};
    if (start_servers(tp, args, hosts) && start_sentinels(tp, hosts) &&
        await_whole(tp))
        return true;
    topology_stop(tp);
    return false;
}

bool topology_start(topology *tp, const char *const *args)
{
    return topology_start_at(tp, args, NULL);
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
             "redis-sentinel://%s:%d,%s:%d,%s:%d/" TOPOLOGY_NAME,
             tp->sentinels[0].host, tp->sentinels[0].port,
             tp->sentinels[1].host, tp->sentinels[1].port,
             tp->sentinels[2].host, tp->sentinels[2].port);
}

void topology_cut(topology *tp)
{
    server *sv = &tp->servers[tp->primary];

    (void)admit_replicas(sv, false);
    (void)server_tell(sv, "CLIENT", "KILL", "TYPE", "replica", NULL);
}

bool topology_mend(topology *tp)
{
    return admit_replicas(&tp->servers[tp->primary], true) && await_whole(tp);
}

/* Whether a sentinel names another primary than `before`. */
static bool is_switched(topology *tp, int before)
{
    for (int i = 0; i < TOPOLOGY_SERVERS; i++)
        for (int j = 0; j < TOPOLOGY_SENTINELS; j++)
            if (i != before &&
                named_port(&tp->sentinels[j]) == tp->servers[i].port) {
                tp->primary = i;
                return true;
            }
    return false;
}

/* A failover that was asked for of `asked` (NULL: of none) is asked for again when it
 * has ended without a switch. */
static bool await_switch(topology *tp, int before, const server *asked)
{
    dibsx_nsec end = dibsx_after_ms(dibsx_now(), BOUND_MS);

    while (dibsx_now() < end) {
        if (asked && is_calm(asked) &&
            named_port(asked) == tp->servers[before].port)
            (void)server_tell(asked, "SENTINEL", "FAILOVER", TOPOLOGY_NAME,
                              NULL);
        if (is_switched(tp, before))
            return true;
        poll(NULL, 0, 2);
    }
    fprintf(stderr, "no other primary was chosen\n");
    return false;
}

bool topology_await_switch(topology *tp, int before)
{
    return await_switch(tp, before, NULL);
}

bool topology_fail_over(topology *tp, int sentinel)
{
    return await_switch(tp, tp->primary, &tp->sentinels[sentinel]);
}

bool topology_await_followed(const topology *tp, int away)
{
    dibsx_nsec end = dibsx_after_ms(dibsx_now(), BOUND_MS);

    for (int i = 0; i < TOPOLOGY_SERVERS; i++)
        while (i != tp->primary && i != away && !follows(tp, i)) {
            if (dibsx_now() > end) {
                explain(tp);
                return false;
            }
            poll(NULL, 0, 20);
        }
    return true;
}

/* The sentinels may have chosen once more meanwhile. False while they are not of
 * one mind. */
static bool look_again(topology *tp)
{
    for (int i = 0; i < TOPOLOGY_SERVERS; i++)
        if (all_name(tp, &tp->servers[i])) {
            tp->primary = i;
            return true;
        }
    return false;
}

static bool join(topology *tp, int i)
{
    server *sv = &tp->servers[i];

    if (sv->pid == 0) {
        make_args(tp, sv->args, NULL, tp->primary);
        return server_restart(sv) && admit_replicas(sv, true);
    }
    if (i == tp->primary && has_field(sv, "replication", "role:slave"))
        return server_tell(sv, "REPLICAOF", "NO", "ONE", NULL);
    if (i != tp->primary && !follows(tp, i))
        return server_tell(sv, "REPLICAOF", tp->servers[tp->primary].host,
                           tp->ports[tp->primary], NULL);
    return true;
}

bool topology_heal(topology *tp)
{
    dibsx_nsec end = dibsx_after_ms(dibsx_now(), BOUND_MS);

    while (!is_whole(tp)) {
        bool agreed = look_again(tp);

        for (int i = 0; i < TOPOLOGY_SERVERS; i++)
            if ((agreed || tp->servers[i].pid == 0) && !join(tp, i))
                return false;
        if (dibsx_now() > end) {
            explain(tp);
            return false;
        }
        poll(NULL, 0, 200);
    }
    return true;
}
