/* with_postgres.c - runs a command on a PostgreSQL cluster of its own.
 *
 *     with_postgres [--unix | --tls | --plain | --bouncer | --durable]
 *                   [--rights FILE] -- COMMAND [ARGUMENT...]
 *
 * Starts the server, runs the command with the server's URL as its last argument,
 * ends the server, and returns what the command returned. With --plain the store
 * is told that a pooler is in between, where there is none; --bouncer puts one
 * there. With --durable it waits for the disk. With --rights the URL is that of the
 * role "app", made by the lines of FILE that create it and give it its rights. */
/* SPDX-License-Identifier: MIT */
#include "run_on.h"
#include "server.h"

#include <stdio.h>
#include <string.h>

typedef struct wish {
    const char *way; /* "--unix" and so on, or "" */
    const char *rights;
    char **command;
} wish;

static bool read_line(int argc, char **argv, wish *ws)
{
    int i = 1;

    *ws = (wish){.way = ""};
    for (; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (strcmp(argv[i], "--rights") == 0 && i + 1 < argc)
            ws->rights = argv[++i];
        else if (!ws->way[0])
            ws->way = argv[i];
        else
            return false;
    }
    ws->command = argv + i + 1;
    return i + 1 < argc && argc - i < RUN_ON_WORDS;
}

/* Puts the role "app" in the place of the owner. */
static bool use_role(char url[PG_URL_MAX])
{
    static const char owner[] = "postgres://dibs@";
    char rest[PG_URL_MAX];

    if (strncmp(url, owner, strlen(owner)) != 0)
        return false;
    snprintf(rest, sizeof(rest), "%s", url + strlen(owner));
    return snprintf(url, PG_URL_MAX, "postgres://app@%s", rest) < PG_URL_MAX;
}

static bool begin(const wish *ws, pg_server *sv, char url[PG_URL_MAX])
{
    bool tls = strcmp(ws->way, "--tls") == 0;

    if (!(tls ? pg_start_tls(sv, "server") : pg_start(sv)))
        return false;
    pg_url(sv, url);
    if (tls) {
        pg_tls_url(sv, "localhost", url);
    } else if (strcmp(ws->way, "--durable") == 0) {
        pg_kill(sv);
        sv->durable = true;
        return pg_restart(sv);
    } else if (strcmp(ws->way, "--unix") == 0) {
        pg_unix_url(sv, url);
    } else if (strcmp(ws->way, "--plain") == 0) {
        snprintf(url, PG_URL_MAX,
                 "postgres://dibs@127.0.0.1:%d/"
                 "postgres?pooler=transaction&listen_port=%d",
                 sv->port, sv->port);
    } else if (strcmp(ws->way, "--bouncer") == 0) {
        if (!pg_start_bouncer(sv))
            return false;
        pg_bouncer_url(sv, url);
    } else if (ws->way[0]) {
        return false;
    }
    if (!ws->rights)
        return true;
    return use_role(url) && pg_tell_rights(sv, ws->rights);
}

int main(int argc, char **argv)
{
    char url[PG_URL_MAX];
    int code = 125;
    pg_server sv = {0};
    wish ws;

    if (!read_line(argc, argv, &ws)) {
        fprintf(stderr, "usage: with_postgres [--unix | --tls | --plain | "
                        "--bouncer | --durable] [--rights FILE] -- COMMAND "
                        "[ARGUMENT...]\n");
        return 2;
    }
    if (begin(&ws, &sv, url))
        code = run_on(url, ws.command);
    pg_stop(&sv);
    return code;
}
