/* with_redis.c - runs a command on a redis-server of its own.
 *
 *     with_redis [--unix | --tls | --cluster | --sentinel | --acl FILE PREFIX] --
 *                COMMAND [ARGUMENT...]
 *
 * Starts the server, runs the command with the server's URL as its last
 * argument, ends the server, and returns what the command returned. With --acl
 * the URL is that of the user "dibs", made by the lines "ACL SETUSER dibs ..." of
 * FILE, where PREFIX stands in for "workflow:". With --sentinel there are a
 * primary, two replicas and three sentinels. */
/* SPDX-License-Identifier: MIT */
#include "cluster_world.h"
#include "pace.h"
#include "run_on.h"
#include "server.h"
#include "setuser.h"
#include "topology.h"

#include <stdio.h>
#include <string.h>

typedef struct wish {
    bool unix_socket;
    bool tls;
    bool cluster;
    bool sentinel;
    const char *acl_file;
    const char *prefix;
    char **command;
} wish;

static bool read_line(int argc, char **argv, wish *ws)
{
    int i = 1;

    *ws = (wish){.unix_socket = false};
    for (; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (strcmp(argv[i], "--unix") == 0) {
            ws->unix_socket = true;
        } else if (strcmp(argv[i], "--tls") == 0) {
            ws->tls = true;
        } else if (strcmp(argv[i], "--cluster") == 0) {
            ws->cluster = true;
        } else if (strcmp(argv[i], "--sentinel") == 0) {
            ws->sentinel = true;
        } else if (strcmp(argv[i], "--acl") == 0 && i + 2 < argc) {
            ws->acl_file = argv[++i];
            ws->prefix = argv[++i];
        } else {
            return false;
        }
    }
    ws->command = argv + i + 1;
    return i + 1 < argc && argc - i < RUN_ON_WORDS;
}

static bool begin(const wish *ws, server *sv, char url[SERVER_URL_MAX])
{
    bool up = ws->tls ? server_start_tls(sv, "server") : server_start(sv, NULL);

    if (!up)
        return false;
    if (ws->tls)
        server_tls_url(sv, "localhost", url);
    else if (ws->unix_socket)
        server_unix_url(sv, url);
    else if (ws->acl_file)
        snprintf(url, SERVER_URL_MAX, "redis://dibs:%s@127.0.0.1:%d",
                 SETUSER_PASSWORD, sv->port);
    else
        server_url(sv, url);
    return !ws->acl_file || setuser(sv, ws->acl_file, ws->prefix);
}

static int run_in_cluster(char **command)
{
    char url[SERVER_URL_MAX];
    cluster_world cw;
    int code = PACE_MISSED;

    if (cluster_start(&cw)) {
        cluster_url(&cw, url);
        code = run_on(url, command);
        cluster_stop(&cw);
    }
    return code;
}

static int run_with_sentinels(char **command)
{
    char url[SERVER_URL_MAX];
    topology tp;
    int code = PACE_MISSED;

    if (topology_start(&tp, NULL)) {
        topology_url(&tp, url);
        code = run_on(url, command);
    }
    topology_stop(&tp);
    return code;
}

int main(int argc, char **argv)
{
    char url[SERVER_URL_MAX];
    int code = 125;
    server sv = {0};
    wish ws;

    if (!read_line(argc, argv, &ws)) {
        fprintf(stderr,
                "usage: with_redis [--unix | --tls | --cluster | --sentinel | "
                "--acl FILE PREFIX] -- COMMAND [ARGUMENT...]\n");
        return 2;
    }
    if (ws.cluster)
        return run_in_cluster(ws.command);
    if (ws.sentinel)
        return run_with_sentinels(ws.command);
    if (begin(&ws, &sv, url))
        code = run_on(url, ws.command);
    server_stop(&sv);
    return code;
}
